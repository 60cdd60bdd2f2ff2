"""Documents in SQLite: two tables, one of them for kinds with many small documents (see schema.py)."""

from collections.abc import Collection, Iterable, Sequence

import apsw
import msgspec

from turnkeeper.store.engine import Key, below
from turnkeeper.store.engines.sqlite.rows import rows

# Keys and values are read as bytes, and a NULL value as empty bytes: one damaged row must not end a read of many rows.
_KEY, _VALUE = "CAST(found.key AS BLOB)", "CAST(coalesce(found.value, '') AS BLOB)"

# One statement for many prefixes. Without a prefix the upper bound is the last character that exists.
_BELOW = (
    "found.key > iif(wanted.value = '', '', wanted.value || '/')"
    " AND found.key < iif(wanted.value = '', char(1114111), wanted.value || '0')"
)


class Documents:
    """Reads and writes documents; the first segment of a path, its kind, determines the table."""

    def __init__(self, small_kinds: Collection[str]) -> None:
        self._small_kinds = frozenset(small_kinds)

    def write(self, connection: apsw.Connection, documents: Iterable[tuple[str, bytes | None]]) -> None:
        """Write documents under paths; None removes one."""
        written: dict[str, list[tuple[str, bytes | None]]] = {}
        removed: dict[str, list[tuple[str]]] = {}
        for path, value in documents:
            if value is not None:
                written.setdefault(self._table(path), []).append((path, value))
            else:
                removed.setdefault(self._table(path), []).append((path,))
        for table, added in written.items():
            connection.executemany(
                f"INSERT INTO {table} (key, value) VALUES (?, CAST(? AS TEXT))"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                added,
            )
        for table, keys in removed.items():
            connection.executemany(f"DELETE FROM {table} WHERE key = ?", keys)

    def remove_below(self, connection: apsw.Connection, paths: Sequence[str]) -> None:
        """Remove the documents at and below these paths."""
        for table in self._tables(paths):
            connection.execute(
                f"DELETE FROM {table} WHERE key IN (SELECT value FROM json_each(:paths) UNION ALL"
                f" SELECT found.key FROM json_each(:paths) AS wanted CROSS JOIN {table} AS found ON {_BELOW})",
                {"paths": json_array(paths)},
            )

    def is_empty(self, connection: apsw.Connection, path: str) -> bool:
        """Whether there is no document below a path."""
        return not self.scan(connection, path, *below(path), limit=1)

    def get(self, connection: apsw.Connection, paths: Sequence[str]) -> list[bytes | None]:
        """The documents under these paths, from one snapshot."""
        if len(paths) == 1:  # Most calls.
            sql = f"SELECT {_VALUE} FROM {self._table(paths[0])} AS found WHERE key = ?"
            return [connection.execute(sql, (paths[0],)).get]
        found: list[bytes | None] = [None] * len(paths)
        wanted = json_array(paths)
        with connection:
            for table in self._tables(paths):
                matches = connection.execute(
                    f"SELECT wanted.key, {_VALUE} FROM json_each(?) AS wanted"
                    f" CROSS JOIN {table} AS found ON found.key = wanted.value",
                    (wanted,),
                )
                for number, value in rows(tuple[int, bytes], matches):
                    found[number] = value
        return found

    def scan(
        self,
        connection: apsw.Connection,
        prefix: str,
        low: str,
        high: str,
        *,
        limit: int = -1,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        """Documents below a prefix, strictly between two bounds; all of them if the limit is negative."""
        tables = sorted(self._tables([prefix]))
        source = tables[0] if len(tables) == 1 else "(SELECT * FROM document UNION ALL SELECT * FROM small_document)"
        found = connection.execute(
            f"SELECT {_KEY}, {_VALUE} FROM {source} AS found WHERE key > ? AND key < ?"
            f" ORDER BY key {'DESC' if reverse else 'ASC'} LIMIT ?",
            (low, high, limit),
        )
        return [(_key(key), value) for key, value in rows(tuple[bytes, bytes], found)]

    def gather(self, connection: apsw.Connection, prefixes: Sequence[str]) -> list[list[tuple[Key, bytes]]]:
        """The documents below each prefix, in order, from one snapshot."""
        found: list[list[tuple[bytes, bytes]]] = [[] for _ in prefixes]
        wanted = json_array(prefixes)
        with connection:
            for table in self._tables(prefixes):
                matches = connection.execute(
                    f"SELECT wanted.key, {_KEY}, {_VALUE} FROM json_each(?) AS wanted"
                    f" CROSS JOIN {table} AS found ON {_BELOW}",
                    (wanted,),
                )
                for number, key, value in rows(tuple[int, bytes, bytes], matches):
                    found[number].append((key, value))
        # Sorted here, prefix by prefix: SQLite would sort all rows together, and most prefixes have one row.
        return [[(_key(key), value) for key, value in sorted(group)] for group in found]

    def _table(self, path: str) -> str:
        return "small_document" if path.partition("/")[0] in self._small_kinds else "document"

    def _tables(self, paths: Iterable[str]) -> set[str]:
        """The tables with documents at or below these paths; everything is below the empty path."""
        kinds = {path.partition("/")[0] for path in paths}
        return {"document", "small_document"} if "" in kinds else {self._table(kind) for kind in kinds}


def json_array(paths: Sequence[str]) -> str:
    """Paths as one SQL parameter, for ``json_each``."""
    return msgspec.json.encode(paths).decode()


def _key(path: bytes) -> Key:
    """The key of a row; invalid UTF-8 is replaced."""
    return tuple(path.decode("utf-8", "replace").split("/"))
