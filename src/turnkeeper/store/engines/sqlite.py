"""The SQLite engine: one file in WAL mode, one writer thread with group commit, readers that never wait."""

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import apsw
import msgspec

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import NO_DOCUMENTS, NO_TEXTS, Key, path, paths
from turnkeeper.store.engines import sqlite_pack, sqlite_wal, sqlite_words
from turnkeeper.store.engines.sqlite_batch import Append, Removal, below, tables
from turnkeeper.store.engines.sqlite_file import BUSY_TIMEOUT_S, StoreFile
from turnkeeper.store.engines.sqlite_hand import CHECKPOINT_PAGES, REST_S
from turnkeeper.store.engines.sqlite_readers import Readers
from turnkeeper.store.engines.sqlite_schema import MIGRATIONS, table_of
from turnkeeper.store.engines.sqlite_writer import Writer
from turnkeeper.store.engines.words import words

PROBLEMS_MAX = 20
GLANCE_ROWS = 128
"""So few rows are read without a thread: a page is, and a list."""

# Keys and values are read as bytes, and a value that is NULL as empty bytes: damage must not end a read of many rows.
_KEY, _VALUE = "CAST(found.key AS BLOB)", "CAST(coalesce(found.value, '') AS BLOB)"

# One statement, because one statement sees one moment, and because a thousand of them cost more than the rows. The
# whole store has no upper bound that is text; the last character there is stands for it.
_GATHER = (
    f"SELECT wanted.key, {_KEY}, {_VALUE} FROM json_each(?) AS wanted CROSS JOIN {{source}} AS found"
    " ON found.key > iif(wanted.value = '', '', wanted.value || '/')"
    " AND found.key < iif(wanted.value = '', char(1114111), wanted.value || '0')"
)
_GET_ONE = f"SELECT {_VALUE} FROM {{table}} AS found WHERE key = ?"
_GET = (
    f"SELECT iif(found.key IS NULL, NULL, {_VALUE}) FROM json_each(?) AS wanted"
    " LEFT JOIN {table} AS found ON found.key = wanted.value ORDER BY wanted.key"
)
_GET_BOTH = (
    "SELECT CAST(coalesce(document.value, small.value, iif(document.key IS NULL AND small.key IS NULL, NULL, ''))"
    " AS BLOB) FROM json_each(?) AS wanted"
    " LEFT JOIN document ON document.key = wanted.value LEFT JOIN small ON small.key = wanted.value"
    " ORDER BY wanted.key"
)

T = TypeVar("T")


async def open_sqlite(
    path: Path,
    *,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    checkpoint_pages: int = CHECKPOINT_PAGES,
    vfs: str | None = None,
    crash: Callable[[str], None] = crash_point,
    clock: Callable[[], float] = time.monotonic,
    rest_s: float = REST_S,
) -> "SqliteEngine":
    """Open the store in this file, and make it if it is not there.

    A write waits at most ``busy_timeout_s`` for another process. The write-ahead log is folded into the file when
    it has ``checkpoint_pages`` and nothing was written for ``rest_s``; then the store is put in order, too. Tests name
    an apsw ``vfs`` that fails on purpose, and a ``clock`` that stands still.
    """
    file = StoreFile(path, busy_timeout_s=busy_timeout_s, vfs=vfs, crash=crash)
    await asyncio.to_thread(file.create)
    return SqliteEngine(file, Writer(file, checkpoint_pages, clock, rest_s))


class SqliteEngine:
    """A store in one SQLite file. Use ``open_sqlite``."""

    name = "sqlite"

    def __init__(self, file: StoreFile, writer: Writer) -> None:
        self._file = file
        self._writer = writer
        self._readers = Readers(file)
        self._watcher: apsw.Connection | None = None
        self._watching = threading.Lock()

    async def append(
        self,
        log: str,
        after: int,
        entries: Sequence[bytes],
        documents: Mapping[Key, bytes | None] = NO_DOCUMENTS,
        *,
        texts: Mapping[Key, str | None] = NO_TEXTS,
        fence: int | None = None,
        last: bytes | None = None,
    ) -> None:
        """See Engine.append."""
        path((log,))
        written = list(zip(paths(documents), documents.values(), strict=True))
        indexed = list(zip(paths(texts), texts.values(), strict=True)) if texts else ()
        size = sum(map(len, entries)) + sum([len(value) for value in documents.values() if value is not None])
        await self._writer.submit(Append(log, after, entries, written, indexed, fence, last), size)

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        """See Engine.put."""
        written = list(zip(paths(documents), documents.values(), strict=True))
        size = sum([len(value) for value in documents.values() if value is not None])
        await self._writer.submit(Append(None, 0, (), written, (), None), size)

    async def remove(
        self,
        logs: Mapping[str, int],
        prefixes: Sequence[Key],
        *,
        orphans: Mapping[Key, Key] | None = None,
    ) -> None:
        """See Engine.remove."""
        watched = [(path(key), path(prefix)) for key, prefix in (orphans or {}).items()]
        await self._writer.submit(Removal(logs, [path(prefix) for prefix in prefixes], watched), 0)

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        most = -1 if limit is None else limit
        if after or limit is not None:
            # Most often this is somebody who knows the log and asks what is new.
            few = GLANCE_ROWS + 1 if limit is None else min(limit, GLANCE_ROWS + 1)
            found = await self._readers.glance(lambda reader: sqlite_pack.read_end(reader, log, after, few))
            is_end = not found or found[0][0] == after + 1  # Else those before are packed.
            if is_end and (len(found) <= GLANCE_ROWS or len(found) == limit):
                return [body for _, body in found]
        return await self._readers.read(lambda reader: sqlite_pack.read(reader, log, after, most))

    async def length(self, log: str) -> int:
        """See Engine.length."""
        return await self._readers.read(lambda reader: sqlite_pack.length(reader, log))

    async def fence(self, log: str) -> int:
        """See Engine.fence."""
        found: list[int] = await self._few("SELECT CAST(coalesce(fence, 0) AS INTEGER) FROM log WHERE name = ?", (log,))
        return found[0] if found else 0

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """See Engine.logs."""
        names: list[bytes] = await self._column(
            "SELECT CAST(name AS BLOB) FROM log WHERE name > ?"
            " AND EXISTS (SELECT 1 FROM entry WHERE id BETWEEN log.id << 32 AND log.id << 32 | 4294967295)"
            " ORDER BY name LIMIT ?",
            (after, -1 if limit is None else limit),
        )
        return [name.decode("utf-8", "replace") for name in names]

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        if len(keys) == 1:
            place = path(keys[0])
            found: list[bytes] = await self._few(_GET_ONE.format(table=table_of(place)), (place,))
            return [found[0] if found else None]
        places, homes = [path(key) for key in keys], _homes(keys)
        # One statement, because one statement sees one moment.
        ask = self._few if len(keys) <= GLANCE_ROWS else self._column
        return await ask(_GET.format(table=homes.pop()) if len(homes) == 1 else _GET_BOTH, (_array(places),))

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
            high = path(before) if isinstance(high, bytes) else min(high, path(before))
        most = -1 if limit is None else limit
        ask = self._readers.glance if 0 <= most <= GLANCE_ROWS else self._readers.read
        source = _source(_homes([prefix]))
        return await ask(lambda reader: _scan(reader, source, low, high, limit=most, reverse=reverse))

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """See Engine.gather."""
        wanted, source = _array([path(prefix) for prefix in prefixes]), _source(_homes(prefixes))
        # How many rows there are is not known; if they are many, the next question goes to a thread.
        ask = self._readers.glance if len(prefixes) <= GLANCE_ROWS else self._readers.read
        rows = await ask(lambda reader: reader.execute(_GATHER.format(source=source), (wanted,)).fetchall())
        found: list[list[tuple[bytes, bytes]]] = [[] for _ in prefixes]
        for number, place, value in cast(list[tuple[int, bytes, bytes]], rows):  # The statement says what they hold.
            found[number].append((place, value))
        for group in found:
            if len(group) > 1:  # Put in order here: SQLite would sort all of them together, and most are alone.
                group.sort()
        return [[(_key(place), value) for place, value in group] for group in found]

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """See Engine.search."""
        wanted = words(query)
        low, high = below(path(prefix))
        if not wanted:
            return []
        places = await self._readers.read(lambda reader: sqlite_words.search(reader, wanted, low, high, limit))
        return [tuple(place.split("/")) for place in places]

    async def version(self) -> int:
        """See Engine.version."""
        return await self._readers.read(lambda reader: self._data_version())

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """See Engine.inspect."""
        problems, leftovers = await asyncio.to_thread(self._examined)
        return {
            "path": str(self._file.path),
            "bytes": self._file.bytes_on_disk(),
            "sqlite": apsw.sqlite_lib_version(),
            "schema": len(MIGRATIONS),
            "apsw": apsw.apsw_version(),
            "removed texts still indexed": leftovers,
            "problems": problems,
        }

    def _examined(self) -> tuple[list[str], int]:
        """What is wrong with the file, and how many texts of removed sessions the search index still has."""
        problems = list(sqlite_wal.kept(self._file.path))
        try:
            # A connection of its own: FTS5 checks the word index by what the connection knew of it last, and calls
            # what another process has written since damaged.
            reader = self._file.connect()
            try:
                reader.execute("BEGIN")  # The file is seen at one moment.
                return [*problems, *_integrity(reader)], sqlite_words.leftovers(reader)
            finally:
                self._file.disconnect(reader)
        except apsw.Error as error:
            return [*problems, str(error)], 0

    async def aclose(self) -> None:
        """See Engine.aclose."""
        self._readers.close()
        self._writer.close()
        await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        self._readers.join()
        self._writer.join()
        with self._watching:
            if self._watcher is not None:
                self._file.disconnect(self._watcher)
                self._watcher = None

    async def _column(self, sql: str, bindings: tuple[str | int | bytes, ...]) -> list[T]:
        rows = await self._readers.read(lambda reader: reader.execute(sql, bindings).fetchall())
        return cast(list[T], [row[0] for row in rows])  # The statement says what a column holds.

    async def _few(self, sql: str, bindings: tuple[str | int | bytes, ...]) -> list[T]:
        rows = await self._readers.glance(lambda reader: reader.execute(sql, bindings).fetchall())
        return cast(list[T], [row[0] for row in rows])

    def _data_version(self) -> int:
        # The number means something only if the same connection is asked each time, and it counts what others
        # committed; so this connection never writes.
        with self._watching:
            if self._watcher is None:
                self._watcher = self._file.connect()
            return int(self._watcher.pragma("data_version"))


def _array(places: list[str]) -> str:
    """Paths as one binding, for ``json_each``."""
    return msgspec.json.encode(places).decode()


def _homes(keys: Sequence[Key]) -> set[str]:
    """The tables that hold what stands at or below these keys; the whole store is below the empty one."""
    kinds = {key[:1] for key in keys}
    return {table for kind in kinds for table in tables(*kind or ("",))}


def _source(homes: Collection[str]) -> str:
    """Where to look for documents; both tables together where they may be in either."""
    return next(iter(homes)) if len(homes) == 1 else "(SELECT * FROM document UNION ALL SELECT * FROM small)"


def _scan(
    reader: apsw.Connection, source: str, low: str, high: str | bytes, *, limit: int = -1, reverse: bool = False
) -> list[tuple[Key, bytes]]:
    direction = "DESC" if reverse else "ASC"
    rows = reader.execute(
        f"SELECT {_KEY}, {_VALUE} FROM {source} AS found WHERE key > ? AND key < ? ORDER BY key {direction} LIMIT ?",
        (low, high, limit),
    )
    found = cast(list[tuple[bytes, bytes]], rows.fetchall())  # The statement says what the columns hold.
    return [(_key(place), value) for place, value in found]


def _key(place: bytes) -> Key:
    """The key of a row. Bytes that are no text are replaced, and such a key finds nothing."""
    return tuple(place.decode("utf-8", "replace").split("/"))


def _integrity(reader: apsw.Connection) -> list[str]:
    rows = reader.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})").fetchall()
    return [str(row[0]) for row in rows if row[0] != "ok"]
