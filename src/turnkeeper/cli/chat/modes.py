"""Modes of a terminal: the full screen, a line editor at the bottom, or plain lines. A pure decision."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from turnkeeper.core import flags

Mode: TypeAlias = Literal["screen", "editor", "lines"]

SIMPLE: Final = ("", "dumb", "unknown")
"""Values of TERM for terminals that cannot move the cursor."""
COLUMNS_MIN: Final = 40
ROWS_MIN: Final = 10
"""Minimum number of rows for the full screen."""


def mode(environ: Mapping[str, str], columns: int, rows: int, *, is_plain: bool, has_textual: bool) -> Mode:
    """The mode for a terminal of this size. ``is_plain`` if the user asked for lines."""
    if environ.get("TERM", "") in SIMPLE:
        return "lines"
    if is_plain or flags.PLAIN.is_on(environ) or not has_textual or columns < COLUMNS_MIN or rows < ROWS_MIN:
        return "editor"
    return "screen"
