"""A unified diff as a person reads it: line numbers, colours, and no more lines than can be taken in."""

import re
from collections.abc import Iterator

from turnkeeper.cli.screen import Screen, harmless, shortened

LINES_MAX = 16
WIDTH = 100

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def patch_lines(screen: Screen, patch: str, *, lines_max: int = LINES_MAX) -> Iterator[str]:
    """The changed lines with a few around them, numbered as they are now."""
    shown = list(_numbered(patch))
    digits = max((len(number) for number, _, _ in shown), default=1)
    room = min(screen.width or WIDTH, WIDTH) - digits - 8
    for number, mark, text in shown[:lines_max]:
        style = {"+": ("green",), "-": ("red",)}.get(mark, ("dim",))
        line = f"{mark} {shortened(harmless(text), room)}".rstrip()
        yield f"    {screen.paint(number.rjust(digits), 'dim')} {screen.paint(line, *style)}"
    if (more := len(shown) - lines_max) > 0:
        yield f"    {screen.paint(f'… {more} more', 'dim')}"


def counts(patch: str) -> tuple[int, int]:
    """How many lines a diff adds and deletes."""
    marks = [mark for _, mark, _ in _numbered(patch)]
    return marks.count("+"), marks.count("-")


def _numbered(patch: str) -> Iterator[tuple[str, str, str]]:
    """Number, mark and text of each line; hunks are set apart by a line of dots."""
    old = new = 0
    for line in patch.split("\n"):
        if found := _HUNK.match(line):
            if new:
                yield "", "⋮", ""
            old, new = int(found[1]), int(found[2])
        elif not new and not old:
            continue  # The names of the file: the title says it.
        elif line.startswith("+"):
            yield str(new), "+", line[1:]
            new += 1
        elif line.startswith("-"):
            yield str(old), "-", line[1:]
            old += 1
        elif line.startswith(" "):
            yield str(new), " ", line[1:]
            old, new = old + 1, new + 1
