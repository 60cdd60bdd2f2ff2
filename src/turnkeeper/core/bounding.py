"""Bound: cut a text to the size that a model is shown. Beginning and end stay; a line between them counts the rest."""

from collections.abc import Sequence

from turnkeeper.core.limits import (
    OUTPUT_BYTES_MAX,
    OUTPUT_LINES_MAX,
    RESULT_MEDIA_CHARS_MAX,
    RESULT_MEDIA_MAX,
    TURN_MEDIA_CHARS_MAX,
    TURN_MEDIA_MAX,
    TURN_OUTPUT_BYTES_MAX,
    TURN_RESULT_BYTES_MIN,
)
from turnkeeper.model.value import Value

HINT = "Ask for less at once to see it: an offset, a narrower pattern, head or tail."

_MARKER_BYTES = 160
_MARKER_LINES = 4


class Bounded(Value):
    """``text`` is within the limits. ``full`` is the whole text if it was cut; ``lines`` and ``bytes`` are its size."""

    text: str
    full: str | None = None
    lines: int
    bytes: int


def bound(
    text: str, *, lines_max: int = OUTPUT_LINES_MAX, bytes_max: int = OUTPUT_BYTES_MAX, hint: str = HINT
) -> Bounded:
    """The text within both limits, cut at line ends where there are any, and never inside a character.

    If the limits leave no room for anything else, only the line that counts the rest stays.
    """
    content = text.encode("utf-8", "surrogatepass")
    lines = count_lines(content)
    if lines <= lines_max and len(content) <= bytes_max:
        return Bounded(text=text, lines=lines, bytes=len(content))
    lines_each = max((lines_max - _MARKER_LINES) // 2, 0)
    bytes_each = max((bytes_max - _MARKER_BYTES - len(hint.encode("utf-8", "surrogatepass"))) // 2, 0)
    head = _head(content, lines_each, bytes_each) if lines_each else b""
    tail = _tail(content[len(head) :], lines_each, bytes_each) if lines_each else b""
    gone = content[len(head) : len(content) - len(tail)]
    marker = f"[... {count_lines(gone)} lines, {len(gone)} bytes left out here. {hint} ...]"
    around = [f"{_text(head).removesuffix(chr(10))}\n"] if head else []
    shown = "".join([*around, marker, *([f"\n{_text(tail)}"] if tail else [])])
    return Bounded(text=shown, full=text, lines=lines, bytes=len(content))


def kept_hint(handle: str, path: str | None = None, warning: str | None = None, *, lost_bytes: int = 0) -> str:
    """Tells the model how to read the whole text: by its handle, and in the file ``path``, if it was written.

    ``lost_bytes`` in the middle of the output were not stored, because it was longer than OUTPUT_KEPT_MAX.
    """
    what = f"All of it but {lost_bytes} bytes in the middle, which are lost" if lost_bytes else "All of it"
    recall = f"{what}: recall with handle {handle}"
    if path is not None:
        return f"{recall}, or read (with offset) or grep {path}"
    return recall if warning is None else f"{recall} (no file holds it: {warning})"


class TurnShare:
    """Divides the bytes that the results of one turn may take of a request.

    A result may take half of the bytes that are left, so later results are cut shorter and one turn cannot fill the
    window. Each result gets at least TURN_RESULT_BYTES_MIN, so that its recall handle is shown.
    """

    def __init__(self, bytes_max: int = OUTPUT_BYTES_MAX) -> None:
        self._left = max(TURN_OUTPUT_BYTES_MAX, 4 * bytes_max)

    @property
    def room(self) -> int:
        """Bytes that the next result may take."""
        return max(self._left // 2, TURN_RESULT_BYTES_MIN)

    def take(self, size: int) -> None:
        """Subtract the size of a result; a negative size gives bytes back."""
        self._left = max(self._left - size, 0)


class TurnMedia:
    """Bounds the number and the size of the files that the results of one turn attach to a request."""

    def __init__(self) -> None:
        self._files, self._chars = TURN_MEDIA_MAX, TURN_MEDIA_CHARS_MAX

    def admit(self, sizes: Sequence[int]) -> list[bool]:
        """Whether each file of one result is shown, given the lengths of the ``data:`` URLs: the first that fit are."""
        files, chars = RESULT_MEDIA_MAX, RESULT_MEDIA_CHARS_MAX
        shown = []
        for size in sizes:
            fits = min(files, self._files) > 0 and size <= min(chars, self._chars)
            if fits:
                files, chars = files - 1, chars - size
                self._files, self._chars = self._files - 1, self._chars - size
            shown.append(fits)
        return shown


def count_lines(content: bytes) -> int:
    """The number of lines; a last line without a line break counts."""
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
