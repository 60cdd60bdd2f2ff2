"""Child processes: each runs in its own process group, which is terminated as a whole."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Final

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint

from turnkeeper.core.limits import KILL_GRACE_S
from turnkeeper.core.sandbox import Confinement
from turnkeeper.workspace import sandbox
from turnkeeper.workspace.watchdog import Watchdog

CHUNK_BYTES: Final = 64 * 1024
_LOOK_AGAIN_S: Final = 0.02


class RunningProcess:
    """A started process, its output, and its input if it has one."""

    def __init__(self, process: "Popen[bytes]", output: int, input: int | None, grace_s: float) -> None:
        self._process, self._output, self._input, self._grace_s = process, output, input, grace_s
        self._waiting = anyio.Lock()

    @property
    def id(self) -> int:
        """The id of the process and of its process group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for the process; what it started in the background may go on."""
        async with self._waiting:
            if self._process.poll() is None:
                await _ended(self._process)
        return self._process.wait()

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

    def read_rest(self) -> bytes:
        """The unread output, without waiting."""
        pieces = []
        try:
            while piece := os.read(self._output, CHUNK_BYTES):
                pieces.append(piece)
        except BlockingIOError:
            pass
        return b"".join(pieces)

    async def end(self) -> None:
        """Terminate the process group: SIGTERM, a grace period, then SIGKILL. Shielded from cancellation."""
        with anyio.CancelScope(shield=True):
            # A stopped process handles SIGTERM only after SIGCONT.
            if self._send(signal.SIGTERM) and self._send(signal.SIGCONT):
                with anyio.move_on_after(self._grace_s):
                    await self.wait()
                    # Nobody tells us of the end of a group whose leader is gone: we have to look.
                    while self._send(0) and _has_living(self.id):  # noqa: ASYNC110
                        await anyio.sleep(_LOOK_AGAIN_S)
            self._send(signal.SIGKILL)
            with anyio.move_on_after(self._grace_s):
                await self.wait()

    def _send(self, number: int) -> bool:
        """Send a signal to the group; False if the group no longer exists."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


async def _ended(process: "Popen[bytes]") -> None:
    """Wait until a process has ended; it is still there to be asked for its exit code."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # Not on every system, and not where a filter of system calls does not know it.
        await to_thread.run_sync(process.wait, abandon_on_cancel=True)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def _has_living(group: int) -> bool:
    """Whether a group has members that are not zombies. In a container, zombies are often never reaped."""
    processes = [entry for entry in os.listdir("/proc") if entry.isdecimal()] if os.path.isdir("/proc/self") else []
    for number in processes:
        try:
            state, _, own, *_ = Path("/proc", number, "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(own) == group and state not in "ZX":
            return True
    # Without /proc, an existing group counts as living.
    return not processes


@asynccontextmanager
async def started(
    arguments: Sequence[str],
    directory: Path,
    environ: Mapping[str, str],
    *,
    grace_s: float = KILL_GRACE_S,
    watchdog: Watchdog | None = None,
    confined: Confinement | None = None,
    has_input: bool = False,
) -> AsyncIterator[RunningProcess]:
    """A process without a terminal. Its group is terminated if the block fails or ends before the process.

    Its output joins both output streams; a process that ``has_input`` is one to talk to, and its errors are dropped.
    With a ``watchdog``, which takes the place of the input, the group also ends if this process is killed. Raises
    OSError if it cannot be started, or not be ``confined`` as it should.
    """
    assert watchdog is None or not has_input, "the watchdog uses the input"
    output, writing = os.pipe()
    reading, input = os.pipe() if has_input else (None, None)
    try:
        os.set_blocking(output, False)
        try:
            start = partial(_start, arguments, directory, environ, writing, reading, watchdog, confined)
            # Not to be interrupted: a process that is started in vain would be nobody's to end.
            with anyio.CancelScope(shield=True):
                process = await to_thread.run_sync(start)
        except BaseException:
            if input is not None:
                os.close(input)
            raise
        finally:
            os.close(writing)
            if reading is not None:
                os.close(reading)
        if input is not None:
            os.set_blocking(input, False)
        running = RunningProcess(process, output, input, grace_s)
        is_done = False
        try:
            yield running
            is_done = running.exit_code is not None
        finally:
            running.close_input()
            if not is_done:
                await running.end()
            if watchdog is not None:
                watchdog.release(running.id)
    finally:
        os.close(output)


def _start(
    arguments: Sequence[str],
    directory: Path,
    environ: Mapping[str, str],
    writing: int,
    reading: int | None,
    watchdog: Watchdog | None,
    confined: Confinement | None,
) -> "Popen[bytes]":
    inner = list(arguments) if confined is None else sandbox.arguments_of(confined, list(arguments))
    # Not inside the sandbox: the watchdog may have to be started first.
    enrolled = inner if watchdog is None else watchdog.enrolled(inner)
    stdin = reading if reading is not None else DEVNULL if watchdog is None else watchdog.pipe()

    def start() -> "Popen[bytes]":
        return Popen(
            enrolled,
            stdin=stdin,
            stdout=writing,
            stderr=writing if reading is None else DEVNULL,
            cwd=directory,
            env=environ,
            start_new_session=True,
        )

    return start() if confined is None else sandbox.started(confined, start)
