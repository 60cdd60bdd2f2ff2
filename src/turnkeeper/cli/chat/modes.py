"""How a chat uses its terminal: the whole screen, a line editor at the bottom, or plain lines. A decision."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from turnkeeper.core import flags

Mode: TypeAlias = Literal["screen", "editor", "lines"]

SIMPLE: Final = ("", "dumb", "unknown")
"""What TERM says of a terminal that cannot move its cursor."""
COLUMNS_MIN: Final = 40
ROWS_MIN: Final = 10
"""On a smaller terminal a full screen is no help."""


def mode(environ: Mapping[str, str], columns: int, rows: int, *, is_plain: bool, has_textual: bool) -> Mode:
    """The mode for a terminal of this size. ``is_plain`` if the user asked for lines."""
    if environ.get("TERM", "") in SIMPLE:
        return "lines"
    if is_plain or flags.PLAIN.is_on(environ) or not has_textual or columns < COLUMNS_MIN or rows < ROWS_MIN:
        return "editor"
    return "screen"
