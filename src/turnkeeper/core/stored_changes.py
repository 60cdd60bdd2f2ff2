"""Stored changes: diffs that a session has stored, as they are shown to people."""

from typing import Final

from turnkeeper.model.file_change import FileChange
from turnkeeper.model.session import FileDiff
from turnkeeper.text.diff import CONTEXT_LINES, diff
from turnkeeper.text.patch_context import narrowed

_NOWHERE: Final = "/dev/null"


def stored_change(one: FileDiff) -> FileChange:
    """A stored diff. It has all lines of the file, tells no rename, and has an empty patch for a binary file."""
    name, status = one.file or "", one.status or "modified"
    hunks = narrowed(one.patch or "", CONTEXT_LINES)
    if one.patch is None and one.before is not None and one.after is not None:
        hunks = narrowed(diff(name, one.before, one.after).patch, CONTEXT_LINES)
    old = _NOWHERE if status == "added" else f"a/{name}"
    new = _NOWHERE if status == "deleted" else f"b/{name}"
    return FileChange(
        file=name,
        status=status,
        binary=one.patch == "" and not one.additions and not one.deletions,
        additions=one.additions,
        deletions=one.deletions,
        patch=f"diff --git a/{name} b/{name}\n--- {old}\n+++ {new}\n{hunks}" if hunks else "",
    )
