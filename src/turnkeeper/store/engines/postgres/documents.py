"""Documents in Postgres: statements that read and write rows of the table ``document``."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal

from turnkeeper.store.engine import InvalidKey, Key, below, paths
from turnkeeper.store.engines.postgres.connection import Connection

KEY_BYTES_MAX: Final = 2000
"""An index row holds at most a third of a page of 8 kB."""


def short_paths(keys: Collection[Key]) -> list[str]:
    """The paths of many keys. Raises InvalidKey, also for a path that is too long for an index."""
    found = paths(keys)
    for path in found:
        if len(path) * 4 > KEY_BYTES_MAX and len(path.encode()) > KEY_BYTES_MAX:
            raise InvalidKey(f"a key segment is too long: {path[:80]!r}...; a key has at most {KEY_BYTES_MAX:,} bytes")
    return found


def write(connection: Connection, documents: Mapping[str, bytes | None]) -> None:
    """Write documents under paths; None removes one."""
    # In the order of their keys, so that two processes lock rows in the same order.
    written = sorted((path, value) for path, value in documents.items() if value is not None)
    if written:
        connection.execute(
            "INSERT INTO document (key, value) SELECT * FROM unnest(%s::text[], %s::bytea[])"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            ([path for path, _ in written], [value for _, value in written]),
        )
    removed = sorted(path for path, value in documents.items() if value is None)
    if removed:
        connection.execute(
            "DELETE FROM document WHERE key IN"
            " (SELECT key FROM document WHERE key = ANY (%s::text[]) ORDER BY key FOR UPDATE)",
            (removed,),
        )


def remove_below(connection: Connection, paths: Sequence[str], table: Literal["document", "word"]) -> None:
    """Remove the rows of a table whose keys are these paths or below them."""
    bounds = [below(path) for path in paths]
    connection.execute(f"DELETE FROM {table} WHERE key = ANY (%s::text[])", (list(paths),))
    connection.execute(
        f"DELETE FROM {table} USING unnest(%s::text[], %s::text[]) AS gone (low, high)"
        " WHERE key > gone.low AND key < gone.high",
        ([low for low, _ in bounds], [high for _, high in bounds]),
    )


def remove_orphans(connection: Connection, orphans: Sequence[tuple[str, str]]) -> None:
    """Remove each key below whose path no document is left."""
    bounds = [below(path) for _, path in orphans]
    # One statement, so that all are checked before one is removed and their order does not matter.
    connection.execute(
        "DELETE FROM document USING unnest(%s::text[], %s::text[], %s::text[]) AS orphan (key, low, high)"
        " WHERE document.key = orphan.key AND NOT EXISTS"
        " (SELECT 1 FROM document AS other WHERE other.key > orphan.low AND other.key < orphan.high)",
        ([key for key, _ in orphans], [low for low, _ in bounds], [high for _, high in bounds]),
    )


def get(connection: Connection, paths: Sequence[str]) -> list[bytes | None]:
    """The documents under these paths, from one snapshot."""
    rows = connection.execute(
        "SELECT key, value FROM document WHERE key = ANY (%s::text[])", (list(paths),), binary=True
    )
    found: dict[str, bytes] = dict(rows.fetchall())
    return [found.get(path) for path in paths]


def scan(connection: Connection, low: str, high: str, *, limit: int | None, reverse: bool) -> list[tuple[Key, bytes]]:
    """Documents strictly between two bounds, in the order of their keys."""
    order = "DESC" if reverse else "ASC"
    rows = connection.execute(
        f"SELECT key, value FROM document WHERE key > %s AND key < %s ORDER BY key {order} LIMIT %s",
        (low, high, limit),
        binary=True,
    )
    return [(tuple(key.split("/")), value) for key, value in rows.fetchall()]


def gather(connection: Connection, paths: Sequence[str]) -> list[list[tuple[Key, bytes]]]:
    """The documents below each path, in order, from one snapshot."""
    bounds = [below(path) for path in paths]
    rows = connection.execute(
        "SELECT wanted.number, found.key, found.value"
        " FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS wanted (low, high, number)"
        " CROSS JOIN LATERAL (SELECT key, value FROM document WHERE key > wanted.low AND key < wanted.high"
        " ORDER BY key) AS found",
        ([low for low, _ in bounds], [high for _, high in bounds]),
        binary=True,
    )
    groups: list[list[tuple[Key, bytes]]] = [[] for _ in paths]
    for number, key, value in rows.fetchall():
        groups[number - 1].append((tuple(key.split("/")), value))
    return groups
