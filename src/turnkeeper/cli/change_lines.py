"""Changed files as lines of text: as a patch, or as a line for each file."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from turnkeeper.cli.screen import Screen, cells, harmless, plural
from turnkeeper.text.escapes import escaped

if TYPE_CHECKING:
    from turnkeeper.model.file_change import FileChange

BAR_MAX: Final = 40
"""Signs in the bar of a file that most lines changed in."""

_STYLES: Final = {"@": ("cyan",), "+": ("green",), "-": ("red",), "\\": ("dim",), " ": ()}
"""How the lines of a hunk are painted; every other line belongs to the head of a file."""


def patch_lines(screen: Screen, changes: "Sequence[FileChange]") -> Iterator[str]:
    """Changes as a patch: plain in a pipe, so that git can apply it, and painted on a terminal."""
    for change in changes:
        if not change.patch:
            what = "binary" if change.binary else "too long to show"
            yield screen.paint(f"{change.status} {_name(change)} ({what}, {_counts(change)})", "bold")
        lines = change.patch.removesuffix("\n").split("\n") if change.patch else []
        yield from lines if screen.width is None else _painted(screen, lines)


def stat_lines(screen: Screen, changes: "Sequence[FileChange]") -> Iterator[str]:
    """A line for each file, with a bar of its added and deleted lines, and the sum."""
    if not changes:
        return
    wide = max(cells(_name(one)) for one in changes)
    most = max(one.additions + one.deletions for one in changes)
    for one in changes:
        added, deleted = (-(-count * min(most, BAR_MAX) // most) if most else 0 for count in _lines(one))
        bar = f"{screen.paint('+' * added, 'green')}{screen.paint('-' * deleted, 'red')}"
        count = "binary" if one.binary else f"{sum(_lines(one)):,}"
        yield f"{_name(one)}{' ' * (wide - cells(_name(one)))}  {one.status:<8}  {count} {bar}".rstrip()
    yield f"{plural(len(changes), 'file')}, +{sum(one.additions for one in changes):,} " + (
        f"-{sum(one.deletions for one in changes):,} lines"
    )


def _painted(screen: Screen, lines: Sequence[str]) -> Iterator[str]:
    is_head = True
    for line in lines:
        if is_head and line == "GIT binary patch":  # Only git reads what follows.
            yield screen.paint("Binary files differ", "bold")
            return
        # A deleted line may begin like a head: with "-- ".
        is_head = not line.startswith("@@") and (is_head or line[:1] not in _STYLES)
        yield screen.paint(harmless(line), *(("bold",) if is_head else _STYLES[line[:1]]))


def _name(change: "FileChange") -> str:
    return escaped(f"{change.renamed_from} => {change.file}" if change.renamed_from else change.file)


def _lines(change: "FileChange") -> tuple[int, int]:
    return change.additions, change.deletions


def _counts(change: "FileChange") -> str:
    return f"+{change.additions:,} -{change.deletions:,}"
