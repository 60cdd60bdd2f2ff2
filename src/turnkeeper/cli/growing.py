"""Text on its way: what of it is whole and may be printed for good, and what may still become something else."""

import re

from turnkeeper.model.parts import ReasoningPart, TextPart
from turnkeeper.model.parts.base import BasePart

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class Paragraphs:
    """Text that grows, and how much of it is whole: up to an empty line that stands in no block of code.

    Each character is looked at once, however the text arrives.
    """

    def __init__(self) -> None:
        self.whole = 0
        """How many characters are whole."""
        self._length = 0
        self._line: list[str] = []
        self._fence = ""

    def add(self, text: str) -> None:
        """Take in more text."""
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
            self.whole = self._length


class Growing:
    """A part that is on its way, and how much of its text stands above already."""

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
        """The part is whole: what it says beyond what is printed is what waits."""
        self.part, self.is_settled = part, True
        if isinstance(part, TextPart | ReasoningPart):
            self.waiting = part.text[self.printed :]

    def take(self) -> str:
        """The text that may be printed now, for good."""
        end = len(self.waiting) if self.is_settled else self._paragraphs.whole - self.printed
        taken, self.waiting = self.waiting[:end], self.waiting[end:]
        self.printed += len(taken)
        return taken
