"""Contain exceptions of code from outside: tools, components, providers and callbacks.

``with contained():`` turns two exceptions of such code into a StrayExit, which is handled like any other error:

- a CancelledError without a cancellation, which a library raises when it awaits a cancelled task, and which a task
  group would take for its own cancellation;
- SystemExit, which argument parsers raise for wrong input.

Real cancellations and KeyboardInterrupt pass.
"""

import asyncio
import math
from collections.abc import Iterator
from types import TracebackType

import anyio


class StrayExit(Exception):
    """Code from outside raised a CancelledError without a cancellation, or SystemExit."""


class contained:  # noqa: N801 # Used like a function, as ``contextlib.suppress`` is.
    """A block that runs code from outside.

    A cancellation of the task that comes from no anyio scope, as at the end of an event loop, passes, unless
    ``is_whole_task``: then the block is the whole task, and the cancellation ends only that task.
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
        """Whether the task, or a scope around the block, was cancelled since the block began."""
        if anyio.current_effective_deadline() == -math.inf:
            return True
        return not self._is_whole_task and _cancellations() > self._cancellations


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group and of its nested groups."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    else:
        yield error
