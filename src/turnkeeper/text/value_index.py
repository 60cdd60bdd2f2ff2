"""ValueIndex: finds many known values in a text, in time that does not grow with their number."""

import re
from collections.abc import Iterator
from typing import Final

ANCHOR: Final = 8
"""Characters by which a value is looked up. Shorter values are few, and are found by a pattern."""
BOUNDED_CHARS: Final = 12
"""A value that is shorter is found only where it is a word of its own."""

_BEFORE: Final = r"(?<![A-Za-z0-9])"
_AFTER: Final = r"(?![A-Za-z0-9])"


class ValueIndex:
    """Values by their first characters. Of two at one place the longer one is found; found values do not overlap.

    One pattern with all values would try each of them at each character, and would have to be compiled again for each
    new one.
    """

    def __init__(self) -> None:
        self._anchored: dict[str, list[str]] = {}
        self._short: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        """Find this value from now on."""
        if len(value) < ANCHOR:
            self._short.add(value)
            longest = sorted(self._short, key=len, reverse=True)
            self._pattern = re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, longest))}){_AFTER}")
            return
        known = self._anchored.setdefault(value[:ANCHOR], [])
        if value not in known:
            known.append(value)
            known.sort(key=len, reverse=True)

    def find(self, text: str) -> Iterator[tuple[int, str]]:
        """The values in a text, each with its start."""
        short = self._pattern.finditer(text) if self._pattern is not None else iter(())
        yield from ((match.start(), match[0]) for match in short)
        anchored, last = self._anchored, 0
        if not anchored:
            return
        for start in [at for at in range(len(text) - ANCHOR + 1) if text[at : at + ANCHOR] in anchored]:
            if start >= last and (value := self._value_at(text, start)) is not None:
                yield start, value
                last = start + len(value)

    def _value_at(self, text: str, start: int) -> str | None:
        for value in self._anchored[text[start : start + ANCHOR]]:
            if text.startswith(value, start) and (len(value) >= BOUNDED_CHARS or _is_word(text, start, len(value))):
                return value
        return None


def _is_word(text: str, start: int, length: int) -> bool:
    before, after = text[max(0, start - 1) : start], text[start + length : start + length + 1]
    return not any(one.isascii() and one.isalnum() for one in (before, after))
