"""Edit: replaces a text in a file, where the model may have written the old text inexactly.

Strategies are tried from strict to loose (``edit_strategies``); each proposes passages of the file. A passage that
occurs once is replaced. An ambiguous passage, or one far larger than the old text, is refused.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import TypeAlias

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
    spans: tuple[tuple[int, int], ...]


def locate(content: str, search: str, *, every: bool = False) -> EditMatch | NoMatch | Ambiguous | Oversized:
    """Find ``search`` in ``content``. Both must have one kind of line ends."""
    most = 0
    for name, propose in STRATEGIES:
        # A blank text would match everywhere if white space is ignored.
        if name != "exact" and not search.strip():
            break
        for candidate in propose(content, search):
            if not candidate:
                continue
            if name != "trimmed ends":
                candidate = _with_line_end(content, candidate, search)
            count = _count(content, candidate)
            if count > 1 and not every:
                most = max(most, count)
                continue
            if name != "exact" and _is_oversized(candidate, search):
                return Oversized(lines=candidate.count("\n") + 1)
            return EditMatch(strategy=name, spans=_occurrences(content, candidate))
    return Ambiguous(count=most) if most else NoMatch()


def _with_line_end(content: str, candidate: str, search: str) -> str:
    """The candidate with the line end that the search has at its end: strategies propose lines without it."""
    has_it = search.endswith("\n") and not candidate.endswith("\n") and f"{candidate}\n" in content
    return f"{candidate}\n" if has_it else candidate


def _count(content: str, candidate: str) -> int:
    """The number of occurrences; two that overlap count as two, because the match is ambiguous."""
    count = content.count(candidate)
    return 2 if count == 1 and content.find(candidate) != content.rfind(candidate) else count


def _occurrences(content: str, candidate: str) -> tuple[tuple[int, int], ...]:
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
    """A function from positions in the text with LF line ends to positions in the original."""
    shortened: list[int] = []  # The positions, in the LF text, of line ends that were CRLF.
    at = content.find("\r\n")
    while at >= 0:
        shortened.append(at - len(shortened))
        at = content.find("\r\n", at + 2)
    return lambda place: place + bisect_left(shortened, place)
