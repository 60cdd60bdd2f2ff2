"""Plans of reverts: the target of a caller, the changes of files, and the events that record them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from turnkeeper.core.file_changes import not_recorded
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.revert import (
    RevertPoint,
    ends_epoch,
    files_elsewhere,
    removal,
    revert_point,
    unknown_turns,
)
from turnkeeper.core.view import Restore, SessionView
from turnkeeper.model.event import Event, PromptWithdrawn, RevertCommitted
from turnkeeper.model.parts import PatchPart
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.restore import FileRestore
from turnkeeper.model.session import FileDiff, Revert
from turnkeeper.model.value import Value
from turnkeeper.text.escapes import escaped

NO_SNAPSHOTS: Final = (
    "files stay as they are: no snapshots are kept here (git is missing, the setting 'snapshot' is off, or this is "
    "your home directory)"
)
NO_SNAPSHOT_NOW: Final = "files stay as they are: no snapshot of them can be taken now ({})"
UNKNOWN: Final = (
    "what the calls of these turns changed is not known, because they were cut off or took no snapshot, and stays as it"
    " is: {}"
)
ELSEWHERE: Final = "these files are not below {}, where the session works now, and stay as they are: {}"
_NAMED_MAX: Final = 10
"""Files or turns that a sentence names."""


class RevertTarget(Value):
    """The target of a revert: all from a message or part on. ``keeps_message``: all after the message."""

    message_id: str
    part_id: str | None = None
    keeps_message: bool = False
    with_files: bool = True


class Planned(Value):
    """The changes of files by a revert, or by its end. ``problem``: changes that it does not undo, with the reasons."""

    revert: Revert | None = None
    root: str = ""
    files: tuple[FileRestore, ...] = ()
    problem: str | None = None


def target_point(session_id: str, entries: Iterable[HistoryItem], target: RevertTarget) -> RevertPoint:
    """The point that a target means in the history of a session. Raises NotFound if there is none."""
    point = _named_point(entries, target)
    if point is None:
        what = f"part {target.part_id!r}" if target.part_id is not None else f"message {target.message_id!r}"
        raise NotFound(f"there is no {what} with content in session {session_id!r}")
    return point


def _named_point(entries: Iterable[HistoryItem], target: RevertTarget) -> RevertPoint | None:
    if not target.keeps_message:
        return revert_point(entries, target.message_id, target.part_id)
    known = any(entry.message.id == target.message_id for entry in entries)
    return RevertPoint(target.message_id, keeps_message=True) if known else None


def has_files(aside: Iterable[HistoryItem], target: RevertTarget) -> bool:
    """Whether turns have changed files, or may have, and these are to be put back."""
    has_patch = any(isinstance(part, PatchPart) for one in aside for part in one.parts)
    return target.with_files and (has_patch or bool(unknown_turns(aside)))


def check_same_root(pending: Restore | None, root: str) -> None:
    """Raise Conflict if files are undone below another directory than the one that the session works in now."""
    if pending is not None and pending.files and pending.root != root:
        raise Conflict(
            f"an undo below {pending.root!r} is pending, and the session works in {root!r} by now; "
            "redo it first, or give the session a prompt, which makes it final"
        )


def not_put_back(aside: Sequence[HistoryItem], root: str) -> str | None:
    """A text about changes that a revert does not undo, with the reasons; None if there are none."""
    turns, elsewhere = unknown_turns(aside), files_elsewhere(aside, root)
    words = [
        UNKNOWN.format(_named(turns)) if turns else None,
        ELSEWHERE.format(root, _named(elsewhere)) if elsewhere else None,
        not_recorded(aside),
    ]
    return "; ".join(filter(None, words)) or None


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(map(escaped, names[:_NAMED_MAX])) + (f" and {more} more" if more > 0 else "")


def turned_out(one: FileRestore, left: Mapping[str, str]) -> FileRestore:
    """The result for a file; ``left`` has the reason for each file that could not be written."""
    return one.but(kind="conflict", to=one.now, reason=left[one.file]) if one.file in left else one


def _withdrawn(view: SessionView, entries: Iterable[HistoryItem], point: RevertPoint) -> list[Event]:
    """The end of prompts that were admitted after the message and wait in the inbox."""
    seq = next((entry.message.seq for entry in entries if entry.message.id == point.message_id), 0)
    return [PromptWithdrawn(message_id=prompt.message.id) for prompt in view.inbox if prompt.seq > seq]


def conflicts_of(restore: Restore, left: Iterable[str]) -> tuple[str, ...] | None:
    """The files that a revert left as they are, because others changed them or they could not be written."""
    return tuple(sorted({*left, *(one.file for one in restore.files if one.kind == "conflict")})) or None


def commit_events(
    view: SessionView, entries: Sequence[HistoryItem], aside: Sequence[HistoryItem], point: RevertPoint
) -> list[Event]:
    """The removal of what was set aside, also of prompts that wait since the message that is kept."""
    withdrawn = _withdrawn(view, entries, point) if point.keeps_message else []
    committed = RevertCommitted(message_id=point.message_id, ends_epoch=ends_epoch(aside, view.epoch))
    return [*withdrawn, *removal(aside, point), committed]


def described(revert: Revert, diffs: Iterable[FileDiff]) -> Revert:
    """The revert with what it did to the files, in the words of both generations of the API."""
    files = [one for one in diffs if one.file is not None]
    text = "\n".join((one.patch or "").rstrip("\n") for one in files if one.patch)
    named = tuple(
        {
            "path": one.file,
            "status": one.status or "modified",
            "additions": one.additions,
            "deletions": one.deletions,
            "patch": one.patch or "",
        }
        for one in files
    )
    return revert.but(diff=text, files=named if revert.keeps_message else None)
