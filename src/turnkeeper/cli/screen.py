"""The screen: how wide it is, whether it has colours, and how text, times and amounts look on it."""

import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from decimal import Decimal

_CODES: Final[Mapping[str, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}

# What a title or a tool's output must not do to a terminal: move the cursor, change colours, turn text round.
_HARMLESS: Final = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"},
    **dict.fromkeys([0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
}

_STEPS: Final = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (7 * 86_400, 86_400, "d"))


@dataclass(frozen=True)
class Screen:
    """Where values are shown to people. Without a width nothing is shortened: the output goes to a program."""

    width: int | None = None
    has_colors: bool = False
    now: int = 0
    home: str = ""

    @staticmethod
    def of(stream: TextIO) -> "Screen":
        """The screen behind a stream."""
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

    def ago(self, ms: int | float) -> str:
        """A moment as people say it: how long ago, and from a week on the date."""
        seconds = int(self.now - ms) // 1000
        if seconds < 1:
            return "now" if seconds > -60 else self.date(ms)
        for bound, unit, name in _STEPS:
            if seconds < bound:
                return f"{seconds // unit} {name} ago"
        return self.date(ms)[:10]

    def date(self, ms: int | float) -> str:
        """A moment in local time."""
        try:
            return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M")
        except (ValueError, OverflowError, OSError):  # Imported data may hold any number.
            return str(ms)

    def path(self, text: str) -> str:
        """A path, with ``~`` for the home directory."""
        if self.home and (text == self.home or text.startswith(f"{self.home}/")):
            return harmless(f"~{text[len(self.home) :]}")
        return harmless(text)


def show(text: str, *, to: TextIO | None = None) -> None:
    """Print for people. What the terminal cannot spell is replaced, not refused."""
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
    """How many columns a text takes."""
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


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count and its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Bytes as people read them."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def money(dollars: "float | Decimal") -> str:
    """Dollars as people read them: small sums to the hundredth of a cent."""
    return f"${dollars:,.4f}" if 0 < dollars < 1 else f"${dollars:,.2f}"


def fields(screen: Screen, rows: Sequence[tuple[str, str]]) -> str:
    """Names and values below each other; a row without a value is left out."""
    kept = [(name, value) for name, value in rows if value]
    width = max((len(name) for name, _ in kept), default=0)
    return "\n".join(f"{screen.paint(name.ljust(width), 'dim')}  {value}" for name, value in kept)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
