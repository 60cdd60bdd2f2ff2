"""The writer's side of a SQLite store: one transaction for a group of jobs, upkeep in between."""

from collections.abc import Sequence

import apsw

from turnkeeper.store.engine import EngineError, LogConflict
from turnkeeper.store.engines.jobs import Append, Call, Job, Removal
from turnkeeper.store.engines.sqlite import entries, words
from turnkeeper.store.engines.sqlite.connection import StoreFile
from turnkeeper.store.engines.sqlite.documents import Documents
from turnkeeper.store.engines.sqlite.tidy import Tidying


class WriteConnection:
    """The one connection that writes. Used by the writer's thread only."""

    def __init__(self, file: StoreFile, tidying: Tidying) -> None:
        self._file, self._tidying = file, tidying
        self._documents = Documents(file.small_kinds)
        self._connection: apsw.Connection | None = None

    def transactions(self, group: Sequence[Call]) -> list[Sequence[Call]]:
        """All calls in one."""
        return [group] if group else []

    def write(self, jobs: Sequence[Job]) -> list[EngineError | None]:
        """Write the jobs in one transaction, on disk when this returns. Returns the refusal of each job, or None.

        Any other error is raised and concerns all jobs; then call ``roll_back``.
        """
        connection, crash = self._connect(), self._file.crash
        connection.execute("BEGIN IMMEDIATE")
        crash("sqlite.begin")
        refusals: list[EngineError | None] = []
        for job in jobs:
            try:
                # Each job is checked before it is written, so a refused job writes nothing.
                if isinstance(job, Append):
                    self._append(connection, job)
                else:
                    self._remove(connection, job)
                refusals.append(None)
            except EngineError as refusal:
                refusals.append(refusal)
        crash("sqlite.before-commit")
        connection.execute("COMMIT")
        crash("sqlite.after-commit")
        return refusals

    def _append(self, connection: apsw.Connection, job: Append) -> None:
        if job.log is not None and entries.append(connection, job.log, job.after, job.entries, job.fence, job.last):
            self._tidying.note_long_log(job.log)
        self._documents.write(connection, job.documents)
        if job.texts:
            words.enqueue(connection, job.texts)
            self._tidying.note_words(len(job.texts))

    def _remove(self, connection: apsw.Connection, job: Removal) -> None:
        for name, known in job.logs.items():
            if (actual := entries.LogHead(connection, name).length) > known:
                raise LogConflict(name, known, actual)
        for name in job.logs:
            entries.remove(connection, name)
        self._documents.remove_below(connection, job.paths)
        words.enqueue_removal(connection, job.paths)
        self._tidying.note_words(words.QUEUE_MIN)
        # All are checked before one is removed, so that their order does not matter.
        empty = [key for key, path in job.orphans if self._documents.is_empty(connection, path)]
        self._documents.write(connection, [(key, None) for key in empty])

    def failure(self, error: Exception) -> Exception:
        """The exception that callers get for an error."""
        return self._file.unavailable(error) if isinstance(error, apsw.Error) else error

    def concerns_all(self, error: Exception) -> bool:
        """A lock blocks all jobs; trying each alone would multiply the wait."""
        return isinstance(error, apsw.BusyError)

    def seconds_until_upkeep(self) -> float | None:
        """Seconds until the next piece of tidying; None if there is nothing to tidy."""
        return self._tidying.due_in() if self._connection is not None else None

    def upkeep(self) -> None:
        """Do one piece of tidying if it is due."""
        if self._connection is not None and self._tidying.due_in() == 0:
            try:
                self._tidying.do_one(self._connection)
            except apsw.Error:
                self._tidying.forget()
                self.roll_back()

    def finish(self) -> None:
        """Before the store is closed, remove texts of removed sessions from the word index.

        Otherwise a short command would leave them there. The time is bounded, and locks are not waited for.
        """
        if self._connection is None and not self._file.has_leftovers:
            return
        try:
            connection = self._connect()
            connection.set_busy_handler(None)
            self._tidying.finish_removals(connection)
        except apsw.Error:
            self.roll_back()

    def roll_back(self) -> None:
        """Leave no transaction open; a connection that cannot roll back is replaced."""
        if self._connection is None or not self._connection.in_transaction:
            return
        try:
            self._connection.execute("ROLLBACK")
        except apsw.Error:
            self.close()

    def close(self) -> None:
        """Close the connection; the next write makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._file.disconnect(connection)

    def _connect(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._file.connect()
            self._tidying.watch(self._connection)
        return self._connection
