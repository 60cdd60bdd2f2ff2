"""Shared and exclusive locks between tasks, threads and processes, let go by the system when their holder dies.

Each holder has an open file of its own, so ``flock`` keeps threads of one process apart just as it does processes.
Whoever wants the lock first passes a gate, one at a time, and waits for the lock inside it. So a writer that waits for
readers to leave lets no new ones in, and cannot be starved by them.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from turnkeeper.store.engine import StoreUnavailable

WAIT_S = 30.0
PAUSE_S, PAUSE_MAX_S = 0.0001, 0.002


class FileLock:
    """A lock with the name of a file in a directory."""

    def __init__(self, directory: str, name: str, *, wait_s: float = WAIT_S) -> None:
        self._gate, self._lock = f"{directory}/{name}.gate", f"{directory}/{name}.lock"
        self._wait_s = wait_s

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock together with other readers. Raises StoreUnavailable after a long wait."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock alone. Raises StoreUnavailable after a long wait."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _held(self, mode: int) -> Iterator[None]:
        deadline = time.monotonic() + self._wait_s
        gate = self._take(self._gate, fcntl.LOCK_EX, deadline)
        try:
            lock = self._take(self._lock, mode, deadline)
        finally:
            os.close(gate)
        try:
            yield
        finally:
            os.close(lock)

    def _take(self, file: str, mode: int, deadline: float) -> int:
        """Asked again and again instead of once and for ever: a stopped process must not hang all the others."""
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        pause = PAUSE_S
        while True:
            try:
                fcntl.flock(handle, mode | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(pause)
                    pause = min(pause * 2, PAUSE_MAX_S)
                    continue
                os.close(handle)
                raise StoreUnavailable(
                    f"another process has held {file} for {self._wait_s:g} s; end it or wait for it"
                ) from None
            except BaseException:
                os.close(handle)
                raise
            return handle
