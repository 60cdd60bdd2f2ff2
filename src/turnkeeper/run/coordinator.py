"""The coordinator: one drain per session. Runs join, wakes coalesce, an interrupt waits until all is settled."""

import logging
from collections.abc import Awaitable, Callable
from typing import Literal

import anyio
from anyio.abc import TaskGroup

from turnkeeper.model.refusal import Refusal
from turnkeeper.model.value import Value
from turnkeeper.store.engine import EngineError

log = logging.getLogger(__name__)


class Outcome(Value):
    """How a drain ended."""

    kind: Literal["rested", "interrupted", "refused", "crashed"]
    reason: str = ""


class _Drain:
    """One session's drain, running."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.outcome = Outcome(kind="rested")
        self.is_woken = False
        self.resumes = False
        self.is_stopping = False


class Coordinator:
    """Starts, joins and stops drains. All of them live in the one task group it is given."""

    def __init__(self, group: TaskGroup, drain: Callable[[str, bool], Awaitable[str]]) -> None:
        self._group, self._drain = group, drain
        self._drains: dict[str, _Drain] = {}

    @property
    def active(self) -> frozenset[str]:
        """Sessions that are being run by this process."""
        return frozenset(self._drains)

    def wake(self, session_id: str) -> None:
        """See to it that the session is looked at: now, or again when the running drain is done."""
        drain = self._drains.get(session_id)
        if drain is None:
            self._start(session_id, resume=False)
        else:
            drain.is_woken = True

    async def run(self, session_id: str, *, resume: bool = False) -> Outcome:
        """Run the session until it rests, joining a drain under way. Cancelling the caller does not stop the drain."""
        while (drain := self._drains.get(session_id)) is not None and drain.is_stopping:
            await drain.done.wait()
        if drain is None:
            drain = self._start(session_id, resume=resume)
        else:
            drain.is_woken = True
            drain.resumes = drain.resumes or resume
        await drain.done.wait()
        return drain.outcome

    async def wait(self, session_id: str) -> Outcome:
        """Wait until the session rests; at once if it does."""
        drain = self._drains.get(session_id)
        if drain is None:
            return Outcome(kind="rested")
        await drain.done.wait()
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
        while again:
            resume, drain.resumes, drain.is_woken = drain.resumes, False, False
            drain.outcome = await self._once(session_id, drain, resume)
            again = drain.is_woken and not drain.is_stopping and drain.outcome.kind == "rested"
            if again:
                drain.scope = anyio.CancelScope()  # A scope serves once.
        del self._drains[session_id]
        drain.done.set()
        if drain.is_woken:
            # A wake that came while the drain was being stopped, or as it failed, is not lost.
            self._start(session_id, resume=drain.resumes)

    async def _once(self, session_id: str, drain: _Drain, resume: bool) -> Outcome:
        try:
            with drain.scope:
                return Outcome(kind="rested", reason=await self._drain(session_id, resume))
        except (Refusal, EngineError) as error:
            return Outcome(kind="refused", reason=str(error))
        except Exception as error:
            # The top of a drain: a bug ends this session's run and nobody else's.
            log.exception("the drain of %s crashed", session_id)
            return Outcome(kind="crashed", reason=f"{type(error).__name__}: {error}")
        return Outcome(kind="interrupted")
