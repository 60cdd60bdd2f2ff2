"""The word index in SQLite, and the queue of changes before it.

Indexing or removing one text costs as much as the rest of an append; many together cost little more. So an append only
adds to the queue, which the writer thread processes later. A search reads the queue first, which is newer than the
index.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import apsw

from turnkeeper.store.engine import below
from turnkeeper.store.engines.sqlite.documents import json_array
from turnkeeper.store.engines.sqlite.rows import rows
from turnkeeper.store.engines.words import words

QUEUE_MIN = 64
"""A shorter queue is not processed, unless it has a removal."""
CHANGES_PER_PIECE = 128
"""Texts that are indexed or removed in one transaction, so that no append waits long."""

_SUBTREE_MARK = "/"
"""A key in the queue that ends with this removes everything at and below its path."""

_KEY_AND_TEXT = "CAST(coalesce(key, '') AS BLOB), CAST(content AS BLOB)"
"""Read as bytes, so that damaged text does not break a search."""


def enqueue(connection: apsw.Connection, texts: Iterable[tuple[str, str | None]]) -> None:
    """Queue texts for indexing, in this order; None removes the text of a path."""
    connection.executemany("INSERT INTO word_queue (key, content) VALUES (?, ?)", texts)


def enqueue_removal(connection: apsw.Connection, paths: Sequence[str]) -> None:
    """Queue the removal of everything at and below these paths from the index; remove it from the queue."""
    found = connection.execute(
        "SELECT value FROM json_each(:paths) AS wanted WHERE EXISTS (SELECT 1 FROM text WHERE key = wanted.value)"
        " OR EXISTS (SELECT 1 FROM text WHERE key > iif(wanted.value = '', '', wanted.value || '/')"
        " AND key < iif(wanted.value = '', char(1114111), wanted.value || '0'))",
        {"paths": json_array(paths)},
    )
    indexed = sorted({path for (path,) in rows(tuple[str], found)})
    removed = set(paths)
    queued = connection.execute("SELECT id, CAST(coalesce(key, '') AS BLOB) FROM word_queue").fetchall()
    superseded = [
        (number,)
        for number, key in rows(tuple[int, bytes], queued)
        if not removed.isdisjoint(_at_or_above(_text(key).removesuffix(_SUBTREE_MARK)))
    ]
    connection.executemany("DELETE FROM word_queue WHERE id = ?", superseded)
    enqueue(connection, [(path + _SUBTREE_MARK, None) for path in indexed])


def work_off(connection: apsw.Connection) -> int:
    """Process some of the oldest changes; returns ``waiting``. In a transaction."""
    changes = connection.execute(
        f"SELECT id, {_KEY_AND_TEXT} FROM word_queue ORDER BY id LIMIT ?", (CHANGES_PER_PIECE,)
    ).fetchall()
    texts: dict[str, str | None] = {}
    last = 0
    for number, path, text in rows(tuple[int, bytes, bytes | None], changes):
        key = _text(path)
        if key.endswith(_SUBTREE_MARK):
            # Texts that were queued before a removal are indexed before it.
            if not texts and _remove_subtree(connection, key.removesuffix(_SUBTREE_MARK)):
                last = number
            break
        texts.pop(key, None)  # Removed first: the order of this dict is the age of the texts.
        texts[key] = _text(text) if text is not None else None
        last = number
    _index(connection, texts)
    connection.execute("DELETE FROM word_queue WHERE id <= ?", (last,))
    return waiting(connection)


def waiting(connection: apsw.Connection) -> int:
    """The length of the queue. A removal adds QUEUE_MIN, so that removed texts do not stay in the index."""
    return int(
        connection.execute("SELECT count(*) + iif(sum(key GLOB '*/') > 0, ?, 0) FROM word_queue", (QUEUE_MIN,)).get
    )


def leftovers(connection: apsw.Connection) -> int:
    """The number of removed texts that are still in the index."""
    return int(
        connection.execute(
            "SELECT count(*) FROM word_queue AS gone JOIN text ON text.key = rtrim(gone.key, '/')"
            " OR (text.key > iif(gone.key = '/', '', gone.key)"
            " AND text.key < iif(gone.key = '/', char(1114111), rtrim(gone.key, '/') || '0'))"
            " WHERE gone.key GLOB '*/'"
        ).get
    )


def search(connection: apsw.Connection, wanted: Sequence[str], prefix: str, limit: int) -> list[str]:
    """Paths below a prefix whose texts have words that begin with these, newest first."""
    low, high = below(prefix)
    found: list[str] = []
    with connection:  # One snapshot of queue and index, because texts move between them.
        queue = _Queue(connection, low, high)
        for path, text in queue.texts():
            if _has(text, wanted):
                found.append(path)
        # CROSS JOIN makes the word index the outer loop, which gives the newest first and stops at the limit.
        matches = connection.execute(
            "SELECT CAST(text.key AS BLOB) FROM word CROSS JOIN text ON text.id = word.rowid"
            " WHERE word MATCH ? AND text.key > ? AND text.key < ? ORDER BY word.rowid DESC",
            (" ".join(f'"{word}"*' for word in wanted), low, high),
        )
        for (key,) in rows(tuple[bytes], matches):
            if len(found) >= limit:
                break
            path = _text(key)
            if not queue.replaces(path):
                found.append(path)
    return found[:limit]


class _Queue:
    """The queued texts between two paths, newest first, and the indexed texts that they replace."""

    def __init__(self, connection: apsw.Connection, low: str, high: str) -> None:
        # A removal counts wherever it is, because it may be of a path above.
        found = connection.execute(
            f"SELECT {_KEY_AND_TEXT} FROM word_queue WHERE (key > ? AND key < ?) OR key GLOB '*/' ORDER BY id DESC",
            (low, high),
        ).fetchall()
        self._rows = [
            (_text(key), _text(text) if text is not None else None)
            for key, text in rows(tuple[bytes, bytes | None], found)
        ]
        self._keys: set[str] = set()

    def texts(self) -> Iterator[tuple[str, str]]:
        """The newest text of each path."""
        for key, text in self._rows:
            if text is not None and not self.replaces(key):
                yield key, text
            self._keys.add(key)

    def replaces(self, path: str) -> bool:
        """Whether a newer row replaces or removes the text of this path. Call it after iterating ``texts``."""
        return path in self._keys or any(above + _SUBTREE_MARK in self._keys for above in _at_or_above(path))


def _text(stored: bytes) -> str:
    """A column as text; bytes that are not UTF-8 are replaced."""
    return stored.decode("utf-8", "replace")


def _at_or_above(path: str) -> Iterator[str]:
    """A path and every path above it."""
    yield path
    while path:
        path = path.rpartition("/")[0]
        yield path


def _has(text: str, wanted: Sequence[str]) -> bool:
    spaced = " ".join(("", *words(text)))
    return all(f" {word}" in spaced for word in wanted)


def _index(connection: apsw.Connection, texts: Mapping[str, str | None]) -> None:
    """Index texts under new ids, so that the highest id is the newest text."""
    run, many = connection.execute, connection.executemany
    old = run("SELECT id FROM text WHERE key IN (SELECT value FROM json_each(?))", (json_array(list(texts)),))
    _remove(connection, list(rows(tuple[int, ...], old)))
    first = (run("SELECT max(id) FROM text").get or 0) + 1
    new = list(enumerate([(path, text) for path, text in texts.items() if text is not None], first))
    many("INSERT INTO text (id, key) VALUES (?, ?)", [(number, path) for number, (path, _) in new])
    many(
        "INSERT INTO word (rowid, words) VALUES (?, ?)",
        # Each word once: positions and counts are not used.
        [(number, " ".join(dict.fromkeys(words(text)))) for number, (_, text) in new],
    )


def _remove_subtree(connection: apsw.Connection, path: str) -> bool:
    """Remove some of the texts at and below a path; returns whether none is left."""
    found = connection.execute(
        "SELECT id FROM text WHERE key = ? OR (key > ? AND key < ?) LIMIT ?", (path, *below(path), CHANGES_PER_PIECE)
    ).fetchall()
    _remove(connection, list(rows(tuple[int, ...], found)))
    return len(found) < CHANGES_PER_PIECE


def _remove(connection: apsw.Connection, numbers: Sequence[tuple[int, ...]]) -> None:
    connection.executemany("DELETE FROM word WHERE rowid = ?", numbers)
    connection.executemany("DELETE FROM text WHERE id = ?", numbers)
