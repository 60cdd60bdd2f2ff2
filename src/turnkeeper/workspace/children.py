"""Child processes: each has a guard, which ends everything that the process started."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint

from turnkeeper.core.limits import KILL_GRACE_S
from turnkeeper.core.sandbox import Confinement
from turnkeeper.workspace.guarded import Guarded
from turnkeeper.workspace.launcher import LAUNCHER

CHUNK_BYTES: Final = 64 * 1024
_KILL_S: Final = 5.0
"""Time limit for waiting until a killed process has ended."""


class RunningProcess:
    """A started process, its output, and its input if it has one."""

    def __init__(self, guarded: Guarded, output: int, input: int | None, grace_s: float) -> None:
        self._guarded, self._output, self._input, self._grace_s = guarded, output, input, grace_s
        self._hearing = anyio.Lock()

    @property
    def id(self) -> int:
        """The id of the process and of its process group."""
        return self._guarded.id

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._guarded.exit_code

    async def wait(self) -> int:
        """Wait for the process; its background processes may go on."""
        await self._hear_until(lambda: self._guarded.exit_code is not None)
        assert self._guarded.exit_code is not None
        return self._guarded.exit_code

    async def read(self) -> bytes:
        """Wait for the next piece of output; empty once all writers have closed it."""
        await checkpoint()
        while True:
            try:
                return os.read(self._output, CHUNK_BYTES)
            except BlockingIOError:
                await anyio.wait_readable(self._output)

    async def write(self, data: bytes) -> None:
        """Write to the input. Raises BrokenPipeError once the process has closed it, or we have."""
        await checkpoint()
        left = memoryview(data)
        while left:
            if self._input is None:
                raise BrokenPipeError("the input is closed")
            try:
                left = left[os.write(self._input, left) :]
            except BlockingIOError:
                with suppress(anyio.ClosedResourceError):
                    await anyio.wait_writable(self._input)

    def close_input(self) -> None:
        """Close the input, if it is open."""
        if self._input is not None:
            closing, self._input = self._input, None
            anyio.notify_closing(closing)
            os.close(closing)

    def read_rest(self) -> tuple[bytes, bool]:
        """The unread output, without waiting, and whether a writer still has it open."""
        pieces = []
        try:
            while piece := os.read(self._output, CHUNK_BYTES):
                pieces.append(piece)
        except BlockingIOError:
            return b"".join(pieces), True
        return b"".join(pieces), False

    async def end(self) -> None:
        """End everything that was started: SIGTERM, a grace period, then SIGKILL. Shielded from cancellation."""
        with anyio.CancelScope(shield=True):
            self._guarded.end(self._grace_s)
            with anyio.move_on_after(2 * self._grace_s + _KILL_S):
                await self._hear_until(lambda: not self._guarded.is_alive)

    def leave(self) -> Guarded | None:
        """Let the background processes go on after the block; the caller must end them. None if there are none."""
        if self._guarded.exit_code is None or not self._guarded.is_alive:
            return None
        self._guarded.is_left = True
        return self._guarded

    async def _hear_until(self, is_done: Callable[[], bool]) -> None:
        """Read messages of the guard until a condition holds."""
        await checkpoint()
        async with self._hearing:
            self._guarded.hear()
            while not is_done():
                await anyio.wait_readable(self._guarded)
                self._guarded.hear()


@asynccontextmanager
async def started(
    arguments: Sequence[str],
    directory: Path,
    environ: Mapping[str, str],
    *,
    grace_s: float = KILL_GRACE_S,
    confined: Confinement | None = None,
    has_input: bool = False,
    errors_to: int | None = None,
    is_of_model: bool = False,
) -> AsyncIterator[RunningProcess]:
    """A process without a terminal. Everything it started ends with the block, and if this program is killed.

    Its output joins both output streams; a process that ``has_input`` is one to talk to, and its errors are dropped
    or written to the file descriptor ``errors_to``.
    A process that ``is_of_model`` was chosen by a model, or runs what a model may have written. Raises OSError if it
    cannot be started, or not be ``confined`` as it should.
    """
    output, writing = os.pipe()
    reading, input = os.pipe() if has_input else (os.open(os.devnull, os.O_RDONLY), None)
    errors = writing if not has_input else os.open(os.devnull, os.O_WRONLY) if errors_to is None else os.dup(errors_to)
    try:
        os.set_blocking(output, False)
        start = partial(
            LAUNCHER.start,
            arguments,
            directory,
            environ,
            (reading, writing, errors),
            confined=confined,
            is_of_model=is_of_model,
        )
        try:
            # Not to be interrupted: a process that was just started would have no owner to end it.
            with anyio.CancelScope(shield=True):
                guarded = await to_thread.run_sync(start)
        except BaseException:
            if input is not None:
                os.close(input)
            raise
        finally:
            for one in {reading, writing, errors}:
                os.close(one)
        if input is not None:
            os.set_blocking(input, False)
        running = RunningProcess(guarded, output, input, grace_s)
        try:
            yield running
        finally:
            running.close_input()
            if guarded.is_alive and not guarded.is_left:
                await running.end()
    finally:
        os.close(output)
