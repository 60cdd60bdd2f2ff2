"""A read of a few rows, made where it is asked for: their pages are in memory, and a thread costs twenty times as much.

The event loop must not wait for a disk. So nothing is waited for here: a lock that is held, a read that turns out to
be slow, a long run of reads, and the threads that read take over.
"""

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import apsw

from turnkeeper.store.engines.sqlite_file import StoreFile

SLOW_S: Final = 0.001
"""A read that takes longer did not find its pages in memory, or brought too much."""
PAUSE_TIMES: Final = 5
"""After a slow read nothing is read here for so many times as long. It may have been bad luck: a busy machine."""
PAUSE_TIMES_AGAIN: Final = 100
"""The same if the read before was slow too: the disk is at work, and hardly any time may be lost to it."""
ROW_MAX: Final = 50
"""After so many reads one goes to a thread, so that a loop of reads lets others run."""

T = TypeVar("T")


class Seen(Generic[T]):
    """What was read."""

    def __init__(self, value: T) -> None:
        self.value = value


class Glance:
    """One connection, for whoever asks first; the others go to the threads."""

    def __init__(self, file: StoreFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = file, clock
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._is_closed = False
        self._quiet_until, self._was_slow, self._in_a_row = 0.0, False, 0

    def open(self) -> None:
        """Make the connection; on a thread that may wait for the disk. Without it nothing is read here."""
        with self._lock:
            if self._connection is None and not self._is_closed:
                self._connection = self._file.connect(patient=False)

    def read(self, work: Callable[[apsw.Connection], T]) -> Seen[T] | None:
        """What the function reads; None if a thread should do it."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            begun = self._clock()
            if self._connection is None or begun < self._quiet_until or self._in_a_row >= ROW_MAX:
                self._in_a_row = 0
                return None
            self._in_a_row += 1
            try:
                return Seen(work(self._connection))
            except (apsw.BusyError, apsw.LockedError):
                return None  # A thread may wait until it is free.
            finally:
                took = self._clock() - begun
                is_slow = took > SLOW_S
                if is_slow:
                    self._quiet_until = begun + took * (PAUSE_TIMES_AGAIN if self._was_slow else PAUSE_TIMES)
                self._was_slow = is_slow
        finally:
            self._lock.release()

    def close(self) -> None:
        """Let go of the connection for good."""
        with self._lock:
            self._is_closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                self._file.disconnect(connection)
