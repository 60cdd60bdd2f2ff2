"""How text, times, amounts and tables look on a terminal, and its width and colours."""

import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from turnkeeper.text.escapes import escaped

if TYPE_CHECKING:
    from decimal import Decimal

    from turnkeeper.model.session import Tokens

_CODES: Final[Mapping[str, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}

# A title or a tool's output must not move the cursor, change colours or reverse the direction of text.
_HARMLESS: Final = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"},
    **dict.fromkeys([0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
}

TODO_MARKS: Final[Mapping[str, str]] = {"completed": "✓", "in_progress": "●", "cancelled": "✗"}
_GAP: Final = "  "
_STEPS: Final = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (7 * 86_400, 86_400, "d"))


@dataclass(frozen=True)
class Screen:
    """A terminal, or another output. Without a width nothing is shortened."""

    width: int | None = None
    has_colors: bool = False
    now: int = 0
    home: str = ""

    @staticmethod
    def of(stream: TextIO) -> "Screen":
        """The screen of a stream."""
        is_terminal = stream.isatty()
        return Screen(
            width=shutil.get_terminal_size().columns if is_terminal else None,
            has_colors=is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
            now=time.time_ns() // 1_000_000,
            home=str(Path.home()) if os.environ.get("HOME") else "",
        )

    def paint(self, text: str, *styles: str) -> str:
        """Text in a style, if there are colours."""
        if not self.has_colors or not text or not styles:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"

    def fit(self, text: str, room: int) -> str:
        """A text cut to a width, if the output is a terminal."""
        return text if self.width is None else shortened(text, room)

    def ago(self, ms: int | float) -> str:
        """How long ago a time was, or its date if that is more than a week."""
        seconds = int(self.now - ms) // 1000
        if seconds < 1:
            return "now" if seconds > -60 else self.date(ms)
        for bound, unit, name in _STEPS:
            if seconds < bound:
                return f"{seconds // unit} {name} ago"
        return self.date(ms)[:10]

    def date(self, ms: int | float) -> str:
        """A time in the local timezone."""
        try:
            return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M")
        except (ValueError, OverflowError, OSError):  # Imported data may hold any number.
            return str(ms)

    def path(self, text: str) -> str:
        """A path, with ``~`` for the home directory."""
        if self.home and (text == self.home or text.startswith(f"{self.home}/")):
            return escaped(f"~{text[len(self.home) :]}")
        return escaped(text)


def show(text: str, *, to: TextIO | None = None) -> None:
    """Print text. Characters that the encoding of the stream lacks are replaced."""
    stream = to or sys.stdout
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), file=stream)


def harmless(text: str) -> str:
    """Text without control characters, tabs as spaces."""
    return text if text.isprintable() else text.translate(_HARMLESS).expandtabs(4)


def one_line(text: str) -> str:
    """Text on one line."""
    return harmless(" ".join(text.split()))


def cells(text: str) -> int:
    """How many columns a text is wide."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def shortened(text: str, width: int, *, keep_end: bool = False) -> str:
    """A text cut to a width, with an ellipsis where something is missing."""
    if cells(text) <= width:
        return text
    kept, used = [], 1
    for character in reversed(text) if keep_end else text:
        used += _cells(character)
        if used > width:
            break
        kept.append(character)
    return "…" + "".join(reversed(kept)) if keep_end else "".join(kept) + "…"


def wrapped(text: str) -> str:
    """A text in lines that fit the terminal of standard error. Paths, ids and options stay whole."""
    import textwrap

    width = Screen.of(sys.stderr).width
    if width is None or cells(text) < width:
        return text
    return textwrap.fill(text, max(width - 1, 10), break_long_words=False, break_on_hyphens=False)


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """A number of bytes, with a unit."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def token_kinds(used: "Tokens") -> dict[str, int]:
    """The number of tokens of each kind, by its name."""
    return {
        "input": used.input,
        "output": used.output,
        "reasoning": used.reasoning,
        "cache read": used.cache.read,
        "cache write": used.cache.write,
    }


def money(dollars: "float | Decimal") -> str:
    """Dollars: less than one with four digits, more with two."""
    return f"${dollars:,.4f}" if 0 < dollars < 1 else f"${dollars:,.2f}"


def fields(screen: Screen, rows: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns, without the rows that have no value."""
    kept = [(name, value) for name, value in rows if value]
    width = max((len(name) for name, _ in kept), default=0)
    return "\n".join(f"{screen.paint(name.ljust(width), 'dim')}  {value}" for name, value in kept)


def rows_of(name: str, values: Iterable[str]) -> list[tuple[str, str]]:
    """Rows of fields for several values, of which the first has the name."""
    return [(name if place == 0 else "", value) for place, value in enumerate(values)]


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass(frozen=True)
class Column:
    """A column of a table. One with ``least`` is cut on a narrow screen, down to that width."""

    title: str
    values: Sequence[str]
    styles: tuple[str, ...] = ()
    least: int | None = None
    is_optional: bool = False
    """Whether the column is left out if its least width does not fit."""
    keep_end: bool = False
    """Whether a value is cut at its beginning, as a path should be."""


def table(screen: Screen, *given: Column) -> str:
    """Columns with their titles. A column without values is left out."""
    columns = [column for column in given if any(column.values)]
    if not columns:
        return ""
    widths, over = _widths(screen, columns)
    if over > 0 and any(column.is_optional for column in columns):
        return table(screen, *(column for column in columns if not column.is_optional))
    titles = _row([column.title for column in columns], columns, widths)
    lines = [screen.paint("".join(titles), "dim")]
    for row in zip(*(column.values for column in columns), strict=True):
        texts = _row(row, columns, widths)
        lines.append("".join(screen.paint(text, *one.styles) for text, one in zip(texts, columns, strict=True)))
    return "\n".join(line.rstrip() for line in lines)


def _widths(screen: Screen, columns: Sequence[Column]) -> tuple[list[int], int]:
    """The width of each column, and by how much the row is too wide."""
    widths = [max(map(cells, (column.title, *column.values))) for column in columns]
    if screen.width is None:
        return widths, 0
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - screen.width
    # The last column is cut first: it is the least needed to tell rows apart.
    for place in reversed(range(len(columns))):
        least = columns[place].least
        if over > 0 and least is not None and widths[place] > least:
            cut = min(over, widths[place] - least)
            widths[place] -= cut
            over -= cut
    return widths, over


def _row(texts: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    """The cells of a row, padded to the width of their columns except for the last."""
    fitted = list(map(_cut, texts, columns, widths))
    padded = [text + " " * (width - cells(text)) + _GAP for text, width in zip(fitted[:-1], widths, strict=False)]
    return [*padded, fitted[-1]]


def _cut(text: str, column: Column, width: int) -> str:
    return text if column.least is None else shortened(text, width, keep_end=column.keep_end)
