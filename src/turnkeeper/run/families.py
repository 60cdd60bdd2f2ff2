"""Families: a session and the Child Sessions that work for it are stopped together, and waited for together."""

import anyio
import msgspec

from turnkeeper.run.abandon import first_error
from turnkeeper.run.children import Children
from turnkeeper.run.coordinator import Coordinator, Outcome
from turnkeeper.run.release import Releases
from turnkeeper.store.store import Store
from turnkeeper.workspace.jobs import Jobs


class Families(msgspec.Struct, frozen=True):
    """Stops sessions with their Child Sessions, and waits for them."""

    store: Store
    coordinator: Coordinator
    releases: Releases
    children: Children
    jobs: Jobs
    interrupted: set[str]
    """The sessions that are being stopped, which the loop looks at."""

    async def interrupt(self, session_id: str) -> bool:
        """Stop a family, and wait until all is settled; whether a drain was running here."""
        family = [session_id, *(one for one in await self._below(session_id) if one != session_id)]
        for one in family:
            self.jobs.end_session(one)
            self.interrupted.add(one)
        stopped: list[bool] = []

        async def stop(one: str) -> None:
            stopped.append(await self.coordinator.interrupt(one) or await self.releases.finish(one))

        try:
            async with anyio.create_task_group() as group:
                for one in family:  # Parents first: none goes on with what came of a Child Session.
                    group.start_soon(stop, one)
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors
        finally:
            self.interrupted.difference_update(family)
        return any(stopped)

    async def _below(self, session_id: str) -> list[str]:
        """The Child Sessions that work for a session. The log is read only if it may have some."""
        known = self.store.journal.cache.view(session_id)
        return [] if known is None or not known.children else await self.children.running_below(session_id)

    async def wait(self, session_id: str) -> Outcome:
        """Wait until a session rests and no Child Session of this process works for it in the background."""
        outcome = Outcome(kind="rested")
        while True:
            now = await self.coordinator.wait(session_id)
            outcome = now if now.reason or now.kind != "rested" else outcome
            below = [one for one in await self.children.running_below(session_id) if one in self.coordinator.active]
            if not below and session_id not in self.coordinator.active:
                return outcome
            for one in below:
                await self.coordinator.wait(one)
