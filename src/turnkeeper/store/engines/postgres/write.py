"""The writer's side of a Postgres store: a transaction for a group of jobs, then a notification to other processes.

If the connection is lost before COMMIT was sent, the transaction is tried again over a new one. If it is lost after
that, the outcome is looked up and nothing is repeated that was done.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import urandom
from typing import Final

import psycopg
from psycopg import errors

from turnkeeper.store.engine import EngineError
from turnkeeper.store.engines.jobs import Append, Call, Job, Removal
from turnkeeper.store.engines.postgres.connection import (
    LOCK_TIMEOUT_S,
    Connection,
    Database,
    disconnect,
    is_lost,
    milliseconds,
)
from turnkeeper.store.engines.postgres.news import tell
from turnkeeper.store.engines.postgres.transaction import LogVanished, Transaction

log = logging.getLogger(__name__)

GROUP_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of the jobs in one transaction, unless one alone has more."""
TELL_S: Final = 0.02
"""Seconds between two messages to other processes: each takes as long as a group of appends waits for the server."""
LOCK_LOOK_S: Final = 2.0
"""Seconds that a write waits for a lock before it looks whether the holder still says something."""
TRIES_MAX: Final = 8
"""Tries of a transaction that the server ends because of others, such as for a deadlock."""

_AGAIN: Final = (errors.DeadlockDetected, errors.SerializationFailure)

# The rows of processes that have long ended become one, so that the sum of the counts, the version, stays.
_TIDY: Final = (
    "WITH gone AS (DELETE FROM writer WHERE id <> '' AND seen < now() - interval '7 days' RETURNING count)"
    " INSERT INTO writer (id, count, token, seen) SELECT '', sum(count), '', now() FROM gone HAVING count(*) > 0"
    " ON CONFLICT (id) DO UPDATE SET count = writer.count + excluded.count"
)


class WriteConnection:
    """The one connection that writes. Used by the writer's thread only."""

    def __init__(self, database: Database, writer: bytes) -> None:
        self._database, self._writer = database, writer
        self._connection: Connection | None = None
        self._news: list[str] = []
        self._not_before = 0.0
        self._is_tidy = self._is_lost = False

    def transactions(self, group: Sequence[Call]) -> Iterator[list[Call]]:
        """The calls of each transaction, in order: many appends, or one removal."""
        piece: list[Call] = []
        size = 0
        for call in group:
            job = call[0]
            added = _size(job) if isinstance(job, Append) else 0
            if piece and (
                size + added > GROUP_BYTES_MAX or isinstance(job, Removal) or isinstance(piece[0][0], Removal)
            ):
                yield piece
                piece, size = [], 0
            piece.append(call)
            size += added
        if piece:
            yield piece

    def write(self, jobs: Sequence[Job]) -> list[EngineError | None]:
        """Do the jobs in one transaction. Returns the refusal of each job, or None if it is durable.

        Any other error is raised and concerns all jobs, none of which is done then; but see OutcomeUnknown.
        """
        patience = self._database.patience(self._database.reconnect_s)
        locked = self._database.patience(LOCK_TIMEOUT_S)
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
                self._lose() if lost else self.roll_back()
                if not (lost and transaction.is_committing and self._was_committed(transaction, error)):
                    if isinstance(error, errors.LockNotAvailable):
                        self._end_silent(transaction)
                        again = locked.pause()
                    else:
                        again = patience.pause() if lost else tries < TRIES_MAX and isinstance(error, _AGAIN)
                    if not again:
                        raise
                    continue
            self._is_lost = False
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
                if isinstance(error, errors.LockNotAvailable):
                    self._end_silent(transaction)
                elif not is_lost(error):
                    raise self._database.unknown(lost) from error
                if not patience.pause():
                    raise self._database.unknown(lost) from error

    def _end_silent(self, transaction: Transaction) -> None:
        """End those who hold locks and say nothing. If it fails, the next try finds out why."""
        with suppress(psycopg.Error):
            transaction.end_silent(self._connect(), self._database.silence_s)

    def failure(self, error: Exception) -> Exception:
        """The exception that callers get for an error."""
        return self._database.unavailable(error) if isinstance(error, psycopg.Error) else error

    def concerns_all(self, error: Exception) -> bool:
        """Whether an error has nothing to do with a single job: trying each alone would only multiply the wait."""
        if isinstance(error, errors.ProgramLimitExceeded):
            return False
        return isinstance(error, psycopg.OperationalError | EngineError)

    def seconds_until_upkeep(self) -> float | None:
        """Seconds until other processes are notified; None if there is nothing to notify of."""
        return max(0.0, self._not_before - time.monotonic()) if self._news else None

    def upkeep(self) -> None:
        """Tell other processes which logs were written, if it is time."""
        if self.seconds_until_upkeep() == 0:
            self.finish()

    def finish(self) -> None:
        """Tell other processes which logs were written. If it fails, they find out by looking."""
        names, self._news = self._news, []
        self._not_before = time.monotonic() + TELL_S
        if not names or self._connection is None:
            return
        try:
            tell(self._connection, self._database, self._writer, names)
            if not self._is_tidy:
                self._connection.execute(_TIDY)
                self._is_tidy = True
        except psycopg.Error as error:
            self._lose() if is_lost(error) else self.close()

    def _lose(self) -> None:
        """Give up a connection that is lost, and say so once until a write succeeds."""
        if not self._is_lost:
            log.warning("%s: the connection to the server was lost; connecting again", self._database.name)
        self._is_lost = True
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
            self._connection.execute("SELECT set_config('lock_timeout', %s, false)", (milliseconds(LOCK_LOOK_S),))
        return self._connection


def _size(job: Append) -> int:
    return sum(map(len, job.entries)) + sum(len(value) for _, value in job.documents if value is not None)
