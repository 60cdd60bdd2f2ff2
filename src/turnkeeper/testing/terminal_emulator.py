"""A terminal emulator for tests, with the escape sequences that the command line writes."""

import re
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"\x1b\[(?P<numbers>[0-9;?]*)(?P<action>[A-Za-z])|(?P<text>[^\x1b\r\n\x07]+)|(?P<control>.)", re.S
)


class _Cell(NamedTuple):
    """A character and its style."""

    character: str
    style: str


class TerminalEmulator:
    """A terminal with a width and unlimited height."""

    def __init__(self, width: int = 100) -> None:
        self._width = width
        self._rows: list[list[_Cell]] = [[]]
        self._row = self._column = 0
        self._style = ""

    def feed(self, output: str) -> None:
        """Process output. An escape sequence must be complete."""
        for token in _TOKEN.finditer(output):
            if text := token["text"]:
                for character in text:
                    self._put(character)
            elif token["control"] == "\r":
                self._column = 0
            elif token["control"] == "\n":
                self._down()
            elif action := token["action"]:
                self._act(action, token["numbers"])

    @property
    def lines(self) -> list[str]:
        """The visible lines without styles, up to the last that is not empty."""
        lines = ["".join(cell.character for cell in row).rstrip() for row in self._rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def text(self) -> str:
        """The visible lines, joined."""
        return "\n".join(self.lines)

    def painted(self) -> list[str]:
        """The visible lines with their styles."""
        return ["".join(_runs(row)) for row in self._rows[: len(self.lines)]]

    def _put(self, character: str) -> None:
        if self._column >= self._width:
            self._column = 0
            self._down()
        row = self._rows[self._row]
        row.extend([_Cell(" ", "")] * (self._column + 1 - len(row)))
        row[self._column] = _Cell(character, self._style)
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append([])

    def _act(self, action: str, numbers: str) -> None:
        match action:
            case "m":
                self._style = "" if numbers in ("", "0") else f"{self._style}\x1b[{numbers}m"
            case "A":
                self._row = max(0, self._row - int(numbers or 1))
            case "K":
                del self._rows[self._row][0 if numbers == "2" else self._column :]


def _runs(row: list[_Cell]) -> list[str]:
    runs, style = [], ""
    for cell in row:
        if cell.style != style:
            runs.append(f"\x1b[0m{cell.style}")
            style = cell.style
        runs.append(cell.character)
    return [*runs, "\x1b[0m" if style else ""]
