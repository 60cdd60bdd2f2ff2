"""Code from outside: tools, components, providers and callbacks of a caller may raise what would end more than them.

``with contained():`` around a call into such code turns two exceptions into a StrayExit, which is handled like any
other error of that code:

- a CancelledError while nothing was cancelled: a library that awaits a cancelled task of its own raises it, and a task
  group would take it for the end of all its tasks;
- SystemExit, which parsers of arguments raise for bad input.

A cancellation of ours passes, and so does KeyboardInterrupt.
"""

import asyncio
import math
from collections.abc import Iterator
from types import TracebackType

import anyio


class StrayExit(Exception):
    """Code from outside raised an exception that would have ended more than its own call."""


class contained:  # noqa: N801 # Used like a function, as ``contextlib.suppress`` is.
    """A block that runs code from outside. ``is_whole_task``: the block is all that its task does.

    A task that is cancelled from outside of anyio's scopes, as at the end of an event loop, passes the cancellation on.
    At the top of a task it goes no further: nothing but the task itself was meant.
    """

    def __init__(self, *, is_whole_task: bool = False) -> None:
        self._is_whole_task = is_whole_task

    def __enter__(self) -> None:
        self._cancellations = _cancellations()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception):
            return
        causes = tuple(_causes(error))
        if any(isinstance(cause, KeyboardInterrupt | GeneratorExit) for cause in causes):
            return
        if any(isinstance(cause, asyncio.CancelledError) for cause in causes) and self._is_cancelled():
            return
        raise StrayExit(", ".join(map(repr, causes))) from error

    def _is_cancelled(self) -> bool:
        """Whether the task was cancelled since the block began, or a scope around the block was."""
        if anyio.current_effective_deadline() == -math.inf:
            return True
        return not self._is_whole_task and _cancellations() > self._cancellations


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group, and in the groups in it."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    else:
        yield error
