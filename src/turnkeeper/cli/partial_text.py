"""Streamed text: which of it is complete and can be printed, and which may still change."""

import re

from turnkeeper.model.parts import ReasoningPart, TextPart
from turnkeeper.model.parts.base import BasePart

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class Paragraphs:
    """Counts how much of a streamed text is complete: up to an empty line outside of code blocks.

    Each character is read once, for any size of the pieces.
    """

    def __init__(self) -> None:
        self.complete = 0
        """How many characters are complete."""
        self._length = 0
        self._line: list[str] = []
        self._fence = ""

    def add(self, text: str) -> None:
        """Add text."""
        *ended, rest = text.split("\n")
        for end in ended:
            line = "".join([*self._line, end])
            self._line.clear()
            self._length += len(end) + 1
            self._end_line(line)
        self._line.append(rest)
        self._length += len(rest)

    def _end_line(self, line: str) -> None:
        if found := _FENCE.match(line):
            if not self._fence:
                self._fence = found[1]
            elif found[1].startswith(self._fence) and not line.strip(" `~"):
                self._fence = ""
        elif not self._fence and not line.strip():
            self.complete = self._length


class PartialPart:
    """An unfinished part, and how much of its text is printed."""

    def __init__(self, part: BasePart) -> None:
        self.part = part
        self.printed = 0
        self.waiting = ""
        """The text that is not printed yet."""
        self.is_settled = False
        self._paragraphs = Paragraphs()
        if isinstance(part, TextPart | ReasoningPart):
            self.grow(part.text)

    def grow(self, text: str) -> None:
        """Add text."""
        self.waiting += text
        self._paragraphs.add(text)

    def settle(self, part: BasePart) -> None:
        """Replace the part by its finished form."""
        self.part, self.is_settled = part, True
        if isinstance(part, TextPart | ReasoningPart):
            self.waiting = part.text[self.printed :]

    def take(self) -> str:
        """Take the text that can be printed now."""
        end = len(self.waiting) if self.is_settled else self._paragraphs.complete - self.printed
        taken, self.waiting = self.waiting[:end], self.waiting[end:]
        self.printed += len(taken)
        return taken
