"""A worker: runs the sessions that other processes ask for, a bounded number of them at a time."""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.limits import WAKE_RETRY_S
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.lease_keeper import LeaseKeeper
from turnkeeper.run.wakes import Receiver, Taken, Wakes
from turnkeeper.store.engine import EngineError

log = logging.getLogger(__name__)


class Run(Protocol):
    """Runs a session until it rests."""

    def __call__(self, session_id: str, *, resume: bool = False) -> Awaitable[Outcome]:
        """How it ended."""
        ...


class Worker:
    """Takes wakes and runs their sessions."""

    def __init__(self, wakes: Wakes, lease_keeper: LeaseKeeper, run: Run, concurrency: int) -> None:
        self._wakes, self._lease_keeper, self._run, self._concurrency = wakes, lease_keeper, run, concurrency
        self._working: set[str] = set()
        self._ended = anyio.Event()
        self._is_leaving = False

    @property
    def working(self) -> frozenset[str]:
        """The sessions that are being run for a wake."""
        return frozenset(self._working)

    async def work(self, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        """Run sessions until ``leave`` is called and those under way have come to rest."""
        async with (
            self._wakes.receiver(self._lease_keeper.host.labels, self._lease_keeper.leases.terms.lease_s) as receiver,
            anyio.create_task_group() as upkeep,
        ):
            upkeep.start_soon(self._keep_up, receiver)
            async with anyio.create_task_group() as group:
                while not self._is_leaving:
                    try:
                        await self._take(receiver, group)
                        await self._something(receiver)
                    except EngineError as error:
                        log.warning("wakes cannot be read: %s", error)
                        await sleep(WAKE_RETRY_S)
            upkeep.cancel_scope.cancel()

    def leave(self) -> None:
        """Take no more sessions."""
        self._is_leaving = True
        self._lease_keeper.drain()
        self._ended.set()

    async def _take(self, receiver: Receiver, group: TaskGroup) -> None:
        self._ended = anyio.Event()
        free = self._concurrency - len(self._working)
        if free > 0:
            for taken in await receiver.take(free, self._working, self._lease_keeper.host.admits):
                self._working.add(taken.session_id)
                group.start_soon(self._work_on, receiver, taken, name=f"wake of {taken.session_id}")

    async def _something(self, receiver: Receiver) -> None:
        """Wait until a run has ended, or there may be other wakes that could be run."""
        async with anyio.create_task_group() as group:

            async def changed() -> None:
                try:
                    await receiver.changed()
                except EngineError:
                    await anyio.sleep(WAKE_RETRY_S)  # The next look says why.
                group.cancel_scope.cancel()

            if len(self._working) < self._concurrency:
                group.start_soon(changed)
            await self._ended.wait()
            group.cancel_scope.cancel()

    async def _keep_up(self, receiver: Receiver) -> None:
        leases = self._lease_keeper.leases
        while True:
            try:
                await receiver.keep_up()
            except EngineError as error:
                log.warning("the queue of wakes cannot be looked after: %s", error)
            await leases.pace.sleep(leases.terms.beat_s)

    async def _work_on(self, receiver: Receiver, taken: Taken) -> None:
        session_id = taken.session_id
        try:
            outcome = await self._run(session_id, resume=taken.resume)
            while outcome.store != "ok" and not self._is_leaving:
                await anyio.sleep(WAKE_RETRY_S)
                outcome = await self._run(session_id, resume=taken.resume)
            if outcome.is_elsewhere or outcome.store != "ok":
                await receiver.put_back(taken)
            else:
                # Another owner has the prompt in its log and cannot rest before it has seen it; so has its successor.
                await receiver.done(taken)
            if outcome.kind in ("refused", "crashed") and not (outcome.is_busy or outcome.is_elsewhere):
                log.warning("session %s was not run to its end: %s", session_id, outcome.reason)
        except EngineError as error:
            log.warning("the wake of session %s stays: %s", session_id, error)
        finally:
            self._working.discard(session_id)
            self._ended.set()
