"""Bound: cut a text to what a model is shown of it. Beginning and end stay; a line between says what is gone."""

from turnkeeper.core.limits import OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX
from turnkeeper.model.value import Value

HINT = "Ask for less at once to see it: an offset, a narrower pattern, head or tail."

_MARKER_BYTES = 160
_MARKER_LINES = 4


class Bounded(Value):
    """``text`` is within the limits. ``full`` is the whole text if some of it was cut; ``lines`` and ``bytes`` measure
    the whole.
    """

    text: str
    full: str | None = None
    lines: int
    bytes: int


def bound(
    text: str, *, lines_max: int = OUTPUT_LINES_MAX, bytes_max: int = OUTPUT_BYTES_MAX, hint: str = HINT
) -> Bounded:
    """The text within both limits, cut at line ends where there are any, and never inside a character."""
    content = text.encode("utf-8", "surrogatepass")
    lines = count_lines(content)
    if lines <= lines_max and len(content) <= bytes_max:
        return Bounded(text=text, lines=lines, bytes=len(content))
    lines_each = (lines_max - _MARKER_LINES) // 2
    bytes_each = (bytes_max - _MARKER_BYTES - len(hint.encode())) // 2
    assert lines_each > 0, "the limit leaves no line to show"
    assert bytes_each > 0, "the limit leaves no byte to show"
    head = _head(content, lines_each, bytes_each)
    tail = _tail(content[len(head) :], lines_each, bytes_each)
    gone = content[len(head) : len(content) - len(tail)]
    marker = f"[... {count_lines(gone)} lines, {len(gone)} bytes left out here. {hint} ...]"
    shown = f"{_text(head).removesuffix(chr(10))}\n{marker}\n{_text(tail)}"
    return Bounded(text=shown, full=text, lines=lines, bytes=len(content))


def count_lines(content: bytes) -> int:
    """How many lines a text has; a last one without a line break counts."""
    return content.count(b"\n") + (content[-1:] not in (b"", b"\n"))


def _head(content: bytes, lines: int, size: int) -> bytes:
    end = 0
    for _ in range(lines):
        after = content.find(b"\n", end) + 1
        if not 0 < after <= size:
            break
        end = after
    if end:
        return content[:end]
    while size > 0 and _is_inside_character(content, size):
        size -= 1
    return content[:size]


def _tail(content: bytes, lines: int, size: int) -> bytes:
    start = len(content)
    for _ in range(lines):
        # The search ends before the line break that closes the line, which belongs to it.
        before = content.rfind(b"\n", 0, max(start - 1, 0)) + 1
        if len(content) - before > size or before == start:
            break
        start = before
    if start == len(content):
        start = max(len(content) - size, 0)
        while _is_inside_character(content, start):
            start += 1
    return content[start:]


def _is_inside_character(content: bytes, place: int) -> bool:
    return place < len(content) and content[place] & 0xC0 == 0x80


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
