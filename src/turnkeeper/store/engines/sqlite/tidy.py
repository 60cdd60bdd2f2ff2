"""Tidying of a SQLite store: background maintenance between transactions.

Three tasks, in this order: copy the write-ahead log into the file (a checkpoint), pack old entries, index words. Each
is done in short pieces that take at most a given share of the time, so that appends rarely wait. Unfinished work is
found again later.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from turnkeeper.store.engines.sqlite import entries, words
from turnkeeper.store.engines.sqlite.connection import StoreFile

TIDY_SHARE = 0.05
"""Tidying takes at most this share of the time."""
CHECKPOINT_PAGES = 2000
"""Pages of the write-ahead log at which a checkpoint is due."""
REMOVALS_S = 1.0
"""Seconds that closing a store may take to remove texts from the word index."""


class Tidying:
    """Decides when to tidy, and does it. Used by the writer's thread only."""

    def __init__(self, file: StoreFile, share: float = TIDY_SHARE, checkpoint_pages: int = CHECKPOINT_PAGES) -> None:
        self._file, self._share, self._checkpoint_pages = file, share, checkpoint_pages
        self._wal_pages = 0
        self._long_logs: dict[str, None] = {}  # A set in the order of insertion.
        self._queued_words = 0
        self._not_before = 0.0

    def watch(self, connection: apsw.Connection) -> None:
        """Count the queued words, and watch the length of the write-ahead log."""
        # With this hook SQLite makes no checkpoints by itself, inside a commit that a caller waits for.
        connection.set_wal_hook(self._note_wal)
        self._queued_words = words.waiting(connection)

    def _note_wal(self, connection: apsw.Connection, schema: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def note_long_log(self, name: str) -> None:
        """Note that entries of this log can be packed."""
        self._long_logs[name] = None

    def note_words(self, count: int) -> None:
        """Note that changes were added to the word queue."""
        self._queued_words += count

    def forget(self) -> None:
        """After an error: stop tidying until more is written."""
        self._long_logs, self._queued_words = {}, 0

    def due_in(self) -> float | None:
        """Seconds until the next piece; None if there is nothing to do."""
        is_long = self._wal_pages >= self._checkpoint_pages
        if not self._share or not (is_long or self._long_logs or self._queued_words >= words.QUEUE_MIN):
            return None
        return max(0.0, self._not_before - time.monotonic())

    def do_one(self, connection: apsw.Connection) -> None:
        """Do the next piece, and compute when another may begin."""
        begun = time.monotonic()
        try:
            if self._wal_pages >= self._checkpoint_pages:
                self._checkpoint(connection)
            elif self._long_logs:
                self._pack(connection, next(iter(self._long_logs)))
            else:
                with self._transaction(connection):
                    self._queued_words = words.work_off(connection)
        finally:
            now = time.monotonic()
            self._not_before = now + (now - begun) * (1 / self._share - 1)

    def finish_removals(self, connection: apsw.Connection) -> None:
        """Remove deleted texts from the word index, for at most REMOVALS_S."""
        deadline = time.monotonic() + REMOVALS_S
        while words.leftovers(connection) and time.monotonic() < deadline:
            with self._transaction(connection):
                words.work_off(connection)

    def _pack(self, connection: apsw.Connection, name: str) -> None:
        with self._transaction(connection):
            if not entries.pack(connection, name):
                del self._long_logs[name]

    def _checkpoint(self, connection: apsw.Connection) -> None:
        self._file.crash("sqlite.before-checkpoint")
        self._wal_pages = 0  # If it fails, the next commit says how long the log is.
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._file.crash("sqlite.after-checkpoint")

    @contextmanager
    def _transaction(self, connection: apsw.Connection) -> Iterator[None]:
        connection.execute("BEGIN IMMEDIATE")
        self._file.crash("sqlite.begin-tidying")
        yield
        self._file.crash("sqlite.before-tidied")
        connection.execute("COMMIT")
