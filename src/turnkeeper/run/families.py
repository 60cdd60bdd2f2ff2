"""Families: a session and the Child Sessions that work for it are stopped together, and waited for together."""

import anyio
import msgspec

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import Owner
from turnkeeper.run.abandon import first_error
from turnkeeper.run.children import Children
from turnkeeper.run.coordinator import Coordinator, Outcome
from turnkeeper.run.release import Releases
from turnkeeper.run.stop_elsewhere import stop_elsewhere
from turnkeeper.store.store import Store
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.owner import is_alive


class Families(msgspec.Struct, frozen=True):
    """Stops sessions with their Child Sessions, and waits for them."""

    store: Store
    coordinator: Coordinator
    releases: Releases
    children: Children
    jobs: Jobs
    owner: Owner
    """The owner that the log names for sessions that this process runs."""
    interrupted: set[str]
    """The sessions that are being stopped, which the loop looks at."""

    async def interrupt(self, session_id: str) -> bool:
        """Stop a session with the Child Sessions that work for it, and wait until all is settled.

        Returns whether one was stopped. Other processes are asked to stop the Child Sessions that they run. The session
        itself is stopped only if it is run here. Raises Busy if another process does not stop a Child Session in time.
        """
        family, elsewhere = await self._members(session_id)
        for one in family:
            self.jobs.end_session(one)
            self.interrupted.add(one)
        stopped: list[bool] = []

        async def stop(one: str) -> None:
            stopped.append(await self.coordinator.interrupt(one) or await self.releases.finish(one))

        async def ask(one: str) -> None:
            stopped.append(await stop_elsewhere(self.store, one, self.owner, self.interrupt))

        try:
            async with anyio.create_task_group() as group:
                for one in family:  # Parents first: none goes on with what came of a Child Session.
                    group.start_soon(stop, one)
                for one in family if elsewhere else ():
                    # The other process would deliver the result, and the stopped session would go on with it.
                    group.start_soon(self.children.give_up, one, elsewhere)
            async with anyio.create_task_group() as group:
                for one in elsewhere:
                    group.start_soon(ask, one)
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors
        finally:
            self.interrupted.difference_update(family)
        return any(stopped)

    async def _members(self, session_id: str) -> tuple[list[str], list[str]]:
        """A session and the Child Sessions that work for it, parents first; and those that other processes run.

        Another process that stops a session stops what works for it, so nothing below such a session is listed.
        """
        family, elsewhere = [session_id], list[str]()
        known = self.store.journal.cache.view(session_id)
        if not (known.children if known is not None else session_id in self.coordinator.active):
            return family, elsewhere  # The log is read only if there may be Child Sessions.
        for one in family:  # The list grows during the iteration.
            try:
                view = await self.store.journal.view(one)
            except NotFound:
                continue
            if view.owner not in (None, self.owner) and is_alive(view.owner):
                elsewhere.append(one)
            else:
                family += [task.session_id for task in view.children if task.session_id not in family]
        return family, [one for one in elsewhere if one != session_id]

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
