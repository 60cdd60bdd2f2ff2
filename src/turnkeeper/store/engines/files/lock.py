"""The writers' lock of a store, and the counter by which readers detect writes."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.files.disk import FILE_MODE, Disk, read_range

WAIT_S = 30.0
PAUSE_S = 0.0005


class StoreLock:
    """The writers' lock. The operating system releases it when its holder dies.

    Each holder opens the file again, so ``flock`` also excludes other threads of the process.
    """

    def __init__(self, file: str, *, wait_s: float = WAIT_S) -> None:
        self._file, self._wait_s = file, wait_s

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock. Raises StoreUnavailable after a timeout: a stopped process must not block all others."""
        deadline = time.monotonic() + self._wait_s
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            while not _is_taken(handle):
                if time.monotonic() > deadline:
                    held = f"another process has held {self._file} for {self._wait_s:g} s"
                    raise StoreUnavailable(f"{held}; end it or wait for it")
                time.sleep(PAUSE_S)
            yield
        finally:
            os.close(handle)


class Counter:
    """A number in a file that the holder of the lock increments before and after it places a write.

    An odd number means that files are being changed. Two equal even numbers mean that nothing changed between them.
    """

    def __init__(self, file: str, disk: Disk) -> None:
        self.file, self._disk = file, disk

    def load(self) -> int:
        """The number now."""
        return int.from_bytes(read_range(self.file, 0, 8), "little")

    def begin(self) -> None:
        """Make the number odd: files are about to be changed."""
        self._save(self.load() | 1)

    def end(self) -> None:
        """Make the number even: every file is in place."""
        self._save((self.load() | 1) + 1)

    def _save(self, number: int) -> None:
        self._disk.write(self.file, number.to_bytes(8, "little"), 0)


def _is_taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
