"""Edit: replaces a text in a file, where the model may have written the old text inexactly.

Strategies are tried from strict to loose (``edit_strategies``); each proposes passages of the file. A passage that
occurs once is replaced. An ambiguous passage, or one far larger than the old text, is refused.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from turnkeeper.model.value import Value
from turnkeeper.text.edit_strategies import STRATEGIES


class Edited(Value):
    """The new content, the strategy that matched, and the number of replacements."""

    content: str
    strategy: str
    count: int


class NoMatch(Value):
    """No passage of the file matches the text."""


class Ambiguous(Value):
    """The text occurs at least ``count`` times."""

    count: int


class Oversized(Value):
    """The matching passage is too much larger than the text."""

    lines: int


Span: TypeAlias = tuple[int, int]
"""A stretch of a text, from its start to its end."""

PLACES_MAX: Final = 1000
"""Places of one text that are counted."""

EditOutcome: TypeAlias = Edited | NoMatch | Ambiguous | Oversized


def edit(content: str, old: str, new: str, *, every: bool = False) -> EditOutcome:
    """Replace ``old`` by ``new`` once, or ``every`` occurrence.

    Matching ignores the kind of line ends. The replacement has CRLF line ends if the file has any; the rest of the file
    is unchanged.
    """
    has_crlf = "\r\n" in content
    plain = content.replace("\r\n", "\n")
    found = locate(plain, old.replace("\r\n", "\n"), every=every)
    if not isinstance(found, EditMatch):
        return found
    replacement = new.replace("\r\n", "\n")
    replacement = replacement.replace("\n", "\r\n") if has_crlf else replacement
    original = _original_places(content) if has_crlf else None
    pieces, at = [], 0
    for start, end in found.spans:
        first, last = (start, end) if original is None else (original(start), original(end))
        pieces += [content[at:first], replacement]
        at = last
    return Edited(content="".join([*pieces, content[at:]]), strategy=found.strategy, count=len(found.spans))


class EditMatch(Value):
    """The matches as ranges from start to end, and the strategy that found them."""

    strategy: str
    spans: tuple[Span, ...]


def locate(content: str, search: str, *, every: bool = False) -> EditMatch | NoMatch | Ambiguous | Oversized:
    """The place of ``search`` in a text. Line ends must be the same in both.

    A strategy that finds several places decides nothing. A later one may still tell them apart, as lines that are alike
    but for their indentation; a place that only it finds is not trusted then.
    """
    unclear: list[Span] = []
    for name, propose in STRATEGIES:
        # A blank text would match everywhere if white space is ignored.
        if name != "exact" and not search.strip():
            break
        candidates = [candidate for candidate in propose(content, search) if candidate]
        if name != "trimmed ends":
            candidates = [_with_line_end(content, candidate, search) for candidate in candidates]
        places = _places(content, candidates)
        if not places:
            continue
        if len(places) > 1 and not every:
            if name == "exact":
                return Ambiguous(count=len(places))
            unclear = unclear or places
            continue
        if unclear and not any(_is_same(places[0], other) for other in unclear):
            continue
        if name != "exact" and _is_oversized(candidates[0], search):
            return Oversized(lines=candidates[0].count("\n") + 1)
        apart = _occurrences(content, candidates[0], step=len(candidates[0]))
        return EditMatch(strategy=name, spans=tuple(apart))
    return Ambiguous(count=len(unclear)) if unclear else NoMatch()


def _places(content: str, candidates: Sequence[str]) -> list[Span]:
    """The places of the candidates of one strategy. A candidate inside another is the same place."""
    places: list[Span] = []
    for candidate in dict.fromkeys(candidates):
        # Two occurrences that overlap are two, for it is unclear which is meant.
        own = list(islice(_occurrences(content, candidate, step=1), PLACES_MAX))
        if len(own) == 1 and any(_is_same(own[0], other) for other in places):
            continue
        places += own
    return places


def _occurrences(content: str, candidate: str, *, step: int) -> Iterator[Span]:
    """The places at which a text occurs. The search goes on ``step`` characters after the start of the last place."""
    start = content.find(candidate)
    while start >= 0:
        yield start, start + len(candidate)
        start = content.find(candidate, start + step)


def _is_same(one: Span, other: Span) -> bool:
    """Whether one place lies in the other. Two places that only overlap are different."""
    inner, outer = sorted((one, other), key=lambda span: span[1] - span[0])
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _with_line_end(content: str, candidate: str, search: str) -> str:
    """The candidate with the line end that the search has at its end: strategies propose lines without it."""
    has_it = search.endswith("\n") and not candidate.endswith("\n") and f"{candidate}\n" in content
    return f"{candidate}\n" if has_it else candidate


def _is_oversized(candidate: str, search: str) -> bool:
    lines, wanted = candidate.count("\n") + 1, search.count("\n") + 1
    if lines >= max(wanted + 3, wanted * 2):
        return True
    length, asked = len(candidate.strip()), len(search.strip())
    return lines > 1 and length > max(asked + 500, asked * 4)


def _original_places(content: str) -> Callable[[int], int]:
    """A function from positions in the text with LF line ends to positions in the original."""
    shortened: list[int] = []  # The positions, in the LF text, of line ends that were CRLF.
    at = content.find("\r\n")
    while at >= 0:
        shortened.append(at - len(shortened))
        at = content.find("\r\n", at + 2)
    return lambda place: place + bisect_left(shortened, place)
