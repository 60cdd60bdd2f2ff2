"""Reverts: history and files are set aside, come back, or go; each carried out by the owner of a session.

Before a file is touched, the log has the plan. A process that dies leaves it there, and whoever works on the session
next carries it out to its end (``finish``), so that a revert is done wholly or not at all.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from turnkeeper.core.file_changes import not_recorded, noted
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.revert import (
    RevertPoint,
    ends_epoch,
    file_steps,
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
from turnkeeper.workspace.snapshots import ShadowRepository

log = logging.getLogger(__name__)

NO_SNAPSHOTS = "files stay as they are: no snapshots are kept here (git is missing, or the setting 'snapshot' is off)"


UNKNOWN = (
    "what the calls of these turns changed is not known, because they were cut off or took no snapshot, and stays as it"
    " is: {}"
)


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

    async def stage(self, pen: Pen, target: RevertTarget) -> Planned:
        """Set history and files aside; what was done to each file. Raises NotFound like ``plan``."""
        await self.finish(pen)
        return await self._carry_out(pen, *await self._plan(pen.session_id, target))

    async def clear(self, pen: Pen) -> Planned:
        """Bring back what was set aside; nothing if nothing was."""
        await self.finish(pen)
        if (await self.store.journal.view(pen.session_id)).session.revert is None:
            return Planned()
        return await self._carry_out(pen, *await self._plan_clear(pen.session_id))

    async def commit(self, pen: Pen, *, keeps_message: bool = False) -> None:
        """Remove what was set aside from the history; nothing if nothing was. ``keeps_message`` keeps its message."""
        await self.finish(pen)
        view = await self.store.journal.view(pen.session_id)
        revert = view.session.revert
        if revert is None:
            return
        point = RevertPoint(revert.message_id, revert.part_id, keeps_message or revert.keeps_message)
        entries = await self._entries_from(pen.session_id, revert.message_id, revert.part_id)
        aside = set_aside(entries, point)
        committed = RevertCommitted(message_id=revert.message_id, ends_epoch=ends_epoch(aside, view.epoch))
        events = [*removal(aside, point), committed]
        await pen.append(*(_withdrawn(view, entries, point) if point.keeps_message else ()), *events, at="commit")
        self.histories.forget(pen.session_id)

    async def finish(self, pen: Pen) -> bool:
        """Carry out what a process began and did not finish; whether there was something."""
        view = await self.store.journal.view(pen.session_id)
        restore = view.restore
        if restore is None or not restore.is_open:
            return False
        left = await self._write(pen, restore, await self._restoring(view.session, restore.root))
        words = f"; these files stay as they are: {', '.join(sorted(left))}" if left else ""
        log.warning("session %s: a revert that was cut off is finished now%s", pen.session_id, words)
        return True

    async def _plan(self, session_id: str, target: RevertTarget) -> tuple[Planned, FileRestoring | None]:
        view = await self.store.journal.view(session_id)
        entries = await self._entries_from(session_id, target.message_id, target.part_id)
        point = _point(entries, target)
        if point is None:
            what = f"part {target.part_id!r}" if target.part_id is not None else f"message {target.message_id!r}"
            raise NotFound(f"there is no {what} with content in session {session_id!r}")
        revert = Revert(message_id=point.message_id, part_id=point.part_id, keeps_message=point.keeps_message)
        aside, pending = set_aside(entries, point), view.session.revert
        restoring = await self._restoring(view.session)
        snapshot = pending.snapshot if pending is not None else None
        if restoring is not None and snapshot is None:
            snapshot = await restoring.repository.capture(session_id)
        if restoring is None or snapshot is None:
            has_files = target.with_files and any(isinstance(part, PatchPart) for one in aside for part in one.parts)
            return Planned(revert=revert, problem=NO_SNAPSHOTS if has_files or view.restore else _unknown(aside)), None
        steps = file_steps(entries, aside, restoring.root) if target.with_files else []
        files = noted(await restoring.undo(steps, view.restore), aside, restoring.root)
        problem = _unknown(aside) if target.with_files else None
        planned = Planned(revert=revert.but(snapshot=snapshot), root=restoring.root, files=files, problem=problem)
        return planned, restoring

    async def _plan_clear(self, session_id: str) -> tuple[Planned, FileRestoring | None]:
        view = await self.store.journal.view(session_id)
        if view.restore is None:
            return Planned(), await self._restoring(view.session)
        restoring = await self._restoring(view.session, view.restore.root)
        if restoring is None:
            return Planned(problem=NO_SNAPSHOTS), None
        return Planned(root=restoring.root, files=await restoring.redo(view.restore)), restoring

    async def _carry_out(self, pen: Pen, planned: Planned, restoring: FileRestoring | None) -> Planned:
        restore = Restore(root=planned.root, files=planned.files, revert=planned.revert)
        if restoring is not None and planned.files:
            await restoring.keep()
            await pen.append(RestoreBegun(root=restore.root, files=restore.files, revert=restore.revert), at="restore")
        left = await self._write(pen, restore, restoring)
        return planned.but(files=tuple(_left(one, left) for one in planned.files))

    async def _write(self, pen: Pen, restore: Restore, restoring: FileRestoring | None) -> dict[str, str]:
        """Write the files of a restore and record that it is done; those that were left as they are."""
        left: dict[str, str] = {}
        if restore.files:
            if restoring is None or restoring.root != restore.root:
                raise Conflict(f"a revert of {restore.root!r} was cut off, and cannot be finished now: {NO_SNAPSHOTS}")
            left = await restoring.write(restore.files)
        await pen.append(*await self._done(pen.session_id, restoring, restore, left), at="revert")
        return left

    async def _done(
        self, session_id: str, restoring: FileRestoring | None, restore: Restore, left: dict[str, str]
    ) -> list[Event]:
        revert = restore.revert
        if revert is None:
            entries = await self._entries_from(session_id, None) if restoring is not None else []
            return [RevertCleared(), *await _summary(restoring, entries)]
        point = RevertPoint(revert.message_id, revert.part_id, revert.keeps_message)
        entries = await self._entries_from(session_id, revert.message_id, revert.part_id)
        conflicts = sorted({*left, *(one.file for one in restore.files if one.kind == "conflict")})
        if restoring is not None:
            diffs = await restoring.diff_now(revert.snapshot, [one.file for one in restore.files])
            revert = _described(revert, diffs)
        staged = RevertStaged(revert=revert.but(conflicts=tuple(conflicts) or None))
        return [staged, *await _summary(restoring, set_aside(entries, point))]

    async def _restoring(self, session: Session, root: str | None = None) -> FileRestoring | None:
        """The files of a session's project, or of the one that a restore began in."""
        repository = await self.repository(Path(root or session.directory))
        return FileRestoring(repository, session.id, Path(session.directory)) if repository is not None else None

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


def _unknown(aside: list[HistoryItem]) -> str | None:
    turns = unknown_turns(aside)
    words = [UNKNOWN.format(", ".join(turns)) if turns else None, not_recorded(aside)]
    return "; ".join(filter(None, words)) or None


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
