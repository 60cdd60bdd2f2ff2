"""Child processes: each runs in its own process group, which is terminated as a whole."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Final

import anyio
from anyio.abc import Process
from anyio.lowlevel import checkpoint

from turnkeeper.core.limits import KILL_GRACE_S
from turnkeeper.workspace.watchdog import Watchdog

CHUNK_BYTES: Final = 64 * 1024
_LOOK_AGAIN_S: Final = 0.02


class RunningProcess:
    """A started process. Its output joins both output streams of its process group."""

    def __init__(self, process: Process, output: int, grace_s: float) -> None:
        self._process, self._output, self._grace_s = process, output, grace_s

    @property
    def id(self) -> int:
        """The id of the process and of its process group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for the process to exit; its background processes may still run."""
        return await self._process.wait()

    async def read(self) -> bytes:
        """Wait for the next piece of output; empty once all writers have closed it."""
        await checkpoint()
        while True:
            try:
                return os.read(self._output, CHUNK_BYTES)
            except BlockingIOError:
                await anyio.wait_readable(self._output)

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
                    await self._process.wait()
                    # The system reports no end of a group whose leader has exited, so it is polled.
                    while self._send(0) and _has_living(self.id):  # noqa: ASYNC110
                        await anyio.sleep(_LOOK_AGAIN_S)
            self._send(signal.SIGKILL)
            with anyio.move_on_after(self._grace_s):
                await self._process.wait()

    def _send(self, number: int) -> bool:
        """Send a signal to the group; False if the group no longer exists."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


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
) -> AsyncIterator[RunningProcess]:
    """A process without terminal and input. Its group is terminated if the block fails or ends before the process.

    With a ``watchdog`` the group is also terminated if this process is killed.
    """
    output, writing = os.pipe()
    try:
        os.set_blocking(output, False)
        try:
            process = await anyio.open_process(
                list(arguments) if watchdog is None else watchdog.enrolled(arguments),
                stdin=DEVNULL if watchdog is None else watchdog.pipe(),
                stdout=writing,
                stderr=writing,
                cwd=directory,
                env=environ,
                start_new_session=True,
            )
        finally:
            os.close(writing)
        running = RunningProcess(process, output, grace_s)
        is_done = False
        try:
            yield running
            is_done = running.exit_code is not None
        finally:
            if not is_done:
                await running.end()
            if watchdog is not None:
                watchdog.release(running.id)
    finally:
        os.close(output)
