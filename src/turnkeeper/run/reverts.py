"""Reverts: history and files are set aside, come back, or go; each carried out by the owner of a session.

Before a file is touched, the log has the plan. A process that dies leaves it there, and the next owner of the session
carries it out to its end (``finish``), so that a revert is done wholly or not at all.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from turnkeeper.core.file_changes import noted, summary_of
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.restores import is_pending
from turnkeeper.core.revert import RevertPoint, file_steps, first_and_last_tree, set_aside
from turnkeeper.core.revert_plan import (
    NO_SNAPSHOT_NOW,
    NO_SNAPSHOTS,
    Planned,
    RevertTarget,
    check_same_root,
    commit_events,
    conflicts_of,
    described,
    has_files,
    not_put_back,
    target_point,
    turned_out,
)
from turnkeeper.core.view import Restore, SessionView
from turnkeeper.model.event import (
    Event,
    RestoreBegun,
    RevertCleared,
    RevertStaged,
)
from turnkeeper.model.message import UserMessage
from turnkeeper.model.refusal import Conflict
from turnkeeper.model.session import Revert, Session
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.histories import Histories
from turnkeeper.run.restoring import FileRestoring
from turnkeeper.store.store import Store
from turnkeeper.workspace.files import is_enterable, is_moved
from turnkeeper.workspace.git_work import is_full, refusal
from turnkeeper.workspace.restore import Progress, no_progress
from turnkeeper.workspace.restored_file import CHANGED
from turnkeeper.workspace.snapshots import ShadowRepository

log = logging.getLogger(__name__)

AWAY = (
    "the directory {!r} of the session is not there or may not be entered, so its files cannot be put back; bring it "
    "back and say it again, "
    "or let the session go on elsewhere with `turnkeeper session move`"
)


class Reverts(msgspec.Struct, frozen=True):
    """Carries out reverts of any session."""

    store: Store
    histories: Histories
    repository: Callable[[Path], Awaitable[ShadowRepository | None]]
    """The snapshots of the project of a directory; None if there are none."""

    async def plan(self, session_id: str, target: RevertTarget) -> Planned:
        """The plan of a revert. Raises NotFound if there is no such message or part."""
        return (await self._plan(session_id, target))[0]

    async def plan_clear(self, session_id: str) -> Planned:
        """The plan of clearing the pending revert."""
        return (await self._plan_clear(session_id))[0]

    async def stage(self, writer: FencedWriter, target: RevertTarget, progress: Progress = no_progress) -> Planned:
        """Set history and files aside; what was done to each file. Raises NotFound like ``plan``."""
        await self.finish(writer)
        return await self._carry_out(writer, *await self._plan(writer.session_id, target), progress)

    async def clear(self, writer: FencedWriter, progress: Progress = no_progress) -> Planned:
        """Bring back what was set aside; nothing if nothing was."""
        await self.finish(writer)
        if not is_pending(await self.store.journal.view(writer.session_id)):
            return Planned()
        return await self._carry_out(writer, *await self._plan_clear(writer.session_id), progress)

    async def commit(self, writer: FencedWriter, *, keeps_message: bool = False) -> None:
        """Remove what was set aside from the history; nothing if nothing was. ``keeps_message`` keeps its message."""
        await self.finish(writer)
        view = await self.store.journal.view(writer.session_id)
        revert = view.session.revert
        if revert is None:
            if view.restore is not None:  # A redo could not write these files, and was not tried again.
                await writer.append(RevertCleared(), at="revert")
            return
        point = RevertPoint(revert.message_id, revert.part_id, keeps_message or revert.keeps_message)
        entries = await self._entries_from(writer.session_id, revert.message_id, revert.part_id)
        aside = set_aside(entries, point)
        summary = await self._summary_without(view, aside)
        await writer.append(*commit_events(view, entries, aside, point), *summary, at="commit")
        self.histories.forget(writer.session_id)

    async def _summary_without(self, view: SessionView, aside: Iterable[HistoryItem]) -> list[Event]:
        """The summary of the changes of the messages that stay; until now it described what was set aside."""
        if view.session.summary is None:
            return []
        gone = {part.id for entry in aside for part in entry.parts}
        all_entries = await self._entries_from(view.session.id, None)
        entries = [one.but(parts=tuple(part for part in one.parts if part.id not in gone)) for one in all_entries]
        if first_and_last_tree(entries) is None:
            return [summary_of(())]
        return [] if _is_away(view.session) else await _summary(await self._restoring(view.session), entries)

    async def finish(self, writer: FencedWriter, progress: Progress = no_progress) -> Planned | None:
        """Carry out what a process began and did not finish: what it does to the files; None if there was nothing."""
        view = await self.store.journal.view(writer.session_id)
        restore = view.restore
        if restore is None or not restore.is_open:
            return None
        restoring = await self._restoring(view.session, restore.root)
        restore, left = await self._finished(writer, restore, restoring, progress)
        words = f"; these files stay as they are: {', '.join(sorted(left))}" if left else ""
        log.warning("session %s: a revert that was cut off is finished now%s", writer.session_id, words)
        files = tuple(turned_out(one, left) for one in restore.files)
        return Planned(revert=restore.revert, root=restore.root, files=files)

    async def _finished(
        self, writer: FencedWriter, restore: Restore, restoring: FileRestoring | None, progress: Progress
    ) -> tuple[Restore, dict[str, str]]:
        """Write what was cut off; what others changed since is merged anew, by a plan that is in the log first."""
        left = await self._put(restore, restoring, progress)
        changed = [one for one in restore.files if left.get(one.file) == CHANGED]
        if restoring is not None and changed:
            anew = await restoring.merge_anew(changed)
            restore = restore.but(files=tuple(anew.get(one.file, one) for one in restore.files))
            await self._begin(writer, restore, restoring)
            stays = {one.file: one.reason for one in anew.values() if one.reason is not None}
            left = {name: why for name, why in left.items() if name not in anew} | stays
            merged = [one for one in anew.values() if one.file not in stays]
            left |= await restoring.write(merged, progress)
        await writer.append(*await self._done(writer.session_id, restoring, restore, left), at="revert")
        return restore, left

    async def plan_finish(self, session_id: str) -> Planned | None:
        """The plan of finishing an interrupted revert; None if there is none."""
        restore = (await self.store.journal.view(session_id)).restore
        if restore is None or not restore.is_open:
            return None
        return Planned(revert=restore.revert, root=restore.root, files=restore.files)

    async def _plan(self, session_id: str, target: RevertTarget) -> tuple[Planned, FileRestoring | None]:
        view = await self.store.journal.view(session_id)
        entries = await self._entries_from(session_id, target.message_id, target.part_id)
        point = target_point(session_id, entries, target)
        revert = Revert(message_id=point.message_id, part_id=point.part_id, keeps_message=point.keeps_message)
        aside, pending = set_aside(entries, point), view.session.revert
        if not has_files(aside, target) and not (view.restore and view.restore.files) and _is_away(view.session):
            return Planned(revert=revert), None  # Nothing is lost by a directory that is not there.
        restoring = await self._restoring(view.session)
        snapshot = pending.snapshot if pending is not None else None
        if restoring is not None and snapshot is None:
            snapshot = await restoring.repository.capture(session_id, at_once=True)
        if restoring is None or snapshot is None:
            is_concerned = has_files(aside, target) or view.restore is not None
            return Planned(revert=revert, problem=_why_no_files(restoring) if is_concerned else None), None
        check_same_root(view.restore, restoring.root)
        steps = file_steps(entries, aside, restoring.root) if target.with_files else []
        files = noted(await restoring.undo(steps, view.restore), aside, restoring.root)
        problem = not_put_back(aside, restoring.root) if target.with_files else None
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
        self, writer: FencedWriter, planned: Planned, restoring: FileRestoring | None, progress: Progress
    ) -> Planned:
        restore = Restore(root=planned.root, files=planned.files, revert=planned.revert)
        if restoring is not None and planned.files:
            await self._begin(writer, restore, restoring)
        left = await self._put(restore, restoring, progress)
        await writer.append(*await self._done(writer.session_id, restoring, restore, left), at="revert")
        return planned.but(files=tuple(turned_out(one, left) for one in planned.files))

    async def _begin(self, writer: FencedWriter, restore: Restore, restoring: FileRestoring) -> None:
        """Put the plan in the log, before a file is touched."""
        await restoring.keep()
        await writer.append(RestoreBegun(root=restore.root, files=restore.files, revert=restore.revert), at="restore")

    async def _put(self, restore: Restore, restoring: FileRestoring | None, progress: Progress) -> dict[str, str]:
        """Write the files of a restore; those that were left as they are, with the reasons."""
        if not restore.files:
            return {}
        if restoring is None:
            raise Conflict(f"a revert of {restore.root!r} was cut off, and cannot be finished now: {NO_SNAPSHOTS}")
        return await restoring.write(restore.files, progress)

    async def _done(
        self, session_id: str, restoring: FileRestoring | None, restore: Restore, left: dict[str, str]
    ) -> list[Event]:
        revert = restore.revert
        if revert is None:
            entries = await self._entries_from(session_id, None) if restoring is not None else []
            return [RevertCleared(unwritten=tuple(sorted(left))), *await _summary(restoring, entries)]
        point = RevertPoint(revert.message_id, revert.part_id, revert.keeps_message)
        entries = await self._entries_from(session_id, revert.message_id, revert.part_id)
        if restoring is not None:
            diffs = await restoring.diff_now(revert.snapshot, [one.file for one in restore.files])
            revert = described(revert, diffs)
        staged = RevertStaged(revert=revert.but(conflicts=conflicts_of(restore, left)))
        aside = set_aside(entries, point)
        return [staged, *(await _summary(restoring, aside) or await self._nothing_aside(session_id, aside))]

    async def _nothing_aside(self, session_id: str, aside: list[HistoryItem]) -> list[Event]:
        """A summary without files, if no step that was set aside has a snapshot; only if a redo can tell it again."""
        if (
            first_and_last_tree(aside) is not None
            or (await self.store.journal.view(session_id)).session.summary is None
        ):
            return []
        return [] if first_and_last_tree(await self._entries_from(session_id, None)) is None else [summary_of(())]

    async def _restoring(self, session: Session, root: str | None = None) -> FileRestoring | None:
        """The files of a session's project, or of the one that a restore began in. Raises Conflict if it is away."""
        directory = Path(root or session.directory)
        if not is_enterable(directory):
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


def _why_no_files(restoring: FileRestoring | None) -> str:
    """Why files stay as they are. Raises Conflict if the disk is full, because the user can make room."""
    failure = restoring.repository.failure if restoring is not None else None
    if restoring is None or failure is None:
        return NO_SNAPSHOTS
    if is_full(failure):
        raise refusal(restoring.repository.root, failure) from failure
    return NO_SNAPSHOT_NOW.format(failure)


def _is_away(session: Session) -> bool:
    return not is_enterable(session.directory) or is_moved(session.directory)


async def _summary(restoring: FileRestoring | None, entries: list[HistoryItem]) -> list[Event]:
    """The changes of files that these messages made."""
    trees = first_and_last_tree(entries)
    if restoring is None or trees is None:
        return []
    names = {name for step in file_steps(entries, entries, restoring.root) for name in step.files}
    return [summary_of(await restoring.diff(*trees, names))]
