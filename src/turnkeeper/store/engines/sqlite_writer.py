"""What writes to a SQLite store: a thread that commits together what waits at the same time.

A commit waits for the disk, and that wait costs the same for one append as for a hundred. So the writer takes
all jobs that queued up while the disk was busy, writes them in one transaction, and answers after its commit.
A job that has the store to itself is written where it was submitted, without the thread (sqlite_alone.py).
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from queue import Empty, SimpleQueue

import apsw
import msgspec

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.sqlite_alone import Alone
from turnkeeper.store.engines.sqlite_batch import Append
from turnkeeper.store.engines.sqlite_file import StoreFile
from turnkeeper.store.engines.sqlite_hand import CHECKPOINT_PAGES, REST_S, Hand, Job

QUEUE_JOBS_MAX = 1024
"""Callers beyond these wait for room before their job is accepted."""
GROUP_JOBS_MAX = 256
GROUP_BYTES_MAX = 8 * 1024 * 1024
"""A group stops growing here, so that nobody waits long for a neighbour's megabytes."""

Answer = tuple["asyncio.Future[None]", Exception | None]

log = logging.getLogger(__name__)


class _Order(msgspec.Struct, eq=False):
    """A job and who waits for it."""

    job: Job
    size: int
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[None]"


class _Signal(Enum):
    """What the thread is told besides jobs."""

    END = "end"
    TIDY = "tidy"


class Writer:
    """Accepts jobs from any event loop and answers each once it is on disk or refused."""

    def __init__(
        self,
        file: StoreFile,
        checkpoint_pages: int = CHECKPOINT_PAGES,
        clock: Callable[[], float] = time.monotonic,
        rest_s: float = REST_S,
    ) -> None:
        self._file = file
        self._alone = Alone(clock)
        self._queue: SimpleQueue[_Order | _Signal] = SimpleQueue()
        self._lock = threading.Lock()  # Guards the three below; held for a few instructions only.
        self._queued = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._is_closed = False
        self._writing = threading.Lock()  # Held by who uses the hand.
        self._hand = Hand(file, checkpoint_pages, clock, rest_s)
        self._is_called = False  # Whether the thread knows that there is something to be tidied.
        self._thread = threading.Thread(target=self._work, name="sqlite-writer", daemon=True)
        self._thread.start()

    async def submit(self, job: Job, size: int) -> None:
        """Have the job written; returns once it is durable. If cancelled, it is done whole or not at all."""
        if self._write_here(job, size):
            return
        loop = asyncio.get_running_loop()
        order = _Order(job, size, loop, loop.create_future())
        while (room := self._offer(order)) is not None:
            await room
        await order.done

    def close(self) -> None:
        """Refuse new jobs from now on; the accepted ones are still done."""
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
            if not was_closed:
                self._queue.put(_Signal.END)

    def join(self) -> None:
        """Block until the accepted jobs are done and the store is let go of."""
        self._thread.join()

    def _offer(self, order: _Order) -> "asyncio.Future[None] | None":
        """Queue the order, or give a future that ends when it is worth trying again."""
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable(f"the store {str(self._file.path)!r} was closed; open it again")
            if self._queued < QUEUE_JOBS_MAX:
                self._queued += 1
                self._queue.put(order)
                return None
            room = order.loop.create_future()
            self._waiting.append((order.loop, room))
            return room

    def _write_here(self, job: Job, size: int) -> bool:
        """Write a job that has the store to itself; False if the thread should, because others are at work."""
        if not isinstance(job, Append) or not self._alone.may_write(job.log, is_new=job.after == 0, size=size):
            return False
        if self._queued or not self._writing.acquire(blocking=False):
            return False
        try:
            if self._is_closed or not self._hand.is_connected:
                return False
            with self._alone:
                answer = self._hand.write_at_once(job)
        except apsw.BusyError:
            self._hand.roll_back()
            self._alone.disturbed()
            return False
        except BaseException as error:
            self._hand.roll_back()
            if isinstance(error, apsw.Error):
                raise self._file.unavailable(error) from error
            raise
        finally:
            self._writing.release()
        if self._hand.is_untidy and not self._is_called:
            self._is_called = True
            self._queue.put(_Signal.TIDY)
        if answer is not None:
            raise answer
        return True

    # What follows runs on the writer's thread.

    def _work(self) -> None:
        group: list[_Order] = []
        is_open = True
        try:
            while is_open:
                group, is_open = self._next_group()
                with self._writing:
                    # A caller that gave up before its turn is told nothing and has written nothing.
                    group = [order for order in group if not order.done.cancelled()]
                    answers = self._commit(group) if group else []
                self._answer(group, answers)
                group = []
                if self._hand.is_untidy:
                    with self._writing:
                        self._hand.tidy(is_idle=self._queue.empty())
            with self._writing:
                self._hand.finish_removals()
        except BaseException as error:
            # The top of this thread. Without it nobody would answer those who wait, nor those who come.
            log.exception("the writer of %s ended", self._file.path)
            self._hand.roll_back()  # First, so that nobody finds the store locked.
            self._refuse_all(group, error)
        finally:
            self._hand.let_go()

    def _refuse_all(self, group: list[_Order], error: BaseException) -> None:
        """Tell all who wait, and all who come, that nothing is written any more."""
        self.close()
        with suppress(Empty):
            while True:  # The end that closing puts there may have been taken already.
                if not isinstance(order := self._queue.get_nowait(), _Signal):
                    group.append(order)
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        reason = f"the store {str(self._file.path)!r}: its writer ended ({error!r}); open it again"
        self._answer(group, [StoreUnavailable(reason) for _ in group])
        _settle([(loop, (room, None)) for loop, room in waiting])

    def _next_group(self) -> tuple[list[_Order], bool]:
        """Wait for a job and take what else is there with it; and whether there will be another group.

        If there is something to tidy, the wait has an end.
        """
        group: list[_Order] = []
        size = 0
        self._is_called = False  # First, so that no call is lost.
        patience = self._hand.until_tidying()
        self._is_called = patience is not None  # Then it need not be called, for it comes by itself.
        try:
            order = self._queue.get(timeout=patience)
        except Empty:
            return [], True  # Nobody came; there is something to be tidied.
        while not isinstance(order, _Signal):
            group.append(order)
            size += order.size
            if len(group) >= GROUP_JOBS_MAX or size >= GROUP_BYTES_MAX:
                break
            try:
                order = self._queue.get_nowait()
            except Empty:
                break
        with self._lock:
            self._queued -= len(group)
            waiting, self._waiting = self._waiting, deque()
        _settle([(loop, (room, None)) for loop, room in waiting])
        return group, order is not _Signal.END

    def _commit(self, group: list[_Order]) -> list[Exception | None]:
        """Write the jobs in one transaction; if that fails, each in its own, so only the guilty one fails."""
        try:
            return self._hand.write([order.job for order in group])
        except apsw.BusyError as error:
            # The lock is not a matter of one job; asking again for each would multiply the wait.
            self._hand.roll_back()
            return [self._file.unavailable(error) for _ in group]
        except Exception as error:
            # The top of this thread: whatever it was, those who wait must be told, and the next group served.
            self._hand.roll_back()
            if len(group) == 1:
                return [self._file.unavailable(error) if isinstance(error, apsw.Error) else error]
        return [answer for order in group for answer in self._commit([order])]

    def _answer(self, group: list[_Order], answers: list[Exception | None]) -> None:
        _settle([(order.loop, (order.done, answer)) for order, answer in zip(group, answers, strict=True)])


def _settle(answers: list[tuple[asyncio.AbstractEventLoop, Answer]]) -> None:
    """Hand answers back, waking each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for loop, answer in answers:
        by_loop.setdefault(loop, []).append(answer)
    for loop, mine in by_loop.items():
        try:
            loop.call_soon_threadsafe(_tell, mine)
        except RuntimeError:
            # That event loop has ended, and with it everyone who waited for these answers.
            continue


def _tell(answers: list[Answer]) -> None:
    for future, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
