"""A worker: runs the sessions that other processes ask for, a bounded number of them at a time."""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.limits import WAKE_POLL_S, WAKE_RETRY_S
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.wakes import Waiting, Wakes
from turnkeeper.store.engine import Engine, EngineError

log = logging.getLogger(__name__)


class Run(Protocol):
    """Runs a session until it rests."""

    def __call__(self, session_id: str, *, resume: bool = False) -> Awaitable[Outcome]:
        """How it ended."""
        ...


class Worker:
    """Takes wakes and runs their sessions."""

    def __init__(self, engine: Engine, wakes: Wakes, run: Run, concurrency: int) -> None:
        self._engine, self._wakes, self._run, self._concurrency = engine, wakes, run, concurrency
        self._working: set[str] = set()
        self._ended = anyio.Event()
        self._is_leaving = False

    @property
    def working(self) -> frozenset[str]:
        """The sessions that are being run for a wake."""
        return frozenset(self._working)

    async def work(self, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        """Run sessions until ``leave`` is called and those under way have come to rest."""
        async with anyio.create_task_group() as group:
            seen: int | None = None
            while not self._is_leaving:
                try:
                    version = await self._engine.version()
                    if version != seen:
                        await self._take(group)
                    seen = version if len(self._working) < self._concurrency else None
                except EngineError as error:
                    log.warning("wakes cannot be read: %s", error)
                    await sleep(WAKE_RETRY_S)
                ended = self._ended
                with anyio.move_on_after(WAKE_POLL_S):
                    await ended.wait()
                    seen = None

    def leave(self) -> None:
        """Take no more sessions."""
        self._is_leaving = True
        self._ended.set()

    async def _take(self, group: TaskGroup) -> None:
        for session_id, waiting in (await self._wakes.waiting()).items():
            if len(self._working) >= self._concurrency:
                return
            if session_id not in self._working:
                self._working.add(session_id)
                group.start_soon(self._work_on, session_id, waiting, name=f"wake of {session_id}")

    async def _work_on(self, session_id: str, waiting: Waiting) -> None:
        try:
            outcome = await self._run(session_id, resume=waiting.resume)
            # Another owner has the prompt in its log and cannot rest before it has seen it; so has whoever replaces it.
            if outcome.store == "ok":
                await self._wakes.done(waiting.keys)
            else:
                await anyio.sleep(WAKE_RETRY_S)
            if outcome.kind in ("refused", "crashed") and not outcome.is_busy:
                log.warning("session %s was not run: %s", session_id, outcome.reason)
        except EngineError as error:
            log.warning("the wake of session %s stays: %s", session_id, error)
        finally:
            self._working.discard(session_id)
            self._ended.set()
            self._ended = anyio.Event()
