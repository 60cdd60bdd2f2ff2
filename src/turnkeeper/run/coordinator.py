"""The coordinator: one drain per session. Runs join, wakes coalesce, an interrupt waits until all is settled."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup

from turnkeeper.model.refusal import Busy, Elsewhere, Refusal
from turnkeeper.model.value import Value
from turnkeeper.outside_code import contained
from turnkeeper.store.engine import EngineError, StoreDamaged, StoreFull, StoreUnavailable

log = logging.getLogger(__name__)

StoreState: TypeAlias = Literal["ok", "full", "unavailable", "damaged"]


class Outcome(Value):
    """How a run of a session ended. ``abandoned``: the process that ran it died, and the session is still open."""

    kind: Literal["rested", "interrupted", "refused", "crashed", "abandoned"]
    reason: str = ""
    is_busy: bool = False
    """Whether it was refused because another process runs the session."""
    is_elsewhere: bool = False
    """Whether it was refused because the session is for hosts with another label."""
    store: StoreState = "ok"
    """The state of the store at its end. The run is retried while the store is full or unavailable."""


class _Drain:
    """One session's drain, running; or what is done alone, in its place."""

    def __init__(self, *, is_alone: bool = False) -> None:
        self.is_alone = is_alone
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.outcome = Outcome(kind="rested")
        self.is_woken = False
        self.resumes = False
        self.is_stopping = False
        self.error: Exception | None = None


class Coordinator:
    """Starts, joins and stops drains. All of them live in the one task group it is given."""

    def __init__(self, group: TaskGroup, drain: Callable[[str, bool], Awaitable[str]]) -> None:
        self._group, self._drain = group, drain
        self._drains: dict[str, _Drain] = {}

    @property
    def active(self) -> frozenset[str]:
        """Sessions that are being run by this process."""
        return frozenset(self._drains)

    def wake(self, session_id: str, *, resume: bool = False) -> None:
        """See to it that the session is looked at: now, or again when the running drain is done."""
        drain = self._drains.get(session_id)
        if drain is None:
            self._start(session_id, resume=resume)
        else:
            drain.is_woken = True
            drain.resumes = drain.resumes or resume

    async def request(self, session_id: str, *, resume: bool = False) -> None:
        """Wake a session, by the part of this process that runs sessions."""
        self.wake(session_id, resume=resume)

    async def run(self, session_id: str, *, resume: bool = False) -> Outcome:
        """Run the session until it rests, joining a drain under way. Cancelling the caller does not stop the drain."""
        while (drain := self._drains.get(session_id)) is not None and (drain.is_stopping or drain.is_alone):
            await drain.done.wait()
        self.wake(session_id, resume=resume)
        drain = self._drains[session_id]
        await drain.done.wait()
        return drain.outcome

    async def wait(self, session_id: str) -> Outcome:
        """Wait until the session rests; at once if it does."""
        outcome, is_alone = Outcome(kind="rested"), True
        while is_alone and (drain := self._drains.get(session_id)) is not None:
            await drain.done.wait()
            outcome, is_alone = drain.outcome, drain.is_alone
        return outcome

    async def alone(self, session_id: str, work: Callable[[], Awaitable[bool]]) -> Outcome:
        """Do other work in the place of a drain, which waits for it. Raises what it raises, and Busy while one runs.

        ``work`` says whether there is now something for a drain to do. Cancelling the caller does not stop it.
        """
        if session_id in self._drains:
            raise Busy(f"session {session_id!r} is running; wait until it rests, or stop it")
        drain = self._drains[session_id] = _Drain(is_alone=True)
        self._group.start_soon(self._work_alone, session_id, drain, work, name=f"alone {session_id}")
        await drain.done.wait()
        if drain.error is not None:
            raise drain.error
        return drain.outcome

    async def interrupt(self, session_id: str) -> bool:
        """Stop the drain and wait until everything it left open is recorded; whether there was one."""
        drain = self._drains.get(session_id)
        if drain is None:
            return False
        drain.is_stopping, drain.is_woken = True, False
        drain.scope.cancel()
        await drain.done.wait()
        return True

    def _start(self, session_id: str, *, resume: bool) -> _Drain:
        drain = self._drains[session_id] = _Drain()
        drain.resumes = resume
        self._group.start_soon(self._work, session_id, drain, name=f"drain {session_id}")
        return drain

    async def _work(self, session_id: str, drain: _Drain) -> None:
        again = True
        try:
            while again:
                resume, drain.resumes, drain.is_woken = drain.resumes, False, False
                drain.outcome = await self._once(session_id, drain, partial(self._drain, session_id, resume))
                again = drain.is_woken and not drain.is_stopping and drain.outcome.kind == "rested"
                if again:
                    drain.scope = anyio.CancelScope()  # A scope serves once.
        finally:
            self._finish(session_id, drain)

    async def _work_alone(self, session_id: str, drain: _Drain, work: Callable[[], Awaitable[bool]]) -> None:
        async def noted() -> str:
            drain.is_woken = await work() or drain.is_woken
            return "done"

        try:
            drain.outcome = await self._once(session_id, drain, noted)
        finally:
            self._finish(session_id, drain)

    def _finish(self, session_id: str, drain: _Drain) -> None:
        """Release the waiting callers; also if the whole group is cancelled, and not only this drain."""
        del self._drains[session_id]
        drain.done.set()
        if drain.is_woken:
            # A wake that came while the drain was being stopped, as it failed, or while it had to wait, is not lost.
            self._restart(session_id, resume=drain.resumes)

    def _restart(self, session_id: str, *, resume: bool) -> None:
        self._start(session_id, resume=resume)

    async def _once(self, session_id: str, drain: _Drain, work: Callable[[], Awaitable[str]]) -> Outcome:
        try:
            with drain.scope, contained(is_whole_task=True):
                return Outcome(kind="rested", reason=await work())
        except (Refusal, EngineError) as error:
            drain.error = error
            is_busy, is_elsewhere, store = isinstance(error, Busy), isinstance(error, Elsewhere), _store_state(error)
            return Outcome(kind="refused", reason=str(error), is_busy=is_busy, is_elsewhere=is_elsewhere, store=store)
        except Exception as error:
            # The top of a drain: a bug ends the run of this session and of no other.
            drain.error = error
            log.exception("the drain of %s crashed", session_id)
            return Outcome(kind="crashed", reason=f"{type(error).__name__}: {error}")
        return Outcome(kind="interrupted")


def _store_state(error: Exception) -> StoreState:
    match error:
        case StoreFull():
            return "full"
        case StoreDamaged():
            return "damaged"
        case StoreUnavailable():
            return "unavailable"
    return "ok"
