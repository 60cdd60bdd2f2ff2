"""Abandon: wait for work until it is done, or for a bounded time once the caller is cancelled.

Foreign code may ignore a cancellation, and a command may take long to end. Neither may delay an interrupt, so the work
runs in a task that outlives the caller, and is abandoned there at the timeout.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from turnkeeper.core.limits import INTERRUPT_S, LEFT_ALONE_S, REMIND_S

log = logging.getLogger(__name__)

T = TypeVar("T")

_CALL: Final = "tool call: "
"""The prefix of the names of tasks that run tool calls."""


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first exception of a group: callers handle exceptions, not exception groups."""
    first = group.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first


class CallTasks:
    """The tasks of tool calls. They outlive turns, and the wait for their end is bounded.

    They are in no task group: its end would wait for a tool that ignores cancellation, and Python can neither stop such
    a coroutine nor a thread.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start_soon(self, func: Callable[[], Coroutine[Any, Any, None]], *, name: object = None) -> None:
        """Run a function in a task of its own."""
        task = asyncio.get_running_loop().create_task(func(), name=f"{_CALL}{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self, timeout_s: float = LEFT_ALONE_S) -> list[str]:
        """Wait until the tasks have ended; returns the names of those that have not at the timeout.

        They were cancelled before, with the turns that started them.
        """
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        return calls_among(task for task in self._tasks if not task.done())


def calls_among(tasks: Iterable[asyncio.Task[Any]]) -> list[str]:
    """The names of the tool calls whose tasks are among these."""
    return sorted({name.removeprefix(_CALL) for task in tasks if (name := task.get_name()).startswith(_CALL)})


StartsTasks: TypeAlias = TaskGroup | CallTasks
"""The owner of the tasks that work is started in."""


class _Work(Generic[T]):
    """One piece of work in a task of its own."""

    def __init__(self, work: Callable[[], Awaitable[T]], name: str) -> None:
        self._work, self._name = work, name
        self.scope = anyio.CancelScope()
        self._reminder = anyio.CancelScope()
        """Inside ``scope``. While it is a shield, the cancellation is not delivered to the work again."""
        self.done = anyio.Event()
        self.is_left = False
        self.results: list[T] = []
        self.error: BaseException | None = None

    async def run(self) -> None:
        try:
            with self.scope, self._reminder:
                self.results.append(await self._work())
        except BaseException as error:
            # Reported to the caller, which is gone once the work was abandoned.
            self.error = error
            if self.is_left:
                log.warning("%s ended after it was left alone: %r", self._name, error)
            if not isinstance(error, Exception) and self.is_left:
                raise
        finally:
            self.done.set()

    async def remind(self) -> None:
        """Deliver the cancellation to abandoned work at intervals.

        Otherwise it is delivered at each wait, and work that ignores it would keep the event loop busy.
        """
        while not self.done.is_set():
            self._reminder.shield = True
            with anyio.move_on_after(REMIND_S):
                await self.done.wait()
            self._reminder.shield = False
            await anyio.lowlevel.checkpoint()


async def run_or_abandon(
    group: StartsTasks,
    work: Callable[[], Awaitable[T]],
    *,
    name: str,
    grace_s: float = INTERRUPT_S,
    left: Callable[[], None] = lambda: None,
) -> T:
    """The result of the work. When the caller is cancelled the work is cancelled too, and has ``grace_s`` to end.

    A result within that time is returned. ``left`` is called if the work has not ended and is abandoned.
    """
    task = _Work(work, name)
    group.start_soon(task.run, name=name)
    try:
        await task.done.wait()
    except anyio.get_cancelled_exc_class():
        task.scope.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(grace_s):
            await task.done.wait()
        if not task.done.is_set():
            task.is_left = True
            group.start_soon(task.remind, name=name)
            left()
        if not task.results:
            raise
    if task.error is not None:
        raise task.error
    return task.results[0]
