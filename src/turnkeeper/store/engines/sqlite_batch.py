"""What a group of jobs does to a SQLite store: gathered in memory first, then written in few statements.

Every check comes before anything of a job is gathered, so a refused job leaves no trace among its neighbours.
"""

import json
from collections.abc import Mapping, Sequence

import apsw
import msgspec

from turnkeeper.store.engine import EngineError, LogConflict, StaleFence
from turnkeeper.store.engines import sqlite_words
from turnkeeper.store.engines.sqlite_pack import PLAIN, RUN
from turnkeeper.store.engines.sqlite_schema import behind, row, seq_of, table_of

BEHIND_ALL_KEYS = b""
"""SQLite orders every blob behind every text, so this is an upper bound for keys."""

_AT = "SELECT value FROM json_each(:places)"
_AT_OR_BELOW = (
    f"{_AT} UNION ALL SELECT found.key FROM json_each(:places) AS wanted CROSS JOIN {{table}} AS found"
    " ON found.key > iif(wanted.value = '', '', wanted.value || '/')"
    " AND found.key < iif(wanted.value = '', char(1114111), wanted.value || '0')"
)
"""The keys at some paths, and those below them too; all that there are are below the empty one."""


class Append(msgspec.Struct, eq=False):
    """Entries, documents and texts to write, under paths. ``log`` is None if it is documents only."""

    log: str | None
    after: int
    entries: Sequence[bytes]
    documents: Sequence[tuple[str, bytes | None]]
    texts: Sequence[tuple[str, str | None]]
    fence: int | None
    last: bytes | None = None


class Removal(msgspec.Struct, eq=False):
    """Logs, and paths with everything below them, to remove."""

    logs: Mapping[str, int]
    places: Sequence[str]
    orphans: Sequence[tuple[str, str]]


class Head(msgspec.Struct):
    """A log as it will be once the batch is written."""

    id: int
    length: int
    fence: int
    packed: int
    """The last entry that is not a row of its own."""
    newest: int | None = None
    """The hash of the newest entry, once it was looked at."""

    @property
    def is_long(self) -> bool:
        """Whether there is something to be packed."""
        return self.length - self.packed >= RUN + PLAIN


class Batch:
    """The joint effect of the jobs of one group, inside one transaction."""

    def __init__(self, connection: apsw.Connection, heads: dict[str, Head]) -> None:
        """``heads`` are what is known of logs already; they follow the batch, so drop them if it is not committed."""
        self._connection = connection
        self._heads = heads
        self._entries: list[tuple[int, bytes]] = []
        self._documents: dict[str, bytes | None] = {}
        self._texts: dict[str, str | None] = {}

    def add(self, job: Append | Removal) -> EngineError | None:
        """Take a job in, or say why not."""
        if isinstance(job, Removal):
            for log, known in job.logs.items():
                if (actual := self.head(log).length) > known:
                    return LogConflict(log, known, actual)
            self._remove(job)
            return None
        if job.log is not None:
            head = self.head(job.log)
            if job.fence is not None and job.fence < head.fence:
                return StaleFence(job.log, job.fence, head.fence)
            if head.length != job.after or (job.last is not None and hash(job.last) != self._newest(head)):
                return LogConflict(job.log, job.after, head.length)
            self._extend(job.log, head, job)
        # Within one transaction only the last value of a key is ever seen.
        self._documents.update(job.documents)
        for place, text in job.texts:
            self._texts.pop(place, None)  # Out and in again: the order of this dict is the age of the texts.
            self._texts[place] = text
        return None

    def write(self) -> None:
        """Write what was gathered."""
        many = self._connection.executemany
        if self._entries:
            many("INSERT INTO entry (id, body) VALUES (?, CAST(? AS TEXT))", self._entries)
            self._entries = []
        if self._documents:
            self._write_documents()
        if self._texts:
            sqlite_words.note(self._connection, self._texts)
            self._texts = {}

    def _write_documents(self) -> None:
        many, items = self._connection.executemany, self._documents.items()
        written: dict[str, list[tuple[str, bytes | None]]] = {"document": [], "small": []}
        gone: dict[str, list[tuple[str]]] = {"document": [], "small": []}
        for item in items:
            place, value = item
            if value is not None:
                written[table_of(place)].append(item)
            else:
                gone[table_of(place)].append((place,))
        for table in ("document", "small"):
            if written[table]:
                many(
                    f"INSERT INTO {table} (key, value) VALUES (?, CAST(? AS TEXT))"
                    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    written[table],
                )
            if gone[table]:
                many(f"DELETE FROM {table} WHERE key = ?", gone[table])
        self._documents = {}

    def head(self, log: str) -> Head:
        """A log as it will be."""
        head = self._heads.get(log)
        if head is None:
            run = self._connection.execute
            head = Head(0, 0, 0, 0)
            if found := run(
                "SELECT id, CAST(coalesce(fence, 0) AS INTEGER) FROM log WHERE name = ?", (log,)
            ).fetchone():
                span = behind(found[0], 0)
                length = run("SELECT max(id) FROM entry WHERE id > ? AND id <= ?", span).get
                packed = run("SELECT max(id) FROM packed WHERE id > ? AND id <= ?", span).get
                head = Head(found[0], seq_of(length), found[1], seq_of(packed))
            self._heads[log] = head
        return head

    def _newest(self, head: Head) -> int | None:
        if head.newest is None and head.length:
            sql = "SELECT CAST(coalesce(body, '') AS BLOB) FROM entry WHERE id = ?"
            head.newest = hash(self._connection.execute(sql, (row(head.id, head.length),)).get)
        return head.newest

    def _extend(self, log: str, head: Head, job: Append) -> None:
        run = self._connection.execute
        if head.id == 0:
            run("INSERT INTO log (name) VALUES (?)", (log,))
            head.id = self._connection.last_insert_rowid()
        if job.fence is not None and job.fence != head.fence:
            run("UPDATE log SET fence = ? WHERE id = ?", (job.fence, head.id))
            head.fence = job.fence
        if job.entries:
            head.newest = hash(job.entries[-1])
        for entry in job.entries:
            head.length += 1
            self._entries.append((row(head.id, head.length), entry))

    def _remove(self, job: Removal) -> None:
        self.write()
        run = self._connection.execute
        for log in job.logs:
            span = behind(self.head(log).id, 0)
            run("DELETE FROM entry WHERE id > ? AND id <= ?", span)
            run("DELETE FROM packed WHERE id > ? AND id <= ?", span)
            run("DELETE FROM log WHERE name = ?", (log,))
            self._heads.pop(log, None)
        self._remove_places(job.places)
        sqlite_words.note_gone(self._connection, job.places)
        # All are looked at before any goes, so that the answer does not depend on their order.
        self._remove_places([key for key, place in job.orphans if self._is_empty(place)], _AT)

    def _remove_places(self, places: Sequence[str], which: str = _AT_OR_BELOW) -> None:
        """Few statements for all of them: a long session has thousands."""
        run = self._connection.execute
        for table in ("document", "small"):
            if mine := [place for place in places if table in tables(place)]:
                run(f"DELETE FROM {table} WHERE key IN ({which.format(table=table)})", {"places": json.dumps(mine)})

    def _is_empty(self, place: str) -> bool:
        found = (
            self._connection.execute(f"SELECT 1 FROM {table} WHERE key > ? AND key < ? LIMIT 1", below(place)).get
            for table in tables(place)
        )
        return not any(found)


def tables(place: str) -> tuple[str, ...]:
    """The tables that may hold something at or below a path; its first segment decides."""
    return (table_of(place),) if place else ("document", "small")


def below(place: str) -> tuple[str, str | bytes]:
    """The bounds, both outside, of the keys strictly below a path; "0" is the character behind "/"."""
    return (place + "/", place + "0") if place else ("", BEHIND_ALL_KEYS)
