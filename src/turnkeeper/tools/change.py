"""Change: a file gets new content once the user, shown the diff, allows it, and unless someone else was faster."""

import os
from pathlib import Path
from typing import Final

from anyio import to_thread

from turnkeeper.core.bounding import bound
from turnkeeper.core.limits import DIFF_BYTES_MAX, DIFF_LINES_MAX, EDITED_BYTES_MAX
from turnkeeper.model.value import JsonObject
from turnkeeper.text.diff import Diff, diff
from turnkeeper.tools.reach import patterns, shown
from turnkeeper.tools.tool import ToolContext, ToolFailure
from turnkeeper.workspace import files

SHORT_BYTES: Final = 2048
"""Texts that are compared at once; longer ones are on a thread."""


async def change(path: Path, before: bytes | None, after: bytes, context: ToolContext) -> JsonObject:
    """Ask, write, and return what clients show of it. The caller holds the file; ``before`` is None if it is new."""
    name = shown(path, context)
    is_short = len(before or b"") + len(after) <= SHORT_BYTES
    compared = name, before or b"", after
    difference = _difference(*compared) if is_short else await to_thread.run_sync(_difference, *compared)
    patch = bound(difference.patch, lines_max=DIFF_LINES_MAX, bytes_max=DIFF_BYTES_MAX).text
    counted = {"additions": difference.additions, "deletions": difference.deletions}
    metadata = {"filepath": str(path), "diff": patch, "filediff": {"file": name, "patch": patch, **counted}}
    await context.ask("edit", patterns(path, context), always=["*"], metadata=metadata)
    await to_thread.run_sync(_replace, path, before, after)
    context.discovered(path)
    return {**metadata, "diagnostics": {}}


def existing(path: Path) -> bytes | None:
    """What a file holds now; None if there is none."""
    return files.read_bytes(path, EDITED_BYTES_MAX) if os.path.exists(path) else None


def _replace(path: Path, before: bytes | None, after: bytes) -> None:
    # An ask may have taken hours: what the user allowed was a change to the file as it was then.
    if existing(path) != before:
        raise ToolFailure(f"{str(path)!r} was changed by someone else in the meantime. Read it before you change it.")
    files.write_whole(path, after)


def _difference(name: str, before: bytes, after: bytes) -> Diff:
    old = "" if b"\0" in before else before.removeprefix(files.BOM).decode("utf-8", "replace")
    return diff(name, old, after.removeprefix(files.BOM).decode("utf-8", "replace"))
