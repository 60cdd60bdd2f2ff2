"""Git work: git processes that run in a worker thread under one deadline, and end when the work is cancelled."""

import errno
import fcntl
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import Final, TypeVar

from anyio import to_thread

from turnkeeper.model.refusal import Conflict, NotFound, Refusal
from turnkeeper.workspace import git
from turnkeeper.workspace.children import CHUNK_BYTES

T = TypeVar("T")

_LOOK_AGAIN_S: Final = 0.01
_WORDS_MAX: Final = 300
_SLOW_S: Final = 2.0
"""Time after which ``when_slow`` checks whether git waits for something that never comes."""
_FULL: Final = ("No space left on device", "Out of diskspace", "Disk quota exceeded")
"""Error messages of git for a full disk."""
_KILLED_S: Final = 5.0
"""Time limit for waiting for a killed process: the system may keep it while a disk does not respond."""


class GitFailed(Exception):
    """Git ended with an error. The message is git's own."""


class GitStopped(Exception):
    """Git was not run to its end: it took too long, is not installed, or its caller was cancelled."""


class TooManyNames(Exception):
    """Git listed more names than allowed."""


def is_full(error: Exception) -> bool:
    """Whether an error means that the disk, or the disk quota of the user, is full."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, GitFailed) and any(words in str(error) for words in _FULL)


def refusal(root: Path, error: Exception) -> Refusal:
    """The refusal for a failure of git or of the disk in an operation on the snapshots of a directory."""
    if is_full(error):
        return Conflict(f"the disk with the snapshots of {str(root)!r} is full; make room and try again ({error})")
    if isinstance(error, GitFailed):
        return NotFound(f"a snapshot of {str(root)!r} is damaged or no longer kept: {error}")
    return NotFound(f"the snapshots of {str(root)!r} cannot be reached: {error}; try again")


async def in_thread(timeout_s: float, do: "Callable[[GitWork], T]") -> T:
    """Do work in a worker thread. A cancellation kills its git processes; the thread ends by itself."""
    work = GitWork(timeout_s)
    try:
        return await to_thread.run_sync(do, work, abandon_on_cancel=True)
    finally:
        work.stop()


class GitWork:
    """One piece of work: a deadline for all its git processes together."""

    def __init__(self, timeout_s: float) -> None:
        self._until = time.monotonic() + timeout_s
        self._running: set[Popen[bytes]] = set()
        self._guard = threading.Lock()
        self._is_stopped = False
        self.when_slow: Callable[[], None] = lambda: None
        """Called when a process is slow. Raises GitStopped if the process would never end."""

    def stop(self) -> None:
        """Kill the running processes, and start no more."""
        with self._guard:
            self._is_stopped = True
            for process in self._running:
                _kill(process)

    def left_s(self) -> float:
        """The seconds that are left. Raises GitStopped if there are none."""
        left = self._until - time.monotonic()
        if self._is_stopped or left <= 0:
            raise GitStopped("git took too long")
        return left

    @contextmanager
    def started(
        self,
        arguments: Sequence[str],
        directory: Path,
        environ: Mapping[str, str],
        *,
        keep_open: Sequence[int] = (),
        has_input: bool = False,
        is_quiet: bool = False,
    ) -> "Iterator[Popen[bytes]]":
        """A git process. It is killed at the end of the block if it still runs.

        ``is_quiet`` drops its warnings: a process whose output ``names`` reads must not block on them.
        """
        with self._guard:
            self.left_s()
            try:
                process = Popen(
                    ["git", *git.HARMLESS, *arguments],
                    cwd=directory,
                    env=environ,
                    stdin=PIPE if has_input else DEVNULL,
                    stdout=PIPE,
                    stderr=DEVNULL if is_quiet else PIPE,
                    pass_fds=keep_open,
                    process_group=0,
                )
            except (OSError, ValueError) as error:
                raise GitStopped(f"git cannot be started: {error}") from error
            self._running.add(process)
        try:
            yield process
        finally:
            with self._guard:
                self._running.discard(process)
            _end(process)

    def finish(self, process: "Popen[bytes]", given: bytes | None = None) -> bytes:
        """Wait for a process and return its output. Raises GitFailed if it fails."""
        return self.ended(process, given)[0]

    def ended(self, process: "Popen[bytes]", given: bytes | None = None) -> tuple[bytes, bytes]:
        """Wait for a process and return its output and its warnings. Raises GitFailed if it fails."""
        try:
            output, errors = process.communicate(given, timeout=min(_SLOW_S, self.left_s()))
        except TimeoutExpired:
            self.when_slow()
            try:
                output, errors = process.communicate(timeout=self.left_s())
            except TimeoutExpired as error:
                raise GitStopped("git took too long") from error
        if process.returncode < 0:
            raise GitStopped(f"git was ended by signal {-process.returncode}")
        if process.returncode:
            words = (errors or b"").decode("utf-8", "replace").strip()[-_WORDS_MAX:]
            raise GitFailed(words or f"git ended with code {process.returncode}")
        return output, errors or b""

    def names(self, process: "Popen[bytes]", names_max: int) -> list[bytes]:
        """The names that a process prints, each ended by a NUL. Raises TooManyNames as soon as there are more."""
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        pieces: list[bytes] = []
        count = 0
        while True:
            if not ready.poll(min(_SLOW_S, self.left_s()) * 1000):
                self.when_slow()
                if not ready.poll(self.left_s() * 1000):
                    raise GitStopped("git took too long")
            piece = os.read(descriptor, CHUNK_BYTES)
            if not piece:
                break
            pieces.append(piece)
            count += piece.count(b"\0")
            if count > names_max:
                raise TooManyNames(f"more than {names_max:,}")
        self.finish(process)
        return [name for name in b"".join(pieces).split(b"\0") if name]


def _kill(process: "Popen[bytes]") -> None:
    """Kill a process with those that it started: they would keep its output and the lock open."""
    if process.poll() is None:  # The process id cannot be reused before the process is waited for.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, SIGKILL)


def _end(process: "Popen[bytes]") -> None:
    """Kill a process if it runs, and close its pipes. What it left in them is not waited for."""
    _kill(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError, ValueError):
                pipe.close()
    with suppress(TimeoutExpired):
        process.wait(_KILLED_S)


@contextmanager
def locked(file: Path, work: GitWork, timeout_s: float) -> Iterator[int]:
    """Hold a lock against other tasks and processes; the descriptor is to be kept open by git processes.

    A git process that outlives a killed parent then still holds the lock, so what it writes is never taken for left
    over. Raises GitStopped after the timeout.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise GitStopped("another process works in the snapshot repository") from None
                work.left_s()
                time.sleep(_LOOK_AGAIN_S)
        yield descriptor
    finally:
        os.close(descriptor)
