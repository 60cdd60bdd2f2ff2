"""Reads from a SQLite store: on the event loop's thread if they are quick, else on a thread pool."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import apsw

from turnkeeper.store.engines.sqlite.connection import StoreFile

READ_THREADS = 3
"""Enough for short reads beside a long one; more threads would only compete for the interpreter."""

T = TypeVar("T")


class InlinePolicy:
    """Decides whether a read of a few rows may run on the event loop's thread.

    Such a read takes some 20 us if its pages are in memory, and ten times as long through a thread. If it waits for the
    disk, it blocks the event loop. So the time of each inline read is added up. Once the sum passes LIMIT_S, reads go
    to a thread, and each subtracts LIMIT_S. Quick reads thus let other tasks run now and then, and most slow reads run
    on threads.
    """

    LIMIT_S: Final = 0.002

    def __init__(self) -> None:
        self._charged_s = 0.0

    def allows(self) -> bool:
        """Whether the next read may be inline."""
        if self._charged_s < self.LIMIT_S:
            return True
        self._charged_s -= self.LIMIT_S
        return False

    def charge(self, seconds: float) -> None:
        """Add the time of an inline read."""
        self._charged_s += seconds


class SqliteReader:
    """Runs reads for any event loop, several at a time."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._pool = ThreadPoolExecutor(READ_THREADS, "sqlite-reader")
        self._idle: list[apsw.Connection] = []
        self._policy = InlinePolicy()
        # The inline connection never waits for a lock of another process. A thread makes it with the first read.
        self._inline: apsw.Connection | None = None
        self._inline_lock = threading.Lock()

    async def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run a read function on a thread, with a connection of its own."""
        try:
            reading = asyncio.get_running_loop().run_in_executor(self._pool, self._read_here, work)
        except RuntimeError as error:  # The pool was shut down.
            raise self._file.closed() from error
        return await reading

    async def read_few(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run a read function for a few rows inline if the policy allows it, else on a thread."""
        if not self._inline_lock.acquire(blocking=False):
            return await self.read(work)
        try:
            if self._inline is not None and self._policy.allows():
                begun = time.perf_counter()
                try:
                    return work(self._inline)
                except (apsw.BusyError, apsw.LockedError):
                    pass  # A thread may wait until the store is free.
                except apsw.Error as error:
                    raise self._file.unavailable(error) from error
                finally:
                    self._policy.charge(time.perf_counter() - begun)
        finally:
            self._inline_lock.release()
        return await self.read(work)

    async def version(self) -> int:
        """A number that changes with every commit of another connection; the inline connection does not write."""

        def ask(_: apsw.Connection) -> int:
            with self._inline_lock:
                assert self._inline is not None, "a thread makes it before it reads"
                return int(self._inline.pragma("data_version"))

        return await self.read(ask)

    def close(self) -> None:
        """Refuse new reads on threads; accepted reads are finished."""
        self._pool.shutdown(wait=False)

    def join(self) -> None:
        """Block until the last read is finished, and close all connections."""
        self._pool.shutdown()
        with self._inline_lock:
            for connection in (*self._idle, self._inline):
                if connection is not None:
                    self._file.disconnect(connection)
            self._idle, self._inline = [], None

    def _read_here(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            if self._inline is None:
                with self._inline_lock:
                    self._inline = self._inline or self._file.connect(waits=False)
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._file.connect()
            try:
                return work(connection)
            finally:
                self._idle.append(connection)
        except apsw.Error as error:
            raise self._file.unavailable(error) from error
