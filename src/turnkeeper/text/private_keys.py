"""Private keys: whole ones, and those of which an output that was cut has only the first or the last lines."""

import re
from collections.abc import Iterator
from typing import Final

from turnkeeper.text.shape import LINE_NUMBER, PRIVATE_KEY, Found, Shape, vendor

_BEGIN: Final = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_END: Final = r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_BETWEEN: Final = rf"(?:\\[rn]|[\s\"'+,|>#*\-]|{LINE_NUMBER})*+"
_KEY_LINES: Final = rf"(?>(?:{_BETWEEN}[A-Za-z0-9+/=]{{20,}}+)+)"
"""Lines of base64, also with the signs of a diff, a listing or a source text around them. Without backtracking."""
_END_MARK: Final = re.compile(_END)
_KEY_LINE: Final = re.compile(rf"(?:[\s\"'+,|>#*\-]|{LINE_NUMBER})*+[A-Za-z0-9+/=]{{8,}}+[\s\"',\\nr+]*")
KEY_CHARS_MAX: Final = 20_000
"""Characters before the end mark of a private key in which the key is searched."""


def _is_key(value: str) -> bool:
    """Whether the text between two marks is mostly base64, and not the source of a program that reads keys."""
    inside = re.sub(r"-----[^-\n]{1,60}-----", "", value)
    runs = sum(map(len, re.findall(r"[A-Za-z0-9+/=]{16,}", inside)))
    return runs >= 32 and runs * 2 > len(re.sub(r"\s|\\n", "", inside))


KEY_SHAPES: Final = (
    Shape(PRIVATE_KEY, ("-----begin ",), re.compile(rf"{_BEGIN}(?:(?!-----BEGIN).){{0,20000}}?{_END}", re.S), _is_key),
    Shape(PRIVATE_KEY, ("-----begin ",), re.compile(rf"{_BEGIN}{_KEY_LINES}")),
    Shape(PRIVATE_KEY, ("private-lines: ",), re.compile(rf"Private-Lines: \d+{_KEY_LINES}")),
    vendor("AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}", PRIVATE_KEY),
)


def keys_without_beginning(text: str) -> Iterator[Found]:
    """Private keys of which an output that was cut has only the last lines. Read backwards from the mark of the end."""
    for match in _END_MARK.finditer(text) if "PRIVATE KEY" in text else ():
        start, place = match.start(), match.start()
        for line in reversed(text[max(0, start - KEY_CHARS_MAX) : start].splitlines(keepends=True)):
            if line.strip(" \t\r\n+-|>#*\"',\\") and not _KEY_LINE.fullmatch(line):
                break
            place -= len(line)
            start = place if _KEY_LINE.fullmatch(line) else start
        if start < match.start():
            yield Found(start, match.end(), PRIVATE_KEY)
