"""The one thread that writes to a SQLite store: what waits at the same time is committed together.

A commit waits for the disk, and that wait costs the same for one append as for a hundred. So the writer takes
all jobs that queued up while the disk was busy, writes them in one transaction, and answers after its commit.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue

import apsw
import msgspec

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.sqlite_batch import FRESH_MAX, Append, Batch, Head, Removal, index_fresh
from turnkeeper.store.engines.sqlite_file import StoreFile
from turnkeeper.store.engines.sqlite_pack import RUN, pack

QUEUE_JOBS_MAX = 1024
"""Callers beyond these wait for room before their job is accepted."""
GROUP_JOBS_MAX = 256
GROUP_BYTES_MAX = 8 * 1024 * 1024
"""A group stops growing here, so that nobody waits long for a neighbour's megabytes."""
CHECKPOINT_PAGES = 2000
TIDY_PAUSE_TIMES = 10
"""After a piece of tidying there is none for so many times as long: who writes or reads meanwhile hardly notices."""
HEADS_MAX = 10_000
"""Logs whose length and fence are remembered from one group to the next."""

Answer = tuple["asyncio.Future[None]", Exception | None]

log = logging.getLogger(__name__)


class _Order(msgspec.Struct, eq=False):
    """A job and who waits for it."""

    job: Append | Removal
    size: int
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[None]"


class Writer:
    """Accepts jobs from any event loop and answers each once it is on disk or refused."""

    def __init__(self, file: StoreFile, checkpoint_pages: int = CHECKPOINT_PAGES) -> None:
        self._file = file
        self._checkpoint_pages = checkpoint_pages
        self._queue: SimpleQueue[_Order | None] = SimpleQueue()
        self._lock = threading.Lock()  # Guards the three below; held for a few instructions only.
        self._queued = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._is_closed = False
        self._connection: apsw.Connection | None = None
        self._wal_pages = 0
        self._heads: dict[str, Head] = {}
        self._heads_version: object = None
        self._long: dict[str, None] = {}  # Logs of which something is to be packed, in the order they were seen.
        self._fresh = 0  # Texts noted since words were indexed last.
        self._tidy_at = 0.0
        self._thread = threading.Thread(target=self._work, name="sqlite-writer", daemon=True)
        self._thread.start()

    async def submit(self, job: Append | Removal, size: int) -> None:
        """Have the job written; returns once it is durable. If cancelled, it is done whole or not at all."""
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
                self._queue.put(None)

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

    # What follows runs on the writer's thread.

    def _work(self) -> None:
        group: list[_Order] = []
        is_open = True
        try:
            while is_open:
                group, is_open = self._next_group()
                # A caller that gave up before its turn is told nothing and has written nothing.
                group = [order for order in group if not order.done.cancelled()]
                self._answer(group, self._commit(group) if group else [])
                group = []
                self._checkpoint()
                self._tidy()
        except BaseException as error:
            # The top of this thread. Without it nobody would answer those who wait, nor those who come.
            log.exception("the writer of %s ended", self._file.path)
            self._roll_back()  # First, so that nobody finds the store locked.
            self._refuse_all(group, error)
        finally:
            self._disconnect()

    def _refuse_all(self, group: list[_Order], error: BaseException) -> None:
        """Tell all who wait, and all who come, that nothing is written any more."""
        self.close()
        with suppress(Empty):
            while True:  # The end that closing puts there may have been taken already.
                if (order := self._queue.get_nowait()) is not None:
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
        try:
            order = self._queue.get(timeout=self._until_tidying())
        except Empty:
            return [], True  # Nobody came; there is something to be tidied.
        while order is not None:
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
        return group, order is not None

    def _commit(self, group: list[_Order]) -> list[Exception | None]:
        """Write the jobs in one transaction; if that fails, each in its own, so only the guilty one fails."""
        try:
            return self._transact(group)
        except apsw.BusyError as error:
            # The lock is not a matter of one job; asking again for each would multiply the wait.
            self._roll_back()
            return [self._file.unavailable(error) for _ in group]
        except Exception as error:
            # The top of this thread: whatever it was, those who wait must be told, and the next group served.
            self._roll_back()
            if len(group) == 1:
                return [self._file.unavailable(error) if isinstance(error, apsw.Error) else error]
        return [answer for order in group for answer in self._commit([order])]

    def _transact(self, group: list[_Order]) -> list[Exception | None]:
        connection = self._connect()
        crash = self._file.crash
        connection.execute("BEGIN IMMEDIATE")
        crash("sqlite.begin")
        batch = Batch(connection, self._known_heads(connection))
        answers: list[Exception | None] = [batch.add(order.job) for order in group]
        batch.write()
        crash("sqlite.before-commit")
        connection.execute("COMMIT")
        crash("sqlite.after-commit")
        self._note_untidy(group)
        return answers

    def _note_untidy(self, group: list[_Order]) -> None:
        for job in (order.job for order in group if isinstance(order.job, Append)):
            self._fresh += len(job.texts)
            # A log that was removed in the same group has no head any more.
            if job.log is not None and (head := self._heads.get(job.log)) is not None and head.is_long:
                self._long[job.log] = None

    def _tidy(self) -> None:
        """Index words or pack a log, a little at a time, while nobody waits. Undone work is found again later."""
        if not self._is_untidy or self._connection is None or not self._queue.empty():
            return
        begun = time.monotonic()
        if begun < self._tidy_at:
            return
        try:
            self._tidy_some(self._connection)
            self._checkpoint()
        except apsw.Error:
            # Nothing is lost: all of it is there, only not in its shortest form. Later appends find it again.
            self._roll_back()
            self._long, self._fresh = {}, 0
        ended = time.monotonic()
        self._tidy_at = ended + TIDY_PAUSE_TIMES * (ended - begun)

    @property
    def _is_untidy(self) -> bool:
        return bool(self._long) or self._fresh > FRESH_MAX

    def _until_tidying(self) -> float | None:
        """How long to wait for jobs before there is time to tidy; without end if there is nothing to."""
        return max(0.0, self._tidy_at - time.monotonic()) if self._is_untidy and self._connection is not None else None

    def _tidy_some(self, connection: apsw.Connection) -> None:
        log = next(iter(self._long), None)
        connection.execute("BEGIN IMMEDIATE")
        self._file.crash("sqlite.begin-tidying")
        if log is None:
            self._fresh = index_fresh(connection)
        elif not self._packed(connection, log):
            del self._long[log]
        self._file.crash("sqlite.before-tidied")
        connection.execute("COMMIT")

    def _packed(self, connection: apsw.Connection, log: str) -> bool:
        head = Batch(connection, self._known_heads(connection)).head(log)
        if not head.is_long or not pack(connection, head.id, head.length):
            return False
        head.packed += RUN
        return True

    def _known_heads(self, connection: apsw.Connection) -> dict[str, Head]:
        """What earlier groups learned about logs, unless another process has written since."""
        version = connection.pragma("data_version")
        if version != self._heads_version or len(self._heads) > HEADS_MAX:
            self._heads, self._heads_version = {}, version
        return self._heads

    def _connect(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._file.connect()
            # Checkpoints are made after the answers, not inside a commit that somebody waits for.
            self._connection.set_wal_hook(self._note_wal)
        return self._connection

    def _note_wal(self, connection: apsw.Connection, schema: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        if self._wal_pages < self._checkpoint_pages or self._connection is None:
            return
        self._file.crash("sqlite.before-checkpoint")
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            # Nothing is lost: the log beside the file holds everything, and the next group tries again.
            return
        self._wal_pages = 0
        self._file.crash("sqlite.after-checkpoint")

    def _roll_back(self) -> None:
        """Leave no transaction open; a connection that cannot even do that is replaced."""
        self._heads = {}
        if self._connection is None or not self._connection.in_transaction:
            return
        try:
            self._connection.execute("ROLLBACK")
        except apsw.Error:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._file.disconnect(connection)

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
