"""The command that tells which turn last wrote each line of a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer_items, remark
from turnkeeper.cli.screen import Screen, harmless, plural, shortened

if TYPE_CHECKING:
    from turnkeeper.core.blame import Blame, BlamedLine

ID_SHOWN: Final = 16
"""Characters of an id that name a message."""
NOBODY: Final = "-"


async def blame(
    file: Annotated[Path, Parameter(metavar="FILE", help="A file of the project of its directory.")],
    /,
    *,
    options: Options,
) -> None:
    """Show for each line of a file the session, turn and call that wrote it.

    A line that no session wrote has a hyphen: it is older, or you, git or another
    program wrote it. If a turn made several calls, those are named whose
    arguments name the file. With --json the answer is {"items": [{"line", "text",
    "origin": {"sessionID", "slug", "messageID", "calls"}}], "file", "leftOut"}.

    For example:
      turnkeeper session blame src/tides.py
      turnkeeper session blame src/tides.py --json | jq '.items[].origin.slug'
    """
    async with options.read() as tk:
        found = await tk.blame(file)
    answer_items(
        options,
        found.lines,
        lambda screen: "\n".join(_lines(screen, found)),
        empty="The file is empty.",
        file=found.file,
        leftOut=found.left_out,
    )
    if found.left_out:
        turns = plural(found.left_out, "turn")
        remark(options, f"Left out: {turns}, because of their number or of snapshots no longer kept.")


def _lines(screen: Screen, found: "Blame") -> list[str]:
    cells = [_cells(one) for one in found.lines]
    widths = [max(len(row[column]) for row in cells) for column in range(3)] if cells else []
    digits = len(str(len(found.lines)))
    lines: list[str] = []
    for one, row in zip(found.lines, cells, strict=True):
        who = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        text = harmless(one.text)
        if screen.width is not None:
            text = shortened(text, max(20, screen.width - len(who) - digits - 4))
        style = ("cyan",) if one.origin is not None else ("dim",)
        lines.append(
            f"{screen.paint(who, *style)}  {screen.paint(str(one.line).rjust(digits), 'dim')}  {text}".rstrip()
        )
    return lines


def _cells(one: "BlamedLine") -> tuple[str, str, str]:
    """The session, the turn and the calls of a line."""
    if one.origin is None:
        return NOBODY, "", ""
    tools = ", ".join(dict.fromkeys(harmless(call.tool) for call in one.origin.calls))
    return harmless(one.origin.slug), one.origin.message_id[:ID_SHOWN], tools
