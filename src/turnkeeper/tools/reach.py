"""Reach: from a path as a model writes it to one a tool may use, asking first where it leads out of the project."""

import os
from pathlib import Path
from typing import Literal

from turnkeeper.tools.tool import ToolContext
from turnkeeper.workspace import files


def located(given: str, context: ToolContext) -> Path:
    """The absolute path, ``~`` and dots resolved; links are as they were written."""
    return Path(os.path.normpath(os.path.join(context.directory, os.path.expanduser(given))))


async def reach(given: str, context: ToolContext, kind: Literal["file", "directory"] = "file") -> Path:
    """The path a call may use; Denied or Rejected if it lies outside and may not be reached."""
    path = located(given, context)
    # Not on a thread: a few looks at directories cost less than the way there and back.
    if not files.is_inside(path, context.directory, context.worktree):
        place = files.real(path)
        parent = place if kind == "directory" or place.is_dir() else place.parent
        await ask_outside([parent], context, {"filepath": str(path), "parentDir": str(parent)})
    return path


async def ask_outside(directories: list[Path], context: ToolContext, metadata: dict[str, object]) -> None:
    """Ask for directories outside the project, all at once."""
    patterns = [f"{str(directory).rstrip('/')}/*" for directory in dict.fromkeys(directories)]
    if patterns:
        await context.ask("external_directory", patterns, always=patterns, metadata=metadata)


def patterns(path: Path, context: ToolContext) -> list[str]:
    """What rules about a file are matched against: its path from the worktree, and where that leads if it is a link.

    Otherwise a link named ``notes.txt`` would get around a rule about ``.env``.
    """
    place, root = os.path.realpath(path), os.path.realpath(context.worktree)
    written = os.path.relpath(path, context.worktree)
    if place == str(path) and root == str(context.worktree):
        return [written]
    return list(dict.fromkeys([written, os.path.relpath(place, root)]))


def shown(path: Path, context: ToolContext) -> str:
    """The path as a title shows it: from the worktree if it is inside."""
    root = context.worktree if str(context.worktree) != context.worktree.anchor else context.directory
    name, top = str(path), f"{str(root).rstrip('/')}/"
    return name.removeprefix(top) if name.startswith(top) else "." if path == root else name
