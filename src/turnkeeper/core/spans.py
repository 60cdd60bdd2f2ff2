"""Spans: pieces of a text that are to be masked, joined where they overlap and carried over the end of a text."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from turnkeeper.text.shape import Found

_WORD: Final = re.compile(r"(?:[A-Z]?[a-z]+(?:-[a-z]+)*|[AI])[.,:;!?]*")
"""A plain word, as at the beginning of a sentence."""


class Span(NamedTuple):
    """A piece of a text, and its secret. ``secret`` is empty for the rest of a secret that began in an earlier text."""

    start: int
    end: int
    kind: str
    secret: str


def joined(text: str, found: Iterable[Found]) -> list[Span]:
    """The pieces in order, without overlaps. Of two that overlap, the kind of the longer one is kept."""
    merged: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if one.start >= one.end:
            continue
        if merged and one.start < merged[-1].end:
            last = merged[-1]
            kind = one.kind if one.end - one.start > last.end - last.start else last.kind
            merged[-1] = Found(last.start, max(last.end, one.end), kind)
        else:
            merged.append(one)
    return [Span(one.start, one.end, one.kind, text[one.start : one.end]) for one in merged]


def overlapping(found: Iterable[Found]) -> Callable[[int, int], bool]:
    """Whether a piece of a text overlaps one of these."""
    merged = sorted((one.start, one.end) for one in found)
    if not merged:
        return lambda start, end: False
    starts = [start for start, _ in merged]
    furthest = list(accumulate((end for _, end in merged), max))

    def overlaps(start: int, end: int) -> bool:
        before = bisect_right(starts, end - 1)
        return before > 0 and furthest[before - 1] > start

    return overlaps


def going_on(texts: Sequence[str], whole: Iterable[Found], alone: Callable[[str], Iterable[Found]]) -> Iterator[Found]:
    """The secrets found in the joined texts, without those that only seem to continue in the next text.

    A token has no end of its own. One that is whole at the end of a text would take the first word of the next text
    with it; what ``alone`` finds in that text tells. A rest that is no plain word is taken for one of a split secret.
    """
    ends = list(accumulate(map(len, texts)))
    together = "".join(texts)
    for one in whole:
        index = bisect_right(ends, one.start)
        end = ends[index]
        begin = end - len(texts[index])
        is_word = one.end > end and _WORD.fullmatch(together, end, one.end) is not None
        own = alone(texts[index]) if is_word else ()
        if not any((found.start + begin, found.end + begin) == (one.start, end) for found in own):
            yield one


def crossing(texts: Sequence[str], whole: Iterable[Found]) -> list[list[Span]]:
    """For each text, its pieces of secrets that cross into another text. ``whole`` are those of the joined texts."""
    ends = list(accumulate(map(len, texts)))
    pieces: list[list[Span]] = [[] for _ in texts]
    together = "".join(texts)
    for span in joined(together, whole):
        first, last = bisect_right(ends, span.start), bisect_right(ends, span.end - 1)
        for index in range(first, last + 1) if first < last else ():
            begin = ends[index] - len(texts[index])
            start, end = max(span.start, begin) - begin, min(span.end, ends[index]) - begin
            pieces[index].append(Span(start, end, span.kind, span.secret if index == first else ""))
    return pieces
