"""Step changes: the files that differ between the snapshots around a step, and those that an undo may put back.

A file that no snapshot had before the step may still have been there: it was ignored, too large, unreadable, in a
nested repository, or elsewhere. Only a file that is known to be new may be removed by an undo. When in doubt a file is
not recorded as changed, and is named.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from anyio import to_thread

from turnkeeper.workspace import claims, file_times, gaps, tree_diff
from turnkeeper.workspace.gaps import Captured
from turnkeeper.workspace.shadow_repository import ShadowRepository
from turnkeeper.workspace.tree_diff import TreeChange

HIDDEN: Final = "it was there before, and no snapshot had it"
OLDER: Final = "it is older than the turn, which may have moved or copied it"
STALE: Final = "the snapshot before the turn had an older version of it"
UNCAPTURED: Final = "it is too large or cannot be read"
CLOSED: Final = "it cannot be entered, so what changed in it is not known"
NESTED: Final = "it is a repository of its own"
NO_TEXT: Final = "its name is not UTF-8"
GONE: Final = "it is gone, and no snapshot had it"
OTHERS: Final = "another session wrote it at the same time"


class StepChanges(NamedTuple):
    """The files that a step changed, relative to the top, and the reasons why other files are not recorded."""

    files: tuple[str, ...] = ()
    unrecorded: tuple[tuple[str, str], ...] = ()

    def only(self, names: Collection[str]) -> "StepChanges":
        """The changes of these files only."""
        return StepChanges(
            tuple(name for name in self.files if name in names),
            tuple(one for one in self.unrecorded if one[0] in names or _has_inside(one[0], names)),
        )


async def step_changes(repository: ShadowRepository, session_id: str, before: Captured, after: Captured) -> StepChanges:
    """The changes of files by a session between two captures. Raises NotFound if one is no longer kept."""
    raw = b""
    if before.tree != after.tree:
        how = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
        raw = await repository.ask("diff-tree", *how, before.tree, after.tree)
    changes = tree_diff.changes(raw)

    def judged() -> StepChanges:
        others = claims.of_others(repository.place, session_id, before.moment)
        root = os.fsencode(repository.root)
        doubts = dict(_doubts(root, changes, before, after, others))
        doubts |= {name: UNCAPTURED for name in _uncaptured(before, after) if name not in doubts}
        doubts |= dict.fromkeys(after.gaps.closed - before.gaps.closed, CLOSED)
        doubts |= dict.fromkeys(_nested(root, before, after), NESTED)
        doubts |= dict.fromkeys(_gone(root, before), GONE)
        names = sorted(change.name for change in changes if change.name not in doubts)
        told = tuple((_printable(name), reason) for name, reason in sorted(doubts.items()))
        return StepChanges(tuple(name.decode("utf-8") for name in names), told)

    return await to_thread.run_sync(judged)


def _doubts(
    root: bytes, changes: Sequence[TreeChange], before: Captured, after: Captured, others: Collection[str]
) -> Iterator[tuple[bytes, str]]:
    """The files that are not recorded as changed by the step, with the reasons."""
    moved = {change.before for change in changes if change.before is not None}
    for change in changes:
        name = change.name
        if not _is_text(name):
            yield name, NO_TEXT
        elif os.fsdecode(name) in others:
            yield name, OTHERS
        elif change.before is not None:
            if before.gaps.is_stale(name):
                yield name, STALE
        elif before.gaps.covers(name):
            yield name, HIDDEN
        elif change.after not in moved and not _is_known(os.path.join(root, name), before, after):
            yield name, OLDER


def _is_known(path: bytes, before: Captured, after: Captured) -> bool:
    """Whether a file is known to be newer than the first capture, or was in it under another name."""
    if file_times.is_since(path, before.moment):
        return True
    # An inode may be reused, but then for a newer file.
    return file_times.inode(path) in after.gone and file_times.is_older(path, before.moment)


def _uncaptured(before: Captured, after: Captured) -> Iterator[bytes]:
    """The files that changed and are not in the snapshot as they are now."""
    known = {**before.gaps.files, **before.gaps.stale}
    for name, stamp in {**after.gaps.files, **after.gaps.stale}.items():
        if name not in known or known[name] != stamp:
            yield name


def _gone(root: bytes, before: Captured) -> Iterator[bytes]:
    """The files and nested repositories that the first snapshot left out, and that are not there any more."""
    for name in (*before.gaps.files, *before.gaps.nested):
        if not os.path.lexists(os.path.join(root, name)):
            yield name


def _nested(root: bytes, before: Captured, after: Captured) -> Iterator[bytes]:
    """The nested repositories that are new, or in which something changed."""
    for folder in after.gaps.nested:
        if folder not in before.gaps.nested or gaps.has_changed(root, folder, before.moment):
            yield folder


def _has_inside(folder: str, names: Collection[str]) -> bool:
    return folder.endswith("/") and any(name.startswith(folder) for name in names)


def _is_text(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _printable(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
