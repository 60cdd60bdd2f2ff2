"""Threads for the code of one plugin or file, which never runs on the event loop of the program.

A function that is not async has a thread of its own for each call. Async functions share one event loop on a thread.
All are daemon threads: code that blocks holds up no other code, and the program ends without it.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Final, NamedTuple

import anyio

from turnkeeper.outside_code import StrayExit, contained

log = logging.getLogger(__name__)

GRACE_S: Final = 1.0
"""Seconds that an async function may take to end after it was cancelled, before it is left running."""


class OutsideThreads:
    """Calls functions of one plugin or file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: _OutsideLoop | None = None
        self._running = 0
        self._is_closed = False

    async def call(self, function: Callable[..., object], *given: object, keeps_late: bool = False) -> object:
        """The result of a function, async or not, or its exception. A cancelled caller cancels an async function, too.

        With ``keeps_late``, a cancelled caller waits for the function for GRACE_S, and gets a result that comes then.
        """
        self._running += 1
        try:
            if inspect.iscoroutinefunction(function):
                return await self._awaited(partial(function, *given), keeps_late)
            result = await self._on_thread(partial(function, *given), keeps_late)
            return await self._awaited(lambda: result, keeps_late) if inspect.isawaitable(result) else result
        finally:
            self._running -= 1
            if self._is_closed:
                self._end_loop()

    def close(self) -> None:
        """Tell the event loop to end, with the tasks that were started there. Calls that run are let finish."""
        self._is_closed = True
        self._end_loop()

    async def aclose(self) -> None:
        """As ``close``, and wait a moment for the end."""
        self._is_closed = True
        if (loop := self._end_loop()) is not None:
            with anyio.move_on_after(GRACE_S, shield=True):
                await loop.ended.wait()

    async def _on_thread(self, function: Callable[[], object], keeps_late: bool) -> object:
        answer = _Answer()
        threading.Thread(target=lambda: answer.give(_outcome(function)), name=self._name, daemon=True).start()
        try:
            return await answer.wait()
        except asyncio.CancelledError:
            if keeps_late and await answer.comes_late():
                return await answer.wait()
            self._note_left(answer, keeps_late)
            raise

    async def _awaited(self, work: Callable[[], Awaitable[object]], keeps_late: bool) -> object:
        self._loop = loop = self._loop or _OutsideLoop(self._name)
        answer = _Answer()
        call = _LoopCall(work, answer)
        loop.soon(call.start)
        try:
            return await answer.wait()
        except asyncio.CancelledError:
            loop.soon(call.cancel)
            has_result = await answer.comes_late()
            if not answer.given.is_set() and not call.is_told and self._loop is loop:
                # A function blocks this event loop. It ends when the function does, and the others get a new one.
                self._end_loop(is_idle=True)
            if keeps_late and has_result:
                return await answer.wait()
            self._note_left(answer, keeps_late)
            raise

    def _note_left(self, answer: "_Answer", keeps_late: bool) -> None:
        """Log that a function was left running. Callers that do not keep late results report this themselves."""
        if keeps_late and not answer.given.is_set():
            log.warning("a call of %s did not stop, and goes on until the program ends", self._name)

    def _end_loop(self, *, is_idle: bool = False) -> "_OutsideLoop | None":
        """Tell the event loop to end, unless calls run on it; the loop that was told."""
        loop = self._loop
        if loop is None or (self._running and not is_idle):
            return None
        self._loop = None
        loop.soon(loop.end)
        return loop


class _Outcome(NamedTuple):
    """The result of a function, or its exception."""

    result: object = None
    error: BaseException | None = None


class _Answer:
    """An outcome that another thread gives to a task of the event loop that waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._outcome = _Outcome()
        self.given = asyncio.Event()

    def give(self, outcome: _Outcome) -> None:
        self._outcome = outcome
        with suppress(RuntimeError):  # The program has ended without it.
            self._loop.call_soon_threadsafe(self.given.set)

    async def comes_late(self) -> bool:
        """Wait for GRACE_S though the caller is cancelled; whether there is a result."""
        with anyio.move_on_after(GRACE_S, shield=True):
            await self.given.wait()
        return self.given.is_set() and self._outcome.error is None

    async def wait(self) -> object:
        if not self.given.is_set():
            await self.given.wait()
        if self._outcome.error is not None:
            raise self._outcome.error
        return self._outcome.result


class _LoopCall:
    """A call of an async function. All methods but ``__init__`` run on the event loop of the function."""

    def __init__(self, work: Callable[[], Awaitable[object]], answer: _Answer) -> None:
        self._work, self._answer = work, answer
        self._task: asyncio.Task[None] | None = None
        self.is_told = False
        """Whether the event loop has taken note that the call is cancelled."""

    def start(self) -> None:
        # In a context of its own: what is noted in that of the caller is about another event loop.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def cancel(self) -> None:
        self.is_told = True
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            with contained():
                self._answer.give(_Outcome(await self._work()))
        except KeyboardInterrupt as error:
            self._answer.give(_Outcome(error=_stray(error)))
        except asyncio.CancelledError as error:
            self._answer.give(_Outcome(error=error))
            raise
        except BaseException as error:
            # Told to the caller, who contains it.
            self._answer.give(_Outcome(error=error))


class _OutsideLoop:
    """An event loop on a daemon thread."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._is_ending = False
        self._ended = _Answer()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def ended(self) -> asyncio.Event:
        """Set when the event loop has ended."""
        return self._ended.given

    def soon(self, do: Callable[[], None]) -> None:
        """Do something on the event loop, once it is free."""
        with suppress(RuntimeError):  # It has ended.
            self._loop.call_soon_threadsafe(do, context=Context())

    def end(self) -> None:
        """End; called on the event loop."""
        self._is_ending = True
        self._loop.stop()

    def _run(self) -> None:
        while not self._is_ending:
            with suppress(SystemExit, KeyboardInterrupt):  # Of a task that was started there.
                self._loop.run_forever()
        if tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=GRACE_S))
        self._loop.close()
        self._ended.give(_Outcome())


def _outcome(function: Callable[[], object]) -> _Outcome:
    try:
        return _Outcome(function())
    except KeyboardInterrupt as error:
        return _Outcome(error=_stray(error))
    except BaseException as error:
        # Told to the caller, who contains it.
        return _Outcome(error=error)


def _stray(error: KeyboardInterrupt) -> StrayExit:
    """The replacement for a KeyboardInterrupt that is not the user's, and that would end the event loop."""
    return StrayExit(repr(error))
