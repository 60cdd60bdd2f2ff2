"""One transaction of a Postgres store: many appends, or one removal.

It has two parts, each of which is one message to the server and one answer. The first locks the rows that decide
whether the jobs may be done; the second writes and commits. Between them the jobs are checked, here, against what the
locked rows say.
"""

from collections.abc import Sequence
from typing import Final

import psycopg

from turnkeeper.store.engine import EngineError, LogConflict
from turnkeeper.store.engines.jobs import Append, Job, Removal
from turnkeeper.store.engines.postgres import documents, entries, words
from turnkeeper.store.engines.postgres.connection import Connection, Cursor, Database
from turnkeeper.store.engines.postgres.entries import LogHead
from turnkeeper.store.engines.postgres.schema import lock_number

# Every write of a store holds its removal lock, so no transaction of another program is ended.
_END_SILENT: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND database = datid AND datname = current_database() AND usename = current_user"
    " AND (classid::bigint << 32) | objid::bigint = %s AND objsubid = 1"
    " AND wait_event_type = 'Client' AND clock_timestamp() - state_change > make_interval(secs => %s)"
)


class LogVanished(Exception):
    """A log was removed while this transaction waited for it. Begin again."""


class Transaction:
    """The jobs of one transaction, and how far it has come. It is used for one try."""

    def __init__(self, database: Database, jobs: Sequence[Job], writer: bytes, token: bytes) -> None:
        self._crash, self._jobs, self._writer, self._token = database.crash, jobs, writer, token
        self._removal_lock = lock_number(database.address.schema, "removal")
        self.is_committing = False
        """Whether COMMIT was sent. If the connection is lost now, the row of the writer says whether it was done."""
        self.refusals: list[EngineError | None] = []
        """The refusal of each job; None if it was done."""

    def run(self, connection: Connection) -> None:
        """Do the jobs; they are durable when this returns. Raises psycopg.Error, and LogVanished."""
        heads = self._begin(connection)
        self._crash("postgres.checked")
        if isinstance(removal := self._jobs[0], Removal):
            self._remove(connection, removal, heads)
        else:
            self._append(connection, [job for job in self._jobs if isinstance(job, Append)], heads)
        self._crash("postgres.after-commit")

    def is_in(self, connection: Connection) -> bool:
        """Whether the transaction is in the store. Waits until the server has ended it. Raises psycopg.Error."""
        # An INSERT waits for another one of the same row also if that row was never committed.
        row = connection.execute(
            "INSERT INTO writer (id, count, token, seen) VALUES (%s, 0, '', now())"
            " ON CONFLICT (id) DO UPDATE SET seen = excluded.seen RETURNING token",
            (self._writer,),
            binary=True,
        ).fetchone()
        return row is not None and row[0] == self._token

    def end_silent(self, connection: Connection, silence_s: float) -> None:
        """End writes of this store whose hosts were stopped: they hold locks, and the server waits for their word.

        The server's limit for idle transactions is not enough. It counts from an answer that says "ready", and a driver
        that leaves a pipeline may send more after asking for that answer, which stops the count; in the middle of a
        pipeline it does not begin. A host that was only slow writes again.
        """
        connection.execute(_END_SILENT, (self._removal_lock, silence_s))

    def written_logs(self) -> list[str]:
        """The logs that other processes should look at."""
        names: dict[str, None] = {}
        for job, refusal in zip(self._jobs, self.refusals, strict=True):
            if refusal is None:
                names.update(dict.fromkeys(job.logs if isinstance(job, Removal) else [job.log] if job.log else []))
        return list(names)

    def _begin(self, connection: Connection) -> dict[str, LogHead]:
        """Begin the transaction, and lock what decides about the jobs."""
        wanted: set[str] = set()
        created: set[str] = set()
        for job in self._jobs:
            if isinstance(job, Removal):
                wanted.update(job.logs)
            elif job.log is not None:
                wanted.add(job.log)
                if job.after == 0:
                    created.add(job.log)
        with connection.pipeline():
            connection.execute("BEGIN")
            self._lock(connection)
            if created:
                entries.create(connection, created)
            locked = entries.lock(connection, wanted)
        heads = entries.heads(locked)  # Outside of the pipeline, which would need a second answer of the server.
        self._crash("postgres.begin")
        if not created <= heads.keys():
            raise LogVanished
        return heads

    def _lock(self, connection: Connection) -> None:
        # A removal deletes what nothing refers to any more, so no reference may be added meanwhile.
        if any(isinstance(job, Removal) for job in self._jobs):
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._removal_lock,))
        else:
            connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (self._removal_lock,))
        # Locked before anything is written: a look-up of the token waits until this transaction has ended.
        connection.execute(
            "INSERT INTO writer (id, count, token, seen) VALUES (%s, 1, %s, now())"
            " ON CONFLICT (id) DO UPDATE SET count = writer.count + 1, token = excluded.token, seen = excluded.seen",
            (self._writer, self._token),
        )

    def _append(self, connection: Connection, jobs: Sequence[Append], heads: dict[str, LogHead]) -> None:
        written: dict[str, bytes | None] = {}
        indexed: dict[str, str | None] = {}
        for job in jobs:
            try:
                if job.log is not None:
                    # A log that is not there is empty.
                    heads.get(job.log, LogHead(0, 0, 0, None)).take(job.log, job)
            except EngineError as refusal:
                self.refusals.append(refusal)
                continue
            self.refusals.append(None)
            written.update(job.documents)
            for path, text in job.texts:
                indexed.pop(path, None)  # Removed first: the order of this dict is the age of the texts.
                indexed[path] = text
        with connection.pipeline():
            entries.write(connection, heads.values())
            documents.write(connection, written)
            words.write(connection, indexed)
            committed = self._commit(connection)
        _require_commit(committed)

    def _remove(self, connection: Connection, job: Removal, heads: dict[str, LogHead]) -> None:
        grown = next((name for name, known in job.logs.items() if name in heads and heads[name].length > known), None)
        if grown is not None:
            self.refusals.append(LogConflict(grown, job.logs[grown], heads[grown].length))
        else:
            self.refusals.append(None)
        with connection.pipeline():
            if grown is None:
                entries.remove(connection, heads)
                documents.remove_below(connection, job.paths, "document")
                documents.remove_below(connection, job.paths, "word")
                if job.orphans:
                    documents.remove_orphans(connection, job.orphans)
            committed = self._commit(connection)
        _require_commit(committed)

    def _commit(self, connection: Connection) -> Cursor:
        self._crash("postgres.before-commit")
        self.is_committing = True
        return connection.execute("COMMIT")


def _require_commit(committed: Cursor) -> None:
    """COMMIT of a transaction that has failed is answered with ROLLBACK, and not with an error."""
    if committed.statusmessage != "COMMIT":
        raise psycopg.InternalError(f"COMMIT was answered with {committed.statusmessage}")
