"""Abandon: wait for work until it is done, or for a bounded time once the caller is cancelled.

Code from outside may ignore a cancellation, and a command may take its time to end. Neither may keep an interrupt
waiting, so the work runs in a task group that outlives the caller, and is left there when time is up.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.limits import INTERRUPT_S

log = logging.getLogger(__name__)

T = TypeVar("T")


class _Work(Generic[T]):
    """One piece of work in a task of its own."""

    def __init__(self, work: Callable[[], Awaitable[T]], name: str) -> None:
        self._work, self._name = work, name
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.is_left = False
        self.results: list[T] = []
        self.error: BaseException | None = None

    async def run(self) -> None:
        try:
            with self.scope:
                self.results.append(await self._work())
        except BaseException as error:
            # Told to the caller. Nobody else is there to be told once the work was left alone.
            self.error = error
            if self.is_left:
                log.warning("%s ended after it was left alone: %r", self._name, error)
            if not isinstance(error, Exception) and self.is_left:
                raise
        finally:
            self.done.set()


async def run_or_abandon(
    group: TaskGroup,
    work: Callable[[], Awaitable[T]],
    *,
    name: str,
    grace_s: float = INTERRUPT_S,
    left: Callable[[], None] = lambda: None,
) -> T:
    """What the work returns or raises. When the caller is cancelled the work is, too, and has ``grace_s`` to end.

    A result that it gives then is returned. ``left`` is called if the work has not ended and is left alone.
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
            left()
        if not task.results:
            raise
    if task.error is not None:
        raise task.error
    return task.results[0]
