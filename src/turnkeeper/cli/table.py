"""Tables: aligned columns that fit the screen, ids never cut."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnkeeper.cli.screen import Screen, cells, shortened

GAP = "  "


@dataclass(frozen=True)
class Column:
    """A column. One with ``least`` gives way, down to that width, when the screen is narrow."""

    title: str
    values: Sequence[str]
    styles: tuple[str, ...] = ()
    least: int | None = None
    is_optional: bool = False
    """Whether the column is left out where even its least width is too much."""
    keep_end: bool = False
    """Whether a value that is cut loses its beginning, as a path should."""


def table(screen: Screen, columns: Sequence[Column]) -> str:
    """The columns beside each other, below their titles. A column in which nothing stands is left out."""
    columns = [column for column in columns if any(column.values)]
    if not columns:
        return ""
    widths, over = _widths(screen, columns)
    if over > 0 and any(column.is_optional for column in columns):
        return table(screen, [column for column in columns if not column.is_optional])
    titles = _line([column.title for column in columns], columns, widths)
    lines = [screen.paint("".join(titles), "dim")]
    for row in zip(*(column.values for column in columns), strict=True):
        texts = _line(row, columns, widths)
        lines.append("".join(screen.paint(text, *one.styles) for text, one in zip(texts, columns, strict=True)))
    return "\n".join(line.rstrip() for line in lines)


def _widths(screen: Screen, columns: Sequence[Column]) -> tuple[list[int], int]:
    """How wide each column is, and how much they are too wide together."""
    widths = [max(map(cells, (column.title, *column.values))) for column in columns]
    if screen.width is None:
        return widths, 0
    over = sum(widths) + len(GAP) * (len(widths) - 1) - screen.width
    # The last column gives way first: it holds what is least needed to tell the rows apart.
    for place in reversed(range(len(columns))):
        least = columns[place].least
        if over > 0 and least is not None and widths[place] > least:
            cut = min(over, widths[place] - least)
            widths[place] -= cut
            over -= cut
    return widths, over


def _line(texts: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    """The cells of a line, each padded to its column but for the last."""
    fitted = list(map(_cut, texts, columns, widths))
    padded = [text + " " * (width - cells(text)) + GAP for text, width in zip(fitted[:-1], widths, strict=False)]
    return [*padded, fitted[-1]]


def _cut(text: str, column: Column, width: int) -> str:
    return text if column.least is None else shortened(text, width, keep_end=column.keep_end)
