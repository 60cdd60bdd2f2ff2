"""Packed logs: older entries lie together in one row, deflated, for a log repeats itself and is hardly ever read.

An entry is packed when many have come after it. What reads a log's end, as everybody does who follows it, finds plain
rows.
"""

import zlib
from typing import cast

import apsw

from turnkeeper.store.engines.sqlite_schema import SEQ_MAX, behind, seq_of

RUN = 128
"""Entries in one row."""
PLAIN = 64
"""So many at the end of a log are never packed."""

_SEPARATOR = b"\n"
"""Compact JSON has none inside."""


def pack(connection: apsw.Connection, log: int, length: int) -> bool:
    """Pack one run of a log, if it has enough plain entries; whether it may have another. Inside a transaction."""
    plain = _plain(connection, log, 0, RUN)
    if len(plain) < RUN or seq_of(plain[-1][0]) > length - PLAIN:
        return False
    bodies = [body for _, body in plain]
    if any(_SEPARATOR in body for body in bodies):
        return False  # Nobody who writes JSON as we do; it stays as it is.
    joined, (first, _), (last, _) = _SEPARATOR.join(bodies), plain[0], plain[-1]
    connection.execute(
        "INSERT INTO packed (id, size, bodies) VALUES (?, ?, ?)", (last, len(joined), zlib.compress(joined))
    )
    connection.execute("DELETE FROM entry WHERE id BETWEEN ? AND ?", (first, last))
    return True


def read(connection: apsw.Connection, name: str, after: int, limit: int) -> list[bytes]:
    """The entries of a log behind number ``after``; all of them if the limit is negative. Sees one moment."""
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
    """Those that are not packed, with their numbers. One statement, so it sees one moment too."""
    found = connection.execute(
        "SELECT entry.id & 4294967295, CAST(coalesce(entry.body, '') AS BLOB) FROM log CROSS JOIN entry"
        " ON entry.id > (log.id << 32 | ?) AND entry.id <= (log.id << 32 | 4294967295)"
        " WHERE log.name = ? ORDER BY entry.id LIMIT ?",
        (min(after, SEQ_MAX), name, limit),
    )
    return cast("list[tuple[int, bytes]]", found.fetchall())


def length(connection: apsw.Connection, name: str) -> int:
    """How many entries a log has: the number of its last, which is never packed."""
    found = connection.execute(
        "SELECT max(entry.id) & 4294967295 FROM log CROSS JOIN entry"
        " ON entry.id BETWEEN log.id << 32 AND log.id << 32 | 4294967295 WHERE log.name = ?",
        (name,),
    )
    return found.get or 0


def _unpacked(connection: apsw.Connection, log: int, after: int, limit: int) -> list[bytes]:
    found: list[bytes] = []
    runs = connection.execute(
        "SELECT id, CAST(coalesce(bodies, '') AS BLOB) FROM packed WHERE id > ? AND id <= ? ORDER BY id",
        behind(log, after),
    )
    for number, packed in cast("list[tuple[int, bytes]]", runs):  # The statement says what a row holds.
        bodies = _bodies(connection, number, packed)
        # Only the first run may begin before the place that was asked for.
        found.extend(bodies[max(0, after + len(found) + len(bodies) - seq_of(number)) :])
        if 0 <= limit <= len(found):
            break
    return found


def _bodies(connection: apsw.Connection, number: int, packed: bytes) -> list[bytes]:
    """The entries of one run. In a damaged run each entry keeps its place; one that is lost is empty."""
    try:
        return zlib.decompress(packed).split(_SEPARATOR)
    except zlib.error:
        begin = number - seq_of(number)
        before = connection.execute("SELECT max(id) FROM packed WHERE id > ? AND id < ?", (begin, number)).get
        count = min(seq_of(number) - seq_of(before), RUN)
        found = _readable(packed).split(_SEPARATOR)[:count]
        return found + [b""] * (count - len(found))


def _readable(packed: bytes) -> bytes:
    """As much of a damaged run as can be inflated. Its end may be wrong; the hash chain of the log shows where."""
    inflating, found = zlib.decompressobj(), b""
    try:
        for byte in packed:  # One byte at a time: an error takes with it what was inflated in the same call.
            found += inflating.decompress(bytes([byte]))
    except zlib.error:
        pass
    return found


def _plain(connection: apsw.Connection, log: int, after: int, limit: int) -> list[tuple[int, bytes]]:
    found = connection.execute(
        "SELECT id, CAST(coalesce(body, '') AS BLOB) FROM entry WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
        (*behind(log, after), limit),
    )
    return cast("list[tuple[int, bytes]]", found.fetchall())
