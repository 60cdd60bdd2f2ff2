"""Edit: replace one text by another in a file, where the model's memory of the first may be slightly off.

Strategies are tried from strict to loose (``edit_strategies``); each proposes stretches of the file. A stretch that
occurs once is replaced. Whatever is ambiguous or far larger than what was asked for is refused, never guessed.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from turnkeeper.model.value import Value
from turnkeeper.text.edit_strategies import STRATEGIES


class Edited(Value):
    """The new content, by which strategy it was found, and how many places changed."""

    content: str
    strategy: str
    count: int


class NoMatch(Value):
    """Nothing in the file looks like the text."""


class Ambiguous(Value):
    """The text occurs more than once; ``count`` is how often, at least."""

    count: int


class Oversized(Value):
    """What was found is so much larger than the text that it must be something else."""

    lines: int


Span: TypeAlias = tuple[int, int]
"""A stretch of a text, from its start to its end."""

PLACES_MAX: Final = 1000
"""How many places of one text are counted."""

EditOutcome: TypeAlias = Edited | NoMatch | Ambiguous | Oversized


def edit(content: str, old: str, new: str, *, every: bool = False) -> EditOutcome:
    """Replace ``old`` by ``new`` once, or ``every`` occurrence.

    Line ends do not matter for finding. What is put in has the file's own: CRLF if it has any; everything else in the
    file stays as it is to the byte.
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
    """Where the text is, as stretches from start to end, and by which strategy."""

    strategy: str
    spans: tuple[Span, ...]


def locate(content: str, search: str, *, every: bool = False) -> EditMatch | NoMatch | Ambiguous | Oversized:
    """Where in a text the searched one is. Line ends must be the same in both.

    A strategy that finds several places decides nothing. A later one may still tell them apart, as lines that are alike
    but for their indentation; a place that only it finds is not trusted then.
    """
    unclear: list[Span] = []
    for name, propose in STRATEGIES:
        # Blank text is everywhere once blanks are forgiven.
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
        return EditMatch(strategy=name, spans=_occurrences(content, candidates[0]))
    return Ambiguous(count=len(unclear)) if unclear else NoMatch()


def _places(content: str, candidates: Sequence[str]) -> list[Span]:
    """Where the candidates of one strategy are. One that lies in another is the same place."""
    places: list[Span] = []
    for candidate in dict.fromkeys(candidates):
        own = _all_occurrences(content, candidate)
        if len(own) == 1 and any(_is_same(own[0], other) for other in places):
            continue
        places += own
    return places


def _all_occurrences(content: str, candidate: str) -> list[Span]:
    """Every occurrence of a text; two that overlap are two, for it is unclear which is meant."""
    spans: list[Span] = []
    start = content.find(candidate)
    while start >= 0 and len(spans) < PLACES_MAX:
        spans.append((start, start + len(candidate)))
        start = content.find(candidate, start + 1)
    return spans


def _is_same(one: Span, other: Span) -> bool:
    """Whether one place lies in the other. Two that only share a part are two."""
    inner, outer = sorted((one, other), key=lambda span: span[1] - span[0])
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _with_line_end(content: str, candidate: str, search: str) -> str:
    """Lines are proposed without the last one's end; a search that has it means it."""
    has_it = search.endswith("\n") and not candidate.endswith("\n") and f"{candidate}\n" in content
    return f"{candidate}\n" if has_it else candidate


def _occurrences(content: str, candidate: str) -> tuple[Span, ...]:
    spans = []
    start = content.find(candidate)
    while start >= 0:
        spans.append((start, start + len(candidate)))
        start = content.find(candidate, start + len(candidate))
    return tuple(spans)


def _is_oversized(candidate: str, search: str) -> bool:
    lines, wanted = candidate.count("\n") + 1, search.count("\n") + 1
    if lines >= max(wanted + 3, wanted * 2):
        return True
    length, asked = len(candidate.strip()), len(search.strip())
    return lines > 1 and length > max(asked + 500, asked * 4)


def _original_places(content: str) -> Callable[[int], int]:
    """From a place in the text with plain line ends to the same place in the original."""
    shortened: list[int] = []  # Where, in the plain text, the line ends stand that lost a carriage return.
    at = content.find("\r\n")
    while at >= 0:
        shortened.append(at - len(shortened))
        at = content.find("\r\n", at + 2)
    return lambda place: place + bisect_left(shortened, place)
