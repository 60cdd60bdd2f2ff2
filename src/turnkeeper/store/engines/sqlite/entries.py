"""Entries of logs in SQLite: the newest of each log are rows of their own, older ones are packed many to a row.

Entries compress well, and old entries are rarely read. Readers that follow a log read its end, which is not packed.
"""

import zlib
from collections.abc import Sequence

import apsw

from turnkeeper.store.engine import check_append
from turnkeeper.store.engines.sqlite.rows import first_row, rows

ENTRIES_PER_PACK = 128
UNPACKED_MIN = 64
"""Entries at the end of a log that are not packed."""

_SEQ_BITS = 32
_SEQ_MAX = (1 << _SEQ_BITS) - 1
_SEPARATOR = b"\n"
"""Compact JSON has no line breaks."""


class LogHead:
    """The id, fence and length of a log, read inside a write transaction."""

    def __init__(self, connection: apsw.Connection, name: str, last: bytes | None = None) -> None:
        found = connection.execute("SELECT id, CAST(coalesce(fence, 0) AS INTEGER) FROM log WHERE name = ?", (name,))
        self.id, self.fence = first_row(tuple[int, int], found) or (0, 0)
        # The last entry is compared in SQL, so that it is not read into memory.
        end = connection.execute(
            "SELECT id, body = CAST(? AS TEXT) FROM entry WHERE id > ? AND id <= ? ORDER BY id DESC LIMIT 1",
            (last, *_behind(self.id, 0)),
        )
        last_id, is_last = first_row(tuple[int | None, int | None], end) or (None, None)
        self.length = _seq(last_id)
        self.is_as_expected = last is None or bool(is_last)


def append(
    connection: apsw.Connection, name: str, after: int, entries: Sequence[bytes], fence: int | None, last: bytes | None
) -> bool:
    """Append entries to a log; returns whether it has enough entries to pack. Raises as Engine.append."""
    head = LogHead(connection, name, last)
    check_append(name, after, fence, length=head.length, current=head.fence, is_last=head.is_as_expected)
    log = head.id
    if not log:
        connection.execute("INSERT INTO log (name) VALUES (?)", (name,))
        log = connection.last_insert_rowid()
    if fence is not None and fence != head.fence:
        connection.execute("UPDATE log SET fence = ? WHERE id = ?", (fence, log))
    added = [(_id(log, seq), body) for seq, body in enumerate(entries, after + 1)]
    connection.executemany("INSERT INTO entry (id, body) VALUES (?, CAST(? AS TEXT))", added)
    first = after + len(entries) - ENTRIES_PER_PACK - UNPACKED_MIN + 1
    return first > 0 and connection.execute("SELECT 1 FROM entry WHERE id = ?", (_id(log, first),)).get is not None


def remove(connection: apsw.Connection, name: str) -> None:
    """Remove a log with all its entries."""
    span = _behind(LogHead(connection, name).id, 0)
    connection.execute("DELETE FROM entry WHERE id > ? AND id <= ?", span)
    connection.execute("DELETE FROM packed WHERE id > ? AND id <= ?", span)
    connection.execute("DELETE FROM log WHERE name = ?", (name,))


def pack(connection: apsw.Connection, name: str) -> bool:
    """Pack the oldest plain entries of a log if there are enough; returns whether it packed. In a transaction."""
    head = LogHead(connection, name)
    plain = _plain(connection, head.id, 0, ENTRIES_PER_PACK)
    if len(plain) < ENTRIES_PER_PACK or _seq(plain[-1][0]) > head.length - UNPACKED_MIN:
        return False
    bodies = [body for _, body in plain]
    if any(_SEPARATOR in body for body in bodies):
        return False
    joined, (first, _), (last, _) = _SEPARATOR.join(bodies), plain[0], plain[-1]
    connection.execute(
        "INSERT INTO packed (id, size, bodies) VALUES (?, ?, ?)", (last, len(joined), zlib.compress(joined))
    )
    connection.execute("DELETE FROM entry WHERE id BETWEEN ? AND ?", (first, last))
    return True


def read(connection: apsw.Connection, name: str, after: int, limit: int) -> list[bytes]:
    """The entries of a log after number ``after``, from one snapshot; all of them if the limit is negative."""
    found: list[bytes] = []
    with connection:
        log = connection.execute("SELECT id FROM log WHERE name = ?", (name,)).get
        if log is not None:
            found = _unpacked(connection, log, after, limit)
            if limit < 0 or len(found) < limit:
                rest = _plain(connection, log, after + len(found), limit - len(found) if limit >= 0 else -1)
                found.extend(body for _, body in rest)
    return found if limit < 0 else found[:limit]


def read_end(connection: apsw.Connection, name: str, after: int, limit: int) -> list[tuple[int, bytes]]:
    """Entries after number ``after`` that are not packed, with their numbers. One statement, so one snapshot."""
    found = connection.execute(
        "SELECT entry.id & 4294967295, CAST(coalesce(entry.body, '') AS BLOB) FROM log CROSS JOIN entry"
        " ON entry.id > (log.id << 32 | ?) AND entry.id <= (log.id << 32 | 4294967295)"
        " WHERE log.name = ? ORDER BY entry.id LIMIT ?",
        (min(after, _SEQ_MAX), name, limit),
    )
    return list(rows(tuple[int, bytes], found))


def length(connection: apsw.Connection, name: str) -> int:
    """The number of entries of a log: that of its last entry, which is not packed."""
    found = connection.execute(
        "SELECT entry.id FROM log CROSS JOIN entry ON entry.id BETWEEN log.id << 32 AND log.id << 32 | 4294967295"
        " WHERE log.name = ? ORDER BY entry.id DESC LIMIT 1",
        (name,),
    )
    return _seq(found.get)


def fence(connection: apsw.Connection, name: str) -> int:
    """The fence that a log was last written with."""
    return connection.execute("SELECT CAST(coalesce(fence, 0) AS INTEGER) FROM log WHERE name = ?", (name,)).get or 0


def logs(connection: apsw.Connection, after: str, limit: int) -> list[str]:
    """Names of logs with entries, in order, after the name ``after``."""
    found = connection.execute(
        "SELECT CAST(name AS BLOB) FROM log WHERE name > ?"
        " AND EXISTS (SELECT 1 FROM entry WHERE id BETWEEN log.id << 32 AND log.id << 32 | 4294967295)"
        " ORDER BY name LIMIT ?",
        (after, limit),
    )
    return [name.decode("utf-8", "replace") for (name,) in rows(tuple[bytes], found)]


def _unpacked(connection: apsw.Connection, log: int, after: int, limit: int) -> list[bytes]:
    found: list[bytes] = []
    packs = connection.execute(
        "SELECT id, CAST(coalesce(bodies, '') AS BLOB) FROM packed WHERE id > ? AND id <= ? ORDER BY id",
        _behind(log, after),
    )
    for last, packed in rows(tuple[int, bytes], packs):
        bodies = _bodies(connection, last, packed)
        # Only the first pack may begin before the first wanted entry.
        found.extend(bodies[max(0, after + len(found) + len(bodies) - _seq(last)) :])
        if 0 <= limit <= len(found):
            break
    return found


def _bodies(connection: apsw.Connection, last: int, packed: bytes) -> list[bytes]:
    """The entries of one pack. In a damaged pack, lost entries are empty, so that each keeps its number."""
    try:
        return zlib.decompress(packed).split(_SEPARATOR)
    except zlib.error:
        begin = last - _seq(last)
        before = connection.execute("SELECT max(id) FROM packed WHERE id > ? AND id < ?", (begin, last)).get
        count = min(_seq(last) - _seq(before), ENTRIES_PER_PACK)
        found = _readable(packed).split(_SEPARATOR)[:count]
        return found + [b""] * (count - len(found))


def _readable(packed: bytes) -> bytes:
    """The bytes of a damaged pack that can be inflated. Its end may be wrong, which the hash chain detects."""
    inflating, found = zlib.decompressobj(), b""
    try:
        for byte in packed:  # One byte at a time: an error discards what was inflated in the same call.
            found += inflating.decompress(bytes([byte]))
    except zlib.error:
        pass
    return found


def _plain(connection: apsw.Connection, log: int, after: int, limit: int) -> list[tuple[int, bytes]]:
    found = connection.execute(
        "SELECT id, CAST(coalesce(body, '') AS BLOB) FROM entry WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
        (*_behind(log, after), limit),
    )
    return list(rows(tuple[int, bytes], found))


def _id(log: int, seq: int) -> int:
    """The id of the row that holds an entry, or of the pack that ends with it."""
    return log << _SEQ_BITS | seq


def _behind(log: int, seq: int) -> tuple[int, int]:
    """The range of the ids of a log's rows after an entry: above the first number, up to the second."""
    return _id(log, min(seq, _SEQ_MAX)), _id(log, _SEQ_MAX)


def _seq(row_id: int | None) -> int:
    """The entry number of a row; 0 if there is no row."""
    return row_id & _SEQ_MAX if row_id is not None else 0
