"""Packed logs: older entries lie together in one row, deflated, for a log repeats itself and is hardly ever read.

An entry is packed when many have come after it. What reads a log's end, as everybody does who follows it, finds plain
rows.
"""

import zlib
from typing import cast

import apsw

RUN = 128
"""Entries in one row."""
PLAIN = 64
"""So many at the end of a log are never packed."""

_SEPARATOR = b"\n"
"""Compact JSON has none inside."""

_PLAIN_SQL = "SELECT seq, CAST(body AS BLOB) FROM entry WHERE log = ? AND seq > ? ORDER BY seq LIMIT ?"


def pack(connection: apsw.Connection, log: int, length: int) -> bool:
    """Pack one run of a log, if it has enough plain entries; whether it may have another. Inside a transaction."""
    rows = _rows(connection, log, 0, RUN)
    if len(rows) < RUN or rows[-1][0] > length - PLAIN:
        return False
    bodies = [body for _, body in rows]
    if any(_SEPARATOR in body for body in bodies):
        return False  # Nobody who writes JSON as we do; it stays as it is.
    joined, (first, _), (last, _) = _SEPARATOR.join(bodies), rows[0], rows[-1]
    connection.execute(
        "INSERT INTO packed (log, last, size, bodies) VALUES (?, ?, ?, ?)",
        (log, last, len(joined), zlib.compress(joined)),
    )
    connection.execute("DELETE FROM entry WHERE log = ? AND seq BETWEEN ? AND ?", (log, first, last))
    return True


def read(connection: apsw.Connection, name: str, after: int, limit: int) -> list[bytes]:
    """The entries of a log behind number ``after``; all of them if the limit is negative. Sees one moment."""
    found: list[bytes] = []
    with connection:
        log = connection.execute("SELECT id FROM log WHERE name = ?", (name,)).get
        if log is not None:
            found = _unpacked(connection, log, after, limit)
            if limit < 0 or len(found) < limit:
                rest = _rows(connection, log, after + len(found), limit - len(found) if limit >= 0 else -1)
                found.extend(body for _, body in rest)
    return found if limit < 0 else found[:limit]


def _unpacked(connection: apsw.Connection, log: int, after: int, limit: int) -> list[bytes]:
    found: list[bytes] = []
    rows = connection.execute("SELECT last, bodies FROM packed WHERE log = ? AND last > ? ORDER BY last", (log, after))
    for last, packed in cast("list[tuple[int, bytes]]", rows):  # The statement says what a row holds.
        bodies = zlib.decompress(packed).split(_SEPARATOR)
        # Only the first run may begin before the place that was asked for.
        found.extend(bodies[max(0, after + len(found) + len(bodies) - last) :])
        if 0 <= limit <= len(found):
            break
    return found


def _rows(connection: apsw.Connection, log: int, after: int, limit: int) -> list[tuple[int, bytes]]:
    found = connection.execute(_PLAIN_SQL, (log, after, limit)).fetchall()
    return cast("list[tuple[int, bytes]]", found)
