"""The calls of the Postgres engine: each checks its keys and passes the work to the writer or a reader."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from os import urandom

import psycopg

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import Key, below, path
from turnkeeper.store.engines.postgres import address, documents, entries, live
from turnkeeper.store.engines.postgres import words as word_index
from turnkeeper.store.engines.postgres.connection import (
    OUTCOME_S,
    RECONNECT_S,
    SILENCE_S,
    STATEMENT_TIMEOUT_S,
    Connection,
    Database,
    disconnect,
    is_starting,
)
from turnkeeper.store.engines.postgres.job_queue import PostgresJobs
from turnkeeper.store.engines.postgres.listener import Listener
from turnkeeper.store.engines.postgres.read import PostgresReader
from turnkeeper.store.engines.postgres.schema import SCHEMA, Layout, migrate
from turnkeeper.store.engines.postgres.write import WriteConnection
from turnkeeper.store.engines.queued import QueuedWrites
from turnkeeper.store.engines.words import words
from turnkeeper.store.engines.writer import Writer

PROBLEMS_MAX = 20
INSPECTION_TIMEOUT = "1h"
"""How long the statements of an inspection may take: they read all entries."""


class PostgresEngine(QueuedWrites):
    """A store in one schema of a Postgres database. Create it with ``PostgresEngine.open``."""

    name = "postgres"
    message_bytes_max = live.MESSAGE_BYTES_MAX

    def __init__(self, database: Database, connection: Connection) -> None:
        writer = urandom(16)
        super().__init__(Writer(WriteConnection(database, writer), "postgres", database.address.shown))
        self._database = database
        self._listener = Listener(database, writer)
        self._reader = PostgresReader(database)
        self._reader.offer(connection)
        self.job_queue = PostgresJobs(database, self._reader, self._listener)

    @classmethod
    async def open(
        cls,
        url: str,
        layout: Layout,
        *,
        statement_timeout_s: float = STATEMENT_TIMEOUT_S,
        reconnect_s: float = RECONNECT_S,
        outcome_s: float = OUTCOME_S,
        silence_s: float = SILENCE_S,
        crash: Callable[[str], None] = crash_point,
    ) -> "PostgresEngine":
        """Open the store at this address, or create its tables. Raises ValueError for a wrong address.

        The server ends a statement after ``statement_timeout_s``. If the connection is lost, a call connects again for
        at most ``reconnect_s``; the outcome of a commit is looked up for at most ``outcome_s``. A host that
        says nothing for ``silence_s`` in the middle of a transaction loses it, at the latest to another one that waits.
        """
        database = Database(
            address.parse(url),
            statement_timeout_s=statement_timeout_s,
            reconnect_s=reconnect_s,
            outcome_s=outcome_s,
            silence_s=silence_s,
            crash=crash,
        )
        return cls(database, await asyncio.to_thread(_prepared, database, layout))

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        return await self._reader.read(lambda reader: entries.read(reader, log, after, limit))

    async def length(self, log: str) -> int:
        """See Engine.length."""
        return await self._reader.read(lambda reader: entries.length(reader, log))

    async def fence(self, log: str) -> int:
        """See Engine.fence."""
        return await self._reader.read(lambda reader: entries.fence(reader, log))

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """See Engine.logs."""
        return await self._reader.read(lambda reader: entries.logs(reader, after, limit))

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        wanted = [path(key) for key in keys]
        return await self._reader.read(lambda reader: documents.get(reader, wanted))

    async def scan(
        self,
        prefix: Key,
        *,
        after: Key | None = None,
        before: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        """See Engine.scan."""
        low, high = below(path(prefix))
        if after is not None:
            low = max(low, path(after))
        if before is not None:
            high = min(high, path(before))
        return await self._reader.read(lambda reader: documents.scan(reader, low, high, limit=limit, reverse=reverse))

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """See Engine.gather."""
        wanted = [path(prefix) for prefix in prefixes]
        return await self._reader.read(lambda reader: documents.gather(reader, wanted))

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """See Engine.search."""
        wanted, start = words(query), path(prefix)
        if not wanted:
            return []
        found = await self._reader.read(lambda reader: word_index.search(reader, wanted, start, limit))
        return [tuple(one.split("/")) for one in found]

    async def version(self) -> int:
        """See Engine.version."""
        return await self._reader.read(_version)

    def watch(self, heard: Callable[[Collection[str] | None], None]) -> Callable[[], None]:
        """See Watched.watch."""
        return self._listener.watch(heard)

    def is_heard(self) -> bool:
        """See Messenger.is_heard."""
        return self._listener.is_heard()

    def send(self, messages: Sequence[str]) -> int:
        """See Messenger.send."""
        return self._listener.send(messages)

    def hear(self, heard: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """See Messenger.hear."""
        return self._listener.hear(heard)

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """See Engine.inspect."""
        size, server, problems = await self._reader.read(_examined)
        return {
            "path": self._database.address.shown,
            "bytes": size,
            "postgres": server,
            "schema": SCHEMA,
            "psycopg": psycopg.__version__,
            "problems": problems,
        }

    async def aclose(self) -> None:
        """See Engine.aclose."""
        self._reader.close()
        self._writer.close()
        await asyncio.to_thread(self._join)

    def _paths(self, keys: Collection[Key]) -> list[str]:
        return documents.short_paths(keys)

    def _join(self) -> None:
        self._writer.join()
        self._database.closing.set()  # After the last accepted job: it ends every wait for a connection.
        self._listener.close()
        self._reader.join()
        self._listener.join()


def _prepared(database: Database, layout: Layout) -> Connection:
    """The first connection, to a store whose tables are the newest."""
    patience = database.patience(database.reconnect_s)
    while True:
        try:
            connection = database.connect()
            try:
                migrate(database, connection, layout)
            except BaseException:
                disconnect(connection)
                raise
            return connection
        except psycopg.Error as error:
            # A server that starts is waited for. One that is not there is reported at once.
            if not is_starting(error) or not patience.pause():
                raise database.unavailable(error) from error


def _version(connection: Connection) -> int:
    row = connection.execute("SELECT coalesce(sum(count), 0)::bigint FROM writer").fetchone()
    return int(row[0]) if row is not None else 0


def _examined(connection: Connection) -> tuple[int, str, list[str]]:
    """Bytes on the disk of the server, its version, and the problems of the tables."""
    connection.execute("BEGIN READ ONLY")
    try:
        connection.execute("SELECT set_config('statement_timeout', %s, true)", (INSPECTION_TIMEOUT,))
        [(size, server)] = connection.execute(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint, current_setting('server_version')"
            " FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        ).fetchall()
        return size, server, entries.problems(connection, PROBLEMS_MAX)
    finally:
        if not connection.closed:
            connection.execute("ROLLBACK")
