"""The word index in Postgres: the words of each text as a tsvector, found by a GIN index.

The words are cut and folded by ``engines/words.py``, as for every engine, and not by a text search configuration of the
server: all engines give the same answers, and the language of the server plays no part.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from turnkeeper.store.engine import below
from turnkeeper.store.engines.postgres.connection import Connection
from turnkeeper.store.engines.words import words

WORD_BYTES_MAX: Final = 2000
"""Postgres refuses a word of more than 2,046 bytes. The beginning of a longer one is indexed."""
PIECE_BYTES_MAX: Final = 400_000
"""Postgres refuses a tsvector of more than 1 MB, so a longer text has several."""


def write(connection: Connection, texts: Mapping[str, str | None]) -> None:
    """Index texts, oldest first; None removes the text of a path."""
    if not texts:
        return
    connection.execute("DELETE FROM word WHERE key = ANY (%s::text[])", (sorted(texts),))
    rows = [
        (path, number, vector)
        for path, text in texts.items()
        if text is not None
        for number, vector in _numbered(list(_vectors(words(text))))
    ]
    if rows:
        connection.execute(
            # The ids are given in the order of the rows, so that a text that comes later is newer.
            "INSERT INTO word (key, piece, id, words) SELECT key, piece, nextval('word_id'), words::tsvector"
            " FROM (SELECT * FROM unnest(%s::text[], %s::smallint[], %s::text[]) WITH ORDINALITY"
            " AS given (key, piece, words, number) ORDER BY number) AS new"
            " ON CONFLICT (key, piece) DO UPDATE SET id = excluded.id, words = excluded.words",
            ([path for path, _, _ in rows], [number for _, number, _ in rows], [vector for _, _, vector in rows]),
        )


def search(connection: Connection, wanted: Sequence[str], path: str, limit: int) -> list[str]:
    """Paths below a path whose text has a word beginning with each of the wanted ones, newest first."""
    low, high = below(path)
    each = [f"'{_clipped(word)}':*" for word in wanted]
    rows = connection.execute(
        "SELECT key, id FROM word WHERE piece = 0 AND words @@ %(all)s::tsquery AND key > %(low)s AND key < %(high)s"
        " UNION ALL"
        # A long text: each word may be in another of its rows.
        " SELECT key, max(id) AS id FROM word WHERE piece > 0 AND key > %(low)s AND key < %(high)s GROUP BY key"
        " HAVING (SELECT bool_and(EXISTS (SELECT 1 FROM word AS one WHERE one.key = word.key AND one.piece > 0"
        " AND one.words @@ wanted::tsquery)) FROM unnest(%(each)s::text[]) AS wanted)"
        " ORDER BY id DESC LIMIT %(limit)s",
        {"all": " & ".join(each), "each": each, "low": low, "high": high, "limit": limit},
    )
    return [key for key, _ in rows.fetchall()]


def _vectors(found: Iterable[str]) -> Iterator[str]:
    """The words of a text, each once, as literals that Postgres accepts."""
    piece: list[str] = []
    size = 0
    for word in dict.fromkeys(_clipped(word) for word in found):
        size += len(word.encode()) + 1
        if size > PIECE_BYTES_MAX:
            yield " ".join(piece)
            piece, size = [], 0
        piece.append(f"'{word}'")
    yield " ".join(piece)


def _numbered(vectors: Sequence[str]) -> Iterable[tuple[int, str]]:
    return enumerate(vectors, start=0 if len(vectors) == 1 else 1)


def _clipped(word: str) -> str:
    if len(word) * 4 <= WORD_BYTES_MAX:
        return word
    return word.encode()[:WORD_BYTES_MAX].decode(errors="ignore")
