"""The calls of the SQLite engine: each checks its keys and passes the work to the writer or a reader."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import Key, below, path
from turnkeeper.store.engines.queued import QueuedWrites
from turnkeeper.store.engines.sqlite import entries, wal
from turnkeeper.store.engines.sqlite import words as word_index
from turnkeeper.store.engines.sqlite.connection import BUSY_TIMEOUT_S, StoreFile
from turnkeeper.store.engines.sqlite.documents import Documents
from turnkeeper.store.engines.sqlite.read import SqliteReader
from turnkeeper.store.engines.sqlite.schema import SCHEMA, Layout
from turnkeeper.store.engines.sqlite.tidy import CHECKPOINT_PAGES, TIDY_SHARE, Tidying
from turnkeeper.store.engines.sqlite.write import WriteConnection
from turnkeeper.store.engines.words import words
from turnkeeper.store.engines.writer import Writer

PROBLEMS_MAX = 20
INLINE_ROWS_MAX = 128
"""Reads of at most this many rows, such as pages, may run on the event loop's thread."""


class SqliteEngine(QueuedWrites):
    """A store in one SQLite file. Create it with ``SqliteEngine.open``."""

    name = "sqlite"

    def __init__(self, file: StoreFile, tidying: Tidying) -> None:
        super().__init__(Writer(WriteConnection(file, tidying), "sqlite", str(file.path)))
        self._file = file
        self.places = tuple(wal.companion(file.path, ending) for ending in ("", "-wal", "-shm", "-journal"))
        self._documents = Documents(file.small_kinds)
        self._reader = SqliteReader(file)

    @classmethod
    async def open(
        cls,
        path: Path,
        layout: Layout,
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        checkpoint_pages: int = CHECKPOINT_PAGES,
        tidy_share: float = TIDY_SHARE,
        vfs: str | None = None,
        crash: Callable[[str], None] = crash_point,
    ) -> "SqliteEngine":
        """Open the store in this file, or create it.

        A write waits at most ``busy_timeout_s`` for another process. The write-ahead log is copied into the file when
        it has ``checkpoint_pages``. Background work takes at most ``tidy_share`` of the time: 0 is none, 1 is no pause.
        Tests name an apsw ``vfs`` that fails on purpose.
        """
        file = StoreFile(path, layout, busy_timeout_s=busy_timeout_s, vfs=vfs, crash=crash)
        await asyncio.to_thread(file.create)
        return cls(file, Tidying(file, tidy_share, checkpoint_pages))

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        most = -1 if limit is None else limit
        if after or limit is not None:
            # The caller probably follows the log and reads a few new entries at its end.
            few = INLINE_ROWS_MAX + 1 if limit is None else min(limit, INLINE_ROWS_MAX + 1)
            found = await self._reader.read_few(lambda reader: entries.read_end(reader, log, after, few))
            is_unpacked = not found or found[0][0] == after + 1
            if is_unpacked and (len(found) <= INLINE_ROWS_MAX or len(found) == limit):
                return [body for _, body in found]
        return await self._reader.read(lambda reader: entries.read(reader, log, after, most))

    async def length(self, log: str) -> int:
        """See Engine.length."""
        return await self._reader.read_few(lambda reader: entries.length(reader, log))

    async def fence(self, log: str) -> int:
        """See Engine.fence."""
        return await self._reader.read_few(lambda reader: entries.fence(reader, log))

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """See Engine.logs."""
        return await self._reader.read(lambda reader: entries.logs(reader, after, -1 if limit is None else limit))

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        wanted = [path(key) for key in keys]
        read = self._reader.read_few if len(keys) <= INLINE_ROWS_MAX else self._reader.read
        return await read(lambda reader: self._documents.get(reader, wanted))

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
        start = path(prefix)
        low, high = below(start)
        if after is not None:
            low = max(low, path(after))
        if before is not None:
            high = min(high, path(before))
        most = -1 if limit is None else limit
        read = self._reader.read_few if 0 <= most <= INLINE_ROWS_MAX else self._reader.read
        return await read(lambda reader: self._documents.scan(reader, start, low, high, limit=most, reverse=reverse))

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """See Engine.gather."""
        wanted = [path(prefix) for prefix in prefixes]
        # The number of rows is unknown. If there are many, the policy sends the next reads to threads.
        read = self._reader.read_few if len(prefixes) <= INLINE_ROWS_MAX else self._reader.read
        return await read(lambda reader: self._documents.gather(reader, wanted))

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """See Engine.search."""
        wanted, start = words(query), path(prefix)
        if not wanted:
            return []
        found = await self._reader.read(lambda reader: word_index.search(reader, wanted, start, limit))
        return [tuple(one.split("/")) for one in found]

    async def version(self) -> int:
        """See Engine.version."""
        return await self._reader.version()

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """See Engine.inspect."""
        problems, leftovers = await asyncio.to_thread(self._examine)
        return {
            "path": str(self._file.path),
            "bytes": self._file.bytes_on_disk(),
            "sqlite": apsw.sqlite_lib_version(),
            "schema": SCHEMA,
            "apsw": apsw.apsw_version(),
            "removedTextsIndexed": leftovers,
            "problems": problems,
        }

    async def aclose(self) -> None:
        """See Engine.aclose."""
        self._reader.close()
        self._writer.close()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        self._reader.join()
        self._writer.join()

    def _examine(self) -> tuple[list[str], int]:
        """The problems of the file, and the number of removed texts in the word index."""
        problems = list(wal.kept(self._file.path))
        try:
            # A new connection: FTS5 compares the word index with the connection's cached state, and would report a
            # write of another process as damage.
            reader = self._file.connect()
            try:
                reader.execute("BEGIN")  # One snapshot for both reads.
                found = reader.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})").fetchall()
                problems += [str(row[0]) for row in found if row[0] != "ok"]
                return problems, word_index.leftovers(reader)
            finally:
                self._file.disconnect(reader)
        except apsw.Error as error:
            return [*problems, str(error)], 0
