"""The index of words: what an append says about it waits in a queue, and is worked off while nobody else waits.

To put one text into the index costs as much as all else that is written for it, and to take one out as much again; to
do many at once costs little more. Until then a search reads the queue first: what stands there is newer than the index.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import apsw

from turnkeeper.store.engines.words import words

FRESH_MAX = 64
"""So much may stay in the queue while nothing happens."""
WORKED_OFF_MAX = 128
"""Texts that are put into the index, or taken out, at once, so that nobody waits long behind them."""

_PLACE_END = "/"
"""A key in the queue that ends so stands for all at and below a path."""

_KEY_AND_TEXT = "CAST(coalesce(key, '') AS BLOB), CAST(said AS BLOB)"
"""Read as bytes: damaged text must not end a search."""


def note(connection: apsw.Connection, texts: Mapping[str, str | None]) -> None:
    """Have texts indexed, in this order; None if a path says nothing any more."""
    connection.executemany("INSERT INTO fresh (key, said) VALUES (?, ?)", texts.items())


def note_gone(connection: apsw.Connection, places: Sequence[str]) -> None:
    """Take everything at and below these paths out of the queue, and have it taken out of the index."""
    run = connection.execute
    found = run(
        "SELECT value FROM json_each(:places) AS wanted WHERE EXISTS (SELECT 1 FROM text WHERE key = wanted.value)"
        " OR EXISTS (SELECT 1 FROM text WHERE key > iif(wanted.value = '', '', wanted.value || '/')"
        " AND key < iif(wanted.value = '', char(1114111), wanted.value || '0'))",
        {"places": json.dumps(places)},
    )
    indexed = sorted({place for (place,) in cast("list[tuple[str]]", found)})
    removed = set(places)
    waiting = cast("list[tuple[int, bytes]]", run("SELECT id, CAST(coalesce(key, '') AS BLOB) FROM fresh").fetchall())
    superseded = [
        (number,)
        for number, key in waiting
        if not removed.isdisjoint(_at_or_above(_text(key).removesuffix(_PLACE_END)))
    ]
    connection.executemany("DELETE FROM fresh WHERE id = ?", superseded)
    connection.executemany("INSERT INTO fresh (key) VALUES (?)", [(place + _PLACE_END,) for place in indexed])


def work_off(connection: apsw.Connection) -> int:
    """Do the oldest of what waits, and say how much waits still. Inside a transaction."""
    rows = connection.execute(
        f"SELECT id, {_KEY_AND_TEXT} FROM fresh ORDER BY id LIMIT ?", (WORKED_OFF_MAX,)
    ).fetchall()
    said: dict[str, str | None] = {}
    last = 0
    for number, place, text in cast("list[tuple[int, bytes, bytes | None]]", rows):
        key = _text(place)
        if key.endswith(_PLACE_END):
            if said:
                break  # First what was said before it.
            if _take_out_below(connection, key):
                last = number
            break
        said.pop(key, None)  # Out and in again: the order of this dict is the age of the texts.
        said[key] = _text(text) if text is not None else None
        last = number
    _put_in(connection, said)
    connection.execute("DELETE FROM fresh WHERE id <= ?", (last,))
    return waiting(connection)


def waiting(connection: apsw.Connection) -> int:
    """How much waits: at least FRESH_MAX if it is worth to be worked off."""
    # What is gone waits for nothing: it would lie in the index for ever in a store that nobody writes to.
    left = connection.execute("SELECT count(*) + iif(sum(key GLOB '*/') > 0, ?, 0) FROM fresh", (FRESH_MAX,)).get
    return int(left)


def leftovers(connection: apsw.Connection) -> int:
    """How many texts that were removed are still in the index."""
    return int(
        connection.execute(
            "SELECT count(*) FROM fresh JOIN text ON text.key = rtrim(fresh.key, '/')"
            " OR (text.key > iif(fresh.key = '/', '', fresh.key)"
            " AND text.key < iif(fresh.key = '/', char(1114111), rtrim(fresh.key, '/') || '0'))"
            " WHERE fresh.key GLOB '*/'"
        ).get
    )


def search(connection: apsw.Connection, wanted: Sequence[str], low: str, high: str | bytes, limit: int) -> list[str]:
    """Paths between two bounds whose texts hold words that begin with these, newest first."""
    bounds = (low, high)
    found: list[str] = []
    with connection:  # The queue and the index are looked at in one moment, for texts go from one to the other.
        queue = _Queue(connection)
        for place, text in queue.said():
            if low < place and (isinstance(high, bytes) or place < high) and _holds(text, wanted):
                found.append(place)
        # CROSS JOIN keeps the word index outside: it gives the newest first, and the walk ends at the limit.
        rows = connection.execute(
            "SELECT CAST(text.key AS BLOB) FROM word CROSS JOIN text ON text.id = word.rowid"
            " WHERE word MATCH ? AND text.key > ? AND text.key < ? ORDER BY word.rowid DESC",
            (" ".join(f'"{word}"*' for word in wanted), *bounds),
        )
        for (key,) in cast("Iterable[tuple[bytes]]", rows):
            if len(found) >= limit:
                break
            place = _text(key)
            if not queue.hides(place):
                found.append(place)
    return found[:limit]


class _Queue:
    """What waits, newest first, and what it takes the place of."""

    def __init__(self, connection: apsw.Connection) -> None:
        rows = connection.execute(f"SELECT {_KEY_AND_TEXT} FROM fresh ORDER BY id DESC").fetchall()
        self._rows = [
            (_text(key), _text(said) if said is not None else None)
            for key, said in cast("list[tuple[bytes, bytes | None]]", rows)
        ]
        self._keys: set[str] = set()

    def said(self) -> Iterator[tuple[str, str]]:
        """Texts that hold."""
        for key, text in self._rows:
            if text is not None and not self.hides(key):
                yield key, text
            self._keys.add(key)

    def hides(self, place: str) -> bool:
        """Whether something newer says what is under this path, or that nothing is. Once ``said`` has been walked."""
        return place in self._keys or any(above + _PLACE_END in self._keys for above in _at_or_above(place))


def _text(stored: bytes) -> str:
    """A column that holds text; bytes that are none are replaced."""
    return stored.decode("utf-8", "replace")


def _at_or_above(place: str) -> Iterator[str]:
    """A path and all that it is below of."""
    yield place
    while place:
        place = place.rpartition("/")[0]
        yield place


def _holds(text: str, wanted: Sequence[str]) -> bool:
    spaced = " ".join(("", *words(text)))
    return all(f" {word}" in spaced for word in wanted)


def _put_in(connection: apsw.Connection, said: Mapping[str, str | None]) -> None:
    """A text that is written again gets a new number, so the highest number is the newest text."""
    run, many = connection.execute, connection.executemany
    old = run("SELECT id FROM text WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(said)),)).fetchall()
    _take_out(connection, cast("list[tuple[int]]", old))
    first = (run("SELECT max(id) FROM text").get or 0) + 1
    texts = [(place, text) for place, text in said.items() if text is not None]
    many("INSERT INTO text (id, key) VALUES (?, ?)", [(first + nth, place) for nth, (place, _) in enumerate(texts)])
    many(
        "INSERT INTO word (rowid, words) VALUES (?, ?)",
        # Each word once: positions and counts are never asked for.
        [(first + nth, " ".join(dict.fromkeys(words(text)))) for nth, (_, text) in enumerate(texts)],
    )


def _take_out_below(connection: apsw.Connection, key: str) -> bool:
    """Take out some of what is at and below a path; whether that was all."""
    place = key.removesuffix(_PLACE_END)
    low, high = (place + "/", place + "0") if place else ("", b"")
    found = connection.execute(
        "SELECT id FROM text WHERE key = ? OR (key > ? AND key < ?) LIMIT ?", (place, low, high, WORKED_OFF_MAX)
    ).fetchall()
    _take_out(connection, cast("list[tuple[int]]", found))
    return len(found) < WORKED_OFF_MAX


def _take_out(connection: apsw.Connection, numbers: Sequence[tuple[int]]) -> None:
    connection.executemany("DELETE FROM word WHERE rowid = ?", numbers)
    connection.executemany("DELETE FROM text WHERE id = ?", numbers)
