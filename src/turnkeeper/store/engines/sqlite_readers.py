"""The threads that read from a SQLite store, each with a connection of its own, so that no event loop waits."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

import apsw

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.sqlite_file import StoreFile
from turnkeeper.store.engines.sqlite_glance import Glance

READERS = 3
"""One long search or inspection leaves others free; more threads than this only compete for the interpreter."""

T = TypeVar("T")


class _Question(Generic[T]):
    """What to read, and who waits for it. Each has a waiting caller, so their number needs no other bound."""

    def __init__(self, work: Callable[[apsw.Connection], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[T] = self._loop.create_future()

    def answer(self, connection: apsw.Connection) -> None:
        """Read, on a reader's thread, and hand the result back."""
        if not self.done.cancelled():
            self._tell(self._settle, self._work(connection))

    def refuse(self, error: Exception) -> None:
        """Tell who waits why there is no answer."""
        self._tell(self._fail, error)

    def _tell(self, settle: Callable[..., None], outcome: object) -> None:
        # If that event loop has ended, so has everyone who waited.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle, outcome)

    def _settle(self, result: T) -> None:
        if not self.done.done():
            self.done.set_result(result)

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Readers:
    """Reads for any event loop, several at a time."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._glance = Glance(file)
        self._queue: SimpleQueue[_Question[object] | None] = SimpleQueue()
        self._lock = threading.Lock()  # So that nothing is queued behind the end.
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"sqlite-reader-{number}", daemon=True)
            for number in range(READERS)
        ]
        for thread in self._threads:
            thread.start()

    async def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """What the function reads with a connection it may use alone; what it does must not write."""
        question = _Question(work)
        with self._lock:
            if self._is_closed:
                raise self._closed()
            # The queue carries questions of every type; each gives its answer to its own caller.
            self._queue.put(question)  # type: ignore[arg-type]
        return await question.done

    async def glance(self, work: Callable[[apsw.Connection], T]) -> T:
        """The same for a few rows that are most likely in memory: read here and now, if nothing holds that up."""
        if self._is_closed:
            raise self._closed()
        try:
            seen = self._glance.read(work)
        except apsw.Error as error:
            raise self._file.unavailable(error) from error
        return seen.value if seen is not None else await self.read(work)

    def close(self) -> None:
        """Refuse new questions from now on; those already asked are answered."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                for _ in self._threads:
                    self._queue.put(None)

    def join(self) -> None:
        """Block until the last question is answered and every connection is closed."""
        for thread in self._threads:
            thread.join()
        self._glance.close()

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"the store {str(self._file.path)!r} was closed; open it again")

    def _work(self) -> None:
        connection: apsw.Connection | None = None
        while (question := self._queue.get()) is not None:
            try:
                if connection is None:
                    connection = self._file.connect()
                    self._glance.open()
                question.answer(connection)
            except apsw.Error as error:
                question.refuse(self._file.unavailable(error))
            except Exception as error:
                # The top of this thread: whatever it was, who waits must be told.
                question.refuse(error)
        if connection is not None:
            self._file.disconnect(connection)
