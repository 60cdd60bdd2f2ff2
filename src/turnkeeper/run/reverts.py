"""Reverts: history and files are set aside, come back, or go; each carried out by the owner of a session.

Before a file is touched, the log has the plan. A process that dies leaves it there, and whoever works on the session
next carries it out to its end (``finish``), so that a revert is done wholly or not at all.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from turnkeeper.core.file_changes import not_recorded, noted
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.restores import is_pending
from turnkeeper.core.revert import (
    RevertPoint,
    ends_epoch,
    file_steps,
    files_elsewhere,
    first_and_last_tree,
    removal,
    revert_point,
    set_aside,
    unknown_turns,
)
from turnkeeper.core.view import Restore, SessionView
from turnkeeper.model.event import (
    Event,
    PromptWithdrawn,
    RestoreBegun,
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SummaryRecorded,
)
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import PatchPart
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.restore import FileRestore
from turnkeeper.model.session import FileDiff, Revert, Session, Summary
from turnkeeper.model.value import Value
from turnkeeper.run.histories import Histories
from turnkeeper.run.pen import Pen
from turnkeeper.run.restoring import FileRestoring
from turnkeeper.store.store import Store
from turnkeeper.workspace.files import is_moved
from turnkeeper.workspace.restore import Progress, no_progress
from turnkeeper.workspace.snapshots import ShadowRepository

log = logging.getLogger(__name__)

NO_SNAPSHOTS = (
    "files stay as they are: no snapshots are kept here (git is missing, the setting 'snapshot' is off, or this is "
    "your home directory)"
)
UNKNOWN = (
    "what the calls of these turns changed is not known, because they were cut off or took no snapshot, and stays as it"
    " is: {}"
)
ELSEWHERE = "these files are not below {}, where the session works now, and stay as they are: {}"
AWAY = (
    "the directory {!r} of the session is not there, so its files cannot be put back; bring it back and say it again, "
    "or let the session go on elsewhere with `turnkeeper session move`"
)
_NAMED_MAX = 10
"""How many files or turns a sentence names."""


class RevertTarget(Value):
    """What is to be reverted: from a message or part on. ``keeps_message``: from after the message on."""

    message_id: str
    part_id: str | None = None
    keeps_message: bool = False
    with_files: bool = True


class Planned(Value):
    """What a revert, or its end, does to the files. ``problem``: what it does not put back, and why."""

    revert: Revert | None = None
    root: str = ""
    files: tuple[FileRestore, ...] = ()
    problem: str | None = None


class Reverts(msgspec.Struct, frozen=True):
    """Carries out reverts of any session."""

    store: Store
    histories: Histories
    repository: Callable[[Path], Awaitable[ShadowRepository | None]]
    """The snapshots of the project of a directory; None if there are none."""

    async def plan(self, session_id: str, target: RevertTarget) -> Planned:
        """What a revert would do. Raises NotFound if there is no such message or part."""
        return (await self._plan(session_id, target))[0]

    async def plan_clear(self, session_id: str) -> Planned:
        """What the end of the pending revert would do."""
        return (await self._plan_clear(session_id))[0]

    async def stage(self, pen: Pen, target: RevertTarget, progress: Progress = no_progress) -> Planned:
        """Set history and files aside; what was done to each file. Raises NotFound like ``plan``."""
        await self.finish(pen)
        return await self._carry_out(pen, *await self._plan(pen.session_id, target), progress)

    async def clear(self, pen: Pen, progress: Progress = no_progress) -> Planned:
        """Bring back what was set aside; nothing if nothing was."""
        await self.finish(pen)
        if not is_pending(await self.store.journal.view(pen.session_id)):
            return Planned()
        return await self._carry_out(pen, *await self._plan_clear(pen.session_id), progress)

    async def commit(self, pen: Pen, *, keeps_message: bool = False) -> None:
        """Remove what was set aside from the history; nothing if nothing was. ``keeps_message`` keeps its message."""
        await self.finish(pen)
        view = await self.store.journal.view(pen.session_id)
        revert = view.session.revert
        if revert is None:
            if view.restore is not None:  # A redo could not write these files, and nobody tried again.
                await pen.append(RevertCleared(), at="revert")
            return
        point = RevertPoint(revert.message_id, revert.part_id, keeps_message or revert.keeps_message)
        entries = await self._entries_from(pen.session_id, revert.message_id, revert.part_id)
        aside = set_aside(entries, point)
        committed = RevertCommitted(message_id=revert.message_id, ends_epoch=ends_epoch(aside, view.epoch))
        events = [*removal(aside, point), committed, *await self._summary_without(view, aside)]
        await pen.append(*(_withdrawn(view, entries, point) if point.keeps_message else ()), *events, at="commit")
        self.histories.forget(pen.session_id)

    async def _summary_without(self, view: SessionView, aside: Iterable[HistoryItem]) -> list[Event]:
        """What the messages changed that stay: until now the summary tells what was set aside."""
        if view.session.summary is None:
            return []
        gone = {part.id for entry in aside for part in entry.parts}
        all_entries = await self._entries_from(view.session.id, None)
        entries = [one.but(parts=tuple(part for part in one.parts if part.id not in gone)) for one in all_entries]
        if first_and_last_tree(entries) is None:
            return [SummaryRecorded(summary=Summary(additions=0, deletions=0, files=0), diffs=())]
        return [] if _is_away(view.session) else await _summary(await self._restoring(view.session), entries)

    async def finish(self, pen: Pen, progress: Progress = no_progress) -> Planned | None:
        """Carry out what a process began and did not finish: what it does to the files; None if there was nothing."""
        view = await self.store.journal.view(pen.session_id)
        restore = view.restore
        if restore is None or not restore.is_open:
            return None
        left = await self._write(pen, restore, await self._restoring(view.session, restore.root), progress)
        words = f"; these files stay as they are: {', '.join(sorted(left))}" if left else ""
        log.warning("session %s: a revert that was cut off is finished now%s", pen.session_id, words)
        files = tuple(_left(one, left) for one in restore.files)
        return Planned(revert=restore.revert, root=restore.root, files=files)

    async def plan_finish(self, session_id: str) -> Planned | None:
        """What finishing would do to the files; None if there is nothing to finish."""
        restore = (await self.store.journal.view(session_id)).restore
        if restore is None or not restore.is_open:
            return None
        return Planned(revert=restore.revert, root=restore.root, files=restore.files)

    async def _plan(self, session_id: str, target: RevertTarget) -> tuple[Planned, FileRestoring | None]:
        view = await self.store.journal.view(session_id)
        entries = await self._entries_from(session_id, target.message_id, target.part_id)
        point = _point(entries, target)
        if point is None:
            what = f"part {target.part_id!r}" if target.part_id is not None else f"message {target.message_id!r}"
            raise NotFound(f"there is no {what} with content in session {session_id!r}")
        revert = Revert(message_id=point.message_id, part_id=point.part_id, keeps_message=point.keeps_message)
        aside, pending = set_aside(entries, point), view.session.revert
        if not _has_files(aside, target) and not (view.restore and view.restore.files) and _is_away(view.session):
            return Planned(revert=revert), None  # Nothing is lost by a directory that is not there.
        restoring = await self._restoring(view.session)
        snapshot = pending.snapshot if pending is not None else None
        if restoring is not None and snapshot is None:
            snapshot = await restoring.repository.capture(session_id)
        if restoring is None or snapshot is None:
            return Planned(
                revert=revert, problem=NO_SNAPSHOTS if _has_files(aside, target) or view.restore else None
            ), None
        if view.restore is not None and view.restore.files and view.restore.root != restoring.root:
            raise Conflict(
                f"an undo below {view.restore.root!r} is pending, and the session works in {restoring.root!r} by now; "
                "redo it first, or give the session a prompt, which makes it final"
            )
        steps = file_steps(entries, aside, restoring.root) if target.with_files else []
        files = noted(await restoring.undo(steps, view.restore), aside, restoring.root)
        problem = _unknown(aside, restoring.root) if target.with_files else None
        planned = Planned(revert=revert.but(snapshot=snapshot), root=restoring.root, files=files, problem=problem)
        return planned, restoring

    async def _plan_clear(self, session_id: str) -> tuple[Planned, FileRestoring | None]:
        view = await self.store.journal.view(session_id)
        if view.restore is None or not view.restore.files:
            return Planned(), None if _is_away(view.session) else await self._restoring(view.session)
        restoring = await self._restoring(view.session, view.restore.root)
        if restoring is None:
            raise Conflict(f"what was undone below {view.restore.root!r} cannot come back now: {NO_SNAPSHOTS}")
        return Planned(root=restoring.root, files=await restoring.redo(view.restore)), restoring

    async def _carry_out(
        self, pen: Pen, planned: Planned, restoring: FileRestoring | None, progress: Progress
    ) -> Planned:
        restore = Restore(root=planned.root, files=planned.files, revert=planned.revert)
        if restoring is not None and planned.files:
            await restoring.keep()
            await pen.append(RestoreBegun(root=restore.root, files=restore.files, revert=restore.revert), at="restore")
        left = await self._write(pen, restore, restoring, progress)
        return planned.but(files=tuple(_left(one, left) for one in planned.files))

    async def _write(
        self, pen: Pen, restore: Restore, restoring: FileRestoring | None, progress: Progress
    ) -> dict[str, str]:
        """Write the files of a restore and record that it is done; those that were left as they are."""
        left: dict[str, str] = {}
        if restore.files:
            if restoring is None:
                raise Conflict(f"a revert of {restore.root!r} was cut off, and cannot be finished now: {NO_SNAPSHOTS}")
            left = await restoring.write(restore.files, progress)
        await pen.append(*await self._done(pen.session_id, restoring, restore, left), at="revert")
        return left

    async def _done(
        self, session_id: str, restoring: FileRestoring | None, restore: Restore, left: dict[str, str]
    ) -> list[Event]:
        revert = restore.revert
        if revert is None:
            entries = await self._entries_from(session_id, None) if restoring is not None else []
            return [RevertCleared(unwritten=tuple(sorted(left))), *await _summary(restoring, entries)]
        point = RevertPoint(revert.message_id, revert.part_id, revert.keeps_message)
        entries = await self._entries_from(session_id, revert.message_id, revert.part_id)
        conflicts = sorted({*left, *(one.file for one in restore.files if one.kind == "conflict")})
        if restoring is not None:
            diffs = await restoring.diff_now(revert.snapshot, [one.file for one in restore.files])
            revert = _described(revert, diffs)
        staged = RevertStaged(revert=revert.but(conflicts=tuple(conflicts) or None))
        return [staged, *await _summary(restoring, set_aside(entries, point))]

    async def _restoring(self, session: Session, root: str | None = None) -> FileRestoring | None:
        """The files of a session's project, or of the one that a restore began in. Raises Conflict if it is away."""
        directory = Path(root or session.directory)
        if not directory.is_dir():
            raise Conflict(AWAY.format(str(directory)))
        if is_moved(directory):
            raise Conflict(
                f"the session's directory {str(directory)!r} leads to {os.path.realpath(directory)!r} by now, because "
                "a part of it has become a link, so no file is put back; put the directory back, or let the session go "
                "on there with `turnkeeper session move`"
            )
        repository = await self.repository(directory)
        if repository is None:
            return None
        if root is not None and str(repository.root) != root:
            raise Conflict(
                f"files below {root!r} are to be put back, and they belong to {str(repository.root)!r} by now: a "
                "repository was made or removed there; undo that and say it again"
            )
        return FileRestoring(repository, session.id, Path(session.directory))

    async def _entries_from(
        self, session_id: str, message_id: str | None, part_id: str | None = None
    ) -> list[HistoryItem]:
        """The end of the history that begins with the prompt of a message or part; all of it if there is none."""
        newest_first: list[HistoryItem] = []
        is_found = False
        async for message in self.store.queries.stream(session_id):
            newest_first.append(HistoryItem(message=message.info, parts=message.parts))
            is_named = message.info.id == message_id if part_id is None else part_id in {p.id for p in message.parts}
            is_found = is_found or is_named
            if is_found and isinstance(message.info, UserMessage):
                break
        return newest_first[::-1]


def _point(entries: Iterable[HistoryItem], target: RevertTarget) -> RevertPoint | None:
    if not target.keeps_message:
        return revert_point(entries, target.message_id, target.part_id)
    known = any(entry.message.id == target.message_id for entry in entries)
    return RevertPoint(target.message_id, keeps_message=True) if known else None


def _has_files(aside: Iterable[HistoryItem], target: RevertTarget) -> bool:
    """Whether turns have changed files, or may have, and these are to be put back."""
    has_patch = any(isinstance(part, PatchPart) for one in aside for part in one.parts)
    return target.with_files and (has_patch or bool(unknown_turns(aside)))


def _is_away(session: Session) -> bool:
    return not os.path.isdir(session.directory) or is_moved(session.directory)


def _unknown(aside: Sequence[HistoryItem], root: str) -> str | None:
    """What is not put back, and why."""
    turns, elsewhere = unknown_turns(aside), files_elsewhere(aside, root)
    words = [
        UNKNOWN.format(_named(turns)) if turns else None,
        ELSEWHERE.format(root, _named(elsewhere)) if elsewhere else None,
        not_recorded(aside),
    ]
    return "; ".join(filter(None, words)) or None


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _left(one: FileRestore, left: Mapping[str, str]) -> FileRestore:
    """The file as it turned out."""
    return one.but(kind="conflict", to=one.now, reason=left[one.file]) if one.file in left else one


def _withdrawn(view: SessionView, entries: Iterable[HistoryItem], point: RevertPoint) -> list[Event]:
    """The end of prompts that were admitted after the message and wait in the inbox."""
    seq = next((entry.message.seq for entry in entries if entry.message.id == point.message_id), 0)
    return [PromptWithdrawn(message_id=prompt.message.id) for prompt in view.inbox if prompt.seq > seq]


async def _summary(restoring: FileRestoring | None, entries: list[HistoryItem]) -> list[Event]:
    """The changes of files that these messages made."""
    trees = first_and_last_tree(entries)
    if restoring is None or trees is None:
        return []
    names = {name for step in file_steps(entries, entries, restoring.root) for name in step.files}
    diffs = await restoring.diff(*trees, names)
    summary = Summary(
        additions=sum(one.additions for one in diffs), deletions=sum(one.deletions for one in diffs), files=len(diffs)
    )
    return [SummaryRecorded(summary=summary, diffs=diffs)]


def _described(revert: Revert, diffs: Iterable[FileDiff]) -> Revert:
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
