"""Failover: sessions that dead or silent hosts left are taken over, and run on; at the start, and as hosts fail."""

import logging
from collections.abc import Sequence

import anyio
import msgspec
from anyio.abc import TaskGroup

from turnkeeper.model.refusal import Refusal
from turnkeeper.run.children import Children
from turnkeeper.run.coordinator import Coordinator, Outcome
from turnkeeper.run.families import Families
from turnkeeper.run.recover import AskToContinue, Failed, Left, Recovery, TakeOver
from turnkeeper.run.wakes import Wakes
from turnkeeper.store.engine import EngineError

log = logging.getLogger(__name__)


class Failover(msgspec.Struct, frozen=True):
    """Takes over sessions of dead processes, and continues their runs."""

    taking_over: TakeOver
    coordinator: Coordinator
    families: Families
    children: Children
    wakes: Wakes
    group: TaskGroup
    """The task group in which sessions that ``watch`` takes over are run."""

    async def recover(
        self, policy: Recovery | None = None, *, ask: AskToContinue | None = None, failed: Failed | None = None
    ) -> list[str]:
        """Close what dead processes left open, and continue what may be; returns the sessions that were found."""
        left = await self.take_over(policy, ask=ask, failed=failed)
        await self._resume(left)
        return [one.session_id for one in left]

    async def take_over(
        self, policy: Recovery | None = None, *, ask: AskToContinue | None = None, failed: Failed | None = None
    ) -> list[Left]:
        """Close what dead processes left open; returns the sessions, for ``resume_in_background``.

        A turn of which nothing was recorded is asked again. Where output was cut off, ``policy`` decides (else the
        session's ``metadata.recovery``, else the configuration of its directory, else ``rest``): ``continue`` goes on,
        ``rest`` waits for the user, ``ask`` asks. Those that could not be closed are added to ``failed``.
        """
        left = await self.taking_over.all(self.coordinator.active, policy, ask, failed)
        await self._free_wakes(left)
        return left

    async def _resume(self, left: Sequence[Left]) -> None:
        """Run those of the sessions that were taken over that have something to do, until they rest."""
        async with anyio.create_task_group() as group:
            for one in left:
                group.start_soon(self._resume_one, one)
        for one in left:
            await self.families.wait(await self.children.root_of(one.session_id))

    async def watch(self) -> None:
        """Take over sessions when their host dies or falls silent, and run them on. Never ends."""
        leases = self.taking_over.lease_keeper.leases
        while True:
            await leases.pace.sleep(leases.terms.beat_s)
            try:
                left = await self.taking_over.all(self.coordinator.active, None, None, only_owned=True)
            except EngineError as error:
                log.warning("the sessions of other hosts could not be looked at: %s", error)
                continue
            if left:
                await self._free_wakes(left)
                names = ", ".join(one.session_id for one in left)
                log.warning("sessions of hosts that died or fell silent were taken over: %s", names)
                self.group.start_soon(self.resume_in_background, left, name="sessions of other hosts")

    async def _free_wakes(self, left: Sequence[Left]) -> None:
        """Let workers take wakes of the dead owners; else those of later prompts would queue behind them."""
        try:
            if left:
                await self.wakes.owner_died([one.session_id for one in left])
        except EngineError as error:
            log.warning("the wakes of dead hosts stay until their silence has lasted long enough: %s", error)

    async def resume_in_background(self, left: Sequence[Left]) -> None:
        """Run sessions that were taken over. A failure of one is logged and not raised."""
        async with anyio.create_task_group() as group:
            for one in left:
                group.start_soon(self._resume_in_time, one)

    async def _resume_in_time(self, one: Left) -> None:
        leases = self.taking_over.lease_keeper.leases
        while True:
            try:
                outcome = await self._resume_one(one)
                if outcome.store == "ok":
                    return
                reason = outcome.reason
            except Refusal as error:
                log.warning("the session %s was taken over and cannot go on: %s", one.session_id, error)
                return
            except EngineError as error:
                reason = str(error)
            # The store may come back; until then no other process knows of the session.
            log.warning("the session %s was taken over and waits for its store: %s", one.session_id, reason)
            await leases.pace.sleep(leases.terms.beat_s)

    async def _resume_one(self, one: Left) -> Outcome:
        await self.children.recover(one.session_id)  # A session that rests may be given a result, and goes on then.
        if one.rests:
            return Outcome(kind="rested")
        return await self.coordinator.run(one.session_id, resume=one.resumes)
