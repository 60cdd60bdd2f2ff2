"""The writer of a Postgres store: a thread that commits the waiting jobs in one transaction (group commit).

A commit of a hundred jobs waits for the disk of the server as long as a commit of one. So the thread takes all jobs
that queued up during the last commit, writes them in one transaction, and answers each after the commit.

If the connection is lost before COMMIT was sent, the transaction is tried again over a new one. If it is lost after
that, the outcome is looked up and nothing is repeated that was done.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from os import urandom
from queue import Empty, SimpleQueue
from typing import Final

import psycopg
from psycopg import errors

from turnkeeper.store.engine import EngineError, StoreUnavailable
from turnkeeper.store.engines.jobs import Append, Call, Job, Removal, answer
from turnkeeper.store.engines.postgres.connection import Connection, Database, disconnect, is_lost
from turnkeeper.store.engines.postgres.news import tell
from turnkeeper.store.engines.postgres.transaction import LogVanished, Transaction

GROUP_JOBS_MAX: Final = 256
"""Jobs in one transaction; more would delay the answer to the first."""
GROUP_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of the jobs in one transaction, unless one alone has more."""
TELL_S: Final = 0.02
"""Seconds between two messages to other processes: each takes as long as a group of appends waits for the server."""
TRIES_MAX: Final = 8
"""Tries of a transaction that the server ends because of others, such as for a deadlock."""

_AGAIN: Final = (errors.DeadlockDetected, errors.SerializationFailure)

# The rows of processes that have long ended become one, so that the sum of the counts, the version, stays.
_TIDY: Final = (
    "WITH gone AS (DELETE FROM writer WHERE id <> '' AND seen < now() - interval '7 days' RETURNING count)"
    " INSERT INTO writer (id, count, token, seen) SELECT '', sum(count), '', now() FROM gone HAVING count(*) > 0"
    " ON CONFLICT (id) DO UPDATE SET count = writer.count + excluded.count"
)

log = logging.getLogger(__name__)


class WriteConnection:
    """The one connection that writes. Used by the writer's thread only."""

    def __init__(self, database: Database, writer: bytes) -> None:
        self._database, self._writer = database, writer
        self._connection: Connection | None = None
        self._news: list[str] = []
        self._not_before = 0.0
        self._is_tidy = False

    def write(self, jobs: Sequence[Job]) -> list[EngineError | None]:
        """Do the jobs in one transaction. Returns the refusal of each job, or None if it is durable.

        Any other error is raised and concerns all jobs, none of which is done then; but see OutcomeUnknown.
        """
        patience = self._database.patience(self._database.reconnect_s)
        tries = 0
        while True:
            transaction = Transaction(self._database, jobs, self._writer, urandom(16))
            try:
                transaction.run(self._connect())
            except LogVanished:
                self.roll_back()
                continue
            except psycopg.Error as error:
                lost, tries = is_lost(error), tries + 1
                self.close() if lost else self.roll_back()
                if not (lost and transaction.is_committing and self._was_committed(transaction, error)):
                    if not lost and (tries == TRIES_MAX or not isinstance(error, _AGAIN)):
                        raise
                    if lost and not patience.pause():
                        raise
                    continue
            self._news.extend(transaction.written_logs())
            return transaction.refusals

    def _was_committed(self, transaction: Transaction, lost: psycopg.Error) -> bool:
        """Whether a transaction was committed during whose commit the connection was lost."""
        patience = self._database.patience(self._database.outcome_s)
        while True:
            try:
                return transaction.is_in(self._connect())
            except psycopg.Error as error:
                self.roll_back()
                # A lock is held by the transaction in question, as long as the server has not noticed the loss.
                if not (is_lost(error) or isinstance(error, errors.LockNotAvailable)) or not patience.pause():
                    raise self._database.unknown(lost) from error

    def seconds_until_telling(self) -> float | None:
        """Seconds until other processes are to be told; None if there is nothing to tell."""
        return max(0.0, self._not_before - time.monotonic()) if self._news else None

    def tell(self, *, now: bool = False) -> None:
        """Tell other processes which logs were written, if it is time. If it fails, they find out by looking."""
        if not now and self.seconds_until_telling() != 0:
            return
        names, self._news = self._news, []
        self._not_before = time.monotonic() + TELL_S
        if not names or self._connection is None:
            return
        try:
            tell(self._connection, self._database, self._writer, names)
            if not self._is_tidy:
                self._connection.execute(_TIDY)
                self._is_tidy = True
        except psycopg.Error:
            self.close()

    def roll_back(self) -> None:
        """Leave no transaction open; a connection that cannot roll back is replaced."""
        if self._connection is None:
            return
        try:
            if not self._connection.closed:
                self._connection.rollback()
                return
        except psycopg.Error:
            pass
        self.close()

    def close(self) -> None:
        """Close the connection; the next write makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            disconnect(connection)

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.connect()
        return self._connection


class Writer:
    """Accepts jobs from any event loop and answers each once it is durable or refused."""

    def __init__(self, database: Database, writer: bytes) -> None:
        self._database = database
        self._connection = WriteConnection(database, writer)
        self._queue: SimpleQueue[Call | None] = SimpleQueue()  # Each job has a waiting caller, which bounds the queue.
        self._lock = threading.Lock()  # No job is queued behind the None that ends the thread.
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="postgres-writer", daemon=True)
        self._thread.start()

    async def submit(self, job: Job) -> None:
        """Write a job; returns once it is durable. A cancelled job is done completely or not at all."""
        done = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._is_closed:
                raise self._database.closed()
            self._queue.put((job, done))
        await done

    def close(self) -> None:
        """Refuse new jobs; accepted jobs are finished."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)

    def join(self) -> None:
        """Block until the accepted jobs are done and the connection is closed."""
        self._thread.join()

    # What follows runs on the writer's thread.

    def _run(self) -> None:
        group: list[Call] = []
        is_open = True
        try:
            while is_open:
                group, is_open = self._next_group()
                for piece in _transactions(group):
                    answer(piece, self._commit([job for job, _ in piece]))
                group = []
                self._connection.tell(now=not is_open)
        except BaseException as error:
            # The thread ends here, so every waiting or later caller must get an error.
            log.exception("the writer of %s ended", self._database.address.shown)
            self._refuse_all(group, error)
        finally:
            self._connection.close()

    def _next_group(self) -> tuple[list[Call], bool]:
        """Wait for a job or until others are to be told, and take all waiting jobs; False after the last job."""
        group: list[Call] = []
        try:
            call = self._queue.get(timeout=self._connection.seconds_until_telling())
            while call is not None:
                if not call[1].cancelled():  # A job whose caller was cancelled is not written.
                    group.append(call)
                call = self._queue.get_nowait()
        except Empty:
            return group, True
        return group, False

    def _commit(self, jobs: list[Job]) -> list[Exception | None]:
        """Write the jobs in one transaction; if that fails, each in its own, so that only the faulty one fails."""
        try:
            return [*self._connection.write(jobs)]
        except Exception as error:
            # After any error the callers must be answered, and the next group written.
            self._connection.roll_back()
            if len(jobs) == 1 or _concerns_all(error):
                failure = self._database.unavailable(error) if isinstance(error, psycopg.Error) else error
                return [failure for _ in jobs]
        return [failure for job in jobs for failure in self._commit([job])]

    def _refuse_all(self, group: list[Call], error: BaseException) -> None:
        """Fail every waiting job, because the writer has ended."""
        self.close()
        while not self._queue.empty():
            if (call := self._queue.get()) is not None:
                group.append(call)
        reason = f"the store {self._database.address.shown!r}: its writer ended ({error!r}); open it again"
        answer(group, [StoreUnavailable(reason) for _ in group])


def _concerns_all(error: Exception) -> bool:
    """Whether an error has nothing to do with a single job: trying each alone would only multiply the wait."""
    if isinstance(error, errors.ProgramLimitExceeded):
        return False
    return isinstance(error, psycopg.OperationalError | EngineError)


def _transactions(group: Sequence[Call]) -> Iterator[list[Call]]:
    """The calls of each transaction, in order: many appends, or one removal."""
    piece: list[Call] = []
    size = 0
    for call in group:
        job = call[0]
        added = _size(job) if isinstance(job, Append) else 0
        is_full = len(piece) == GROUP_JOBS_MAX or size + added > GROUP_BYTES_MAX
        if piece and (is_full or isinstance(job, Removal) or isinstance(piece[0][0], Removal)):
            yield piece
            piece, size = [], 0
        piece.append(call)
        size += added
    if piece:
        yield piece


def _size(job: Append) -> int:
    return sum(map(len, job.entries)) + sum(len(value) for _, value in job.documents if value is not None)
