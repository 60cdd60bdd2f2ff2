"""Revert: its beginning, the history that it sets aside, and its change to each file.

A file is never put back as a whole if others changed it. The changes of the reverted steps are taken back one by one,
newest first, each as a three-way decision: what the step found, what it left, and what is there now.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from turnkeeper.core import turn_ends
from turnkeeper.core.file_changes import names_below
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.writing_calls import may_write
from turnkeeper.model.context import Epoch
from turnkeeper.model.event import Event, MessageRemoved, PartRemoved
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import PatchPart, SnapshotPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.restore import OTHER_MODE, FileEdit, FileRestore, FileState, RestoreKind

FILE_MODES: Final = frozenset({"100644", "100755"})

SAME_LINES: Final = "others changed the same lines since"
NO_TEXT: Final = "others changed it since, and it is no text that could be merged"
NO_FILE: Final = "it is no regular file now or may not be read, or a folder on its way is a link"
REMOVED: Final = "others removed it since"
CREATED: Final = "others made a file of this name since"
EDITED: Final = "others changed it since, and before that step there was no such file"
A_LINK: Final = "others changed it since, and it is or was a link"
FORGOTTEN: Final = "what it was before, or what the step left, is no longer known"


class RevertPoint(NamedTuple):
    """The beginning of a revert: a message, or a part inside of it."""

    message_id: str
    part_id: str | None = None
    keeps_message: bool = False
    """The history after the message is set aside, and not the message itself."""


class FileStep(NamedTuple):
    """A step that changed files: the trees before and after it, and the names. ``end`` is None if it is not known."""

    start: str
    end: str | None
    files: tuple[str, ...]


class Merge(NamedTuple):
    """A wanted three-way merge of three blobs. The answer is a blob, or None if they cannot be merged."""

    base: str
    ours: str
    theirs: str


Merging: TypeAlias = Generator[Merge, str | None, FileRestore]
"""A decision that asks for merges, and returns what becomes of a file."""

Trees: TypeAlias = Mapping[str, Mapping[str, FileState] | None]
"""The files of trees by name; None for a tree that is gone."""


def revert_point(entries: Iterable[HistoryItem], message_id: str, part_id: str | None = None) -> RevertPoint | None:
    """The point that a caller means; None if there is no such message or part, or the message has no parts.

    Without something said or done before the part, the whole exchange is meant: back to the last prompt.
    """
    user_id = None
    for entry in entries:
        if isinstance(entry.message, UserMessage):
            user_id = entry.message.id
        for nth, part in enumerate(entry.parts):
            if (entry.message.id == message_id) if part_id is None else (part.id == part_id):
                is_inside = any(isinstance(one, TextPart | ToolPart) for one in entry.parts[:nth])
                if part_id is not None and is_inside:
                    return RevertPoint(entry.message.id, part_id)
                return RevertPoint(user_id or entry.message.id)
    return None


def set_aside(entries: Iterable[HistoryItem], point: RevertPoint) -> list[HistoryItem]:
    """The messages from the point on. The first may have only its last parts."""
    found: list[HistoryItem] = []
    is_reached = False
    for entry in entries:
        if is_reached:
            found.append(entry)
        elif entry.message.id == point.message_id:
            is_reached = True
            ids = [part.id for part in entry.parts]
            if point.part_id in ids:
                found.append(entry.but(parts=entry.parts[ids.index(point.part_id) :]))
            elif point.part_id is None and not point.keeps_message:
                found.append(entry)
    return found


def file_steps(entries: Iterable[HistoryItem], aside: Iterable[HistoryItem], root: str) -> list[FileStep]:
    """The steps whose files are put back, in order. Their files are named relative to ``root``; others are left out.

    A step counts whole, also if the revert begins inside of it.
    """
    patches = {part.id for entry in aside for part in entry.parts if isinstance(part, PatchPart)}
    return [step for entry in entries for step in _steps(entry, patches, root)] if patches else []


def _steps(entry: HistoryItem, patches: set[str], root: str) -> Iterator[FileStep]:
    end: str | None = None
    for part in entry.parts:
        match part:
            case StepStartPart():
                end = None
            case StepFinishPart(snapshot=snapshot) | SnapshotPart(snapshot=snapshot):
                end = snapshot
            case PatchPart(id=id, hash=start, files=files, after=after) if id in patches:
                yield FileStep(start, after or end, tuple(names_below(root, files)))
            case _:
                pass


def files_elsewhere(aside: Iterable[HistoryItem], root: str) -> list[str]:
    """The files that turns changed, and that are not below the root: the session worked in another directory then."""
    parts = [part for entry in aside for part in entry.parts if isinstance(part, PatchPart)]
    return sorted({file for part in parts for file in part.files if not names_below(root, [file])})


def unknown_turns(aside: Iterable[HistoryItem]) -> list[str]:
    """The turns that may have changed files and whose trees are not known: they were cut off, or none was taken.

    What their calls changed cannot be told from what others wrote, so it is not put back.
    """
    return [entry.message.id for entry in aside if _is_end_unknown(entry)]


def _is_end_unknown(entry: HistoryItem) -> bool:
    starts = [part.snapshot for part in entry.parts if isinstance(part, StepStartPart)]
    if not starts or not any(isinstance(part, ToolPart) and may_write(part) for part in entry.parts):
        return False  # A command that the user ran has no step.
    if not any(starts):
        return True
    match entry.message:
        case AssistantMessage(error=AbortedFailure(data=MessageData(message=turn_ends.LOST))):
            return True
    # A step that ended is marked with its last tree. One without it was left with calls that waited for the user.
    return any(isinstance(part, StepFinishPart) and part.snapshot is None for part in entry.parts)


def first_and_last_tree(entries: Iterable[HistoryItem]) -> tuple[str, str] | None:
    """The tree before the first step of these messages and that after the last; None if they are not known."""
    parts = [part for entry in entries for part in entry.parts]
    starts = [part.snapshot for part in parts if isinstance(part, StepStartPart) and part.snapshot is not None]
    ends = [part.snapshot for part in parts if isinstance(part, StepFinishPart) and part.snapshot is not None]
    return (starts[0], ends[-1]) if starts and ends else None


def file_edits(steps: Sequence[FileStep], trees: Trees) -> dict[str, list[FileEdit | None]]:
    """For each file its edits by the steps, newest first; None for an edit that is not known."""
    found: dict[str, list[FileEdit | None]] = {}
    for step in reversed(steps):
        before, after = trees.get(step.start), trees.get(step.end) if step.end is not None else None
        for file in step.files:
            edit = None
            if before is not None and after is not None:
                edit = FileEdit(before=before.get(file), after=after.get(file))
            found.setdefault(file, []).append(edit)
    return found


def undo(
    file: str, now: FileState | None, edits: Sequence[FileEdit | None], pending: FileEdit | None = None
) -> Merging:
    """Take back edits of a file, newest first. ``pending`` is what an earlier revert, which is still staged, did to it.

    That one is taken back first, in thought, so that a redo leads back to before both.
    """
    try:
        original = now if pending is None else (yield from _without(now, pending))
        to = original
        for edit in edits:
            to = yield from _without(to, edit)
    except _Conflict as conflict:
        return FileRestore(
            file=file, kind="conflict", now=now, to=now, undone=pending, earlier=pending, reason=conflict.reason
        )
    undone = FileEdit(before=original, after=to) if original != to else None
    kind = _kind(now, to, (pending, *edits))
    return FileRestore(file=file, kind=kind, now=now, to=to, undone=undone, earlier=pending)


def redo(file: str, now: FileState | None, undone: FileEdit) -> Merging:
    """Take back what a revert did to a file."""
    restored = yield from undo(file, now, [undone])
    return restored.but(undone=None, earlier=undone)


def merged_anew(one: FileRestore, found: FileState | None) -> Merging:
    """Decide again about a file that others changed after a restore was cut off.

    It is not known whether it had been put back by then. Merging the planned change with what is ``found`` is right in
    both cases: a change that the file has already adds nothing. If they cannot be merged there is a ``reason``, and a
    redo looks at the file, too.
    """
    try:
        to = yield from _without(found, FileEdit(before=one.to, after=one.now))
    except _Conflict as conflict:
        return one.but(earlier=one.earlier or one.undone, reason=conflict.reason)
    return one.but(now=found, to=to, kind=_kind(found, to, ()), reason=None)


class _Conflict(Exception):
    """The file must stay as it is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _without(now: FileState | None, edit: FileEdit | None) -> Generator[Merge, str | None, FileState | None]:
    """The file without an edit, with what others changed. Raises _Conflict."""
    if edit is None:
        raise _Conflict(FORGOTTEN)
    before, after = edit.before, edit.after
    if now == before or before == after:
        return now
    if now == after:
        return before
    if now is None:
        raise _Conflict(REMOVED)
    if now.mode == OTHER_MODE:
        raise _Conflict(NO_FILE)
    if after is None:
        raise _Conflict(CREATED)
    if before is None:
        raise _Conflict(EDITED)
    if not FILE_MODES.issuperset((now.mode, before.mode, after.mode)):
        raise _Conflict(A_LINK)
    mode = now.mode if before.mode == after.mode else before.mode
    blob: str | None
    if now.blob == after.blob:
        blob = before.blob
    elif before.blob in (after.blob, now.blob):
        blob = now.blob
    else:
        blob = yield Merge(base=after.blob, ours=now.blob, theirs=before.blob)
    if blob is None:
        raise _Conflict(SAME_LINES)
    return FileState(mode=mode, blob=blob)


def _kind(now: FileState | None, to: FileState | None, edits: Iterable[FileEdit | None]) -> RestoreKind:
    if to == now:
        return "unchanged"
    if to is None:
        return "delete"
    if now is None:
        return "create"
    return "restore" if any(edit is not None and to == edit.before for edit in edits) else "merged"


def ends_epoch(aside: Iterable[HistoryItem], epoch: Epoch | None) -> bool:
    """Whether messages are set aside that came before the baseline of the epoch."""
    return epoch is not None and any(0 < entry.message.seq < epoch.seq for entry in aside)


def removal(aside: Sequence[HistoryItem], point: RevertPoint) -> list[Event]:
    """The events that remove what was set aside. The message of a part stays, without its last parts."""
    events: list[Event] = []
    for entry in aside:
        message, ids = entry.message, tuple(part.id for part in entry.parts)
        if message.id == point.message_id and point.part_id is not None:
            events += [PartRemoved(message_id=message.id, part_id=id) for id in ids]
        else:
            events.append(MessageRemoved(message_id=message.id, seq=message.seq, part_ids=ids))
    return events
