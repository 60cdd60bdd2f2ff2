"""Restores in the view: the files of a revert that are being written, were written, or are needed for a redo."""

from collections.abc import Sequence

from turnkeeper.core.view import Restore, SessionView
from turnkeeper.model.event import RestoreBegun
from turnkeeper.model.session import Revert


def begun(event: RestoreBegun) -> Restore:
    """The restore that a process is about to carry out."""
    return Restore(root=event.root, files=event.files, revert=event.revert)


def staged(view: SessionView, revert: Revert) -> Restore | None:
    """The restore after a revert was staged, for a redo. A restore for another revert stays open."""
    restore = view.restore
    if restore is None or not restore.is_open or not _leads_to(restore, revert):
        return restore
    return _closed(restore, revert.conflicts or ())


def cleared(view: SessionView, unwritten: Sequence[str] = ()) -> Restore | None:
    """The restore after a revert was cleared: the unwritten files. A restore that stages a revert stays open."""
    restore = view.restore
    if restore is None or not restore.is_open:
        return None
    if restore.revert is not None:
        return restore
    left = tuple(one.but(undone=None) if one.file not in unwritten else one for one in restore.files)
    return _closed(restore.but(files=left), unwritten)


def _closed(restore: Restore, left: Sequence[str]) -> Restore | None:
    """The record that stays after a restore, if any. An unwritten file is still as an earlier restore left it."""
    # A conflict that was planned is known: it is left as it is, and has what an earlier revert did to the file.
    late = frozenset(left).intersection(one.file for one in restore.files if one.kind != "conflict")
    after = [one.but(undone=one.earlier) if one.file in late else one for one in restore.files]
    known = tuple(one for one in after if one.undone is not None)
    if not known and not late:
        return None
    return Restore(root=restore.root, files=known, is_open=False, unwritten=tuple(sorted(late)))


def is_pending(view: SessionView) -> bool:
    """Whether a revert is staged, or one was begun and not finished, or its end left files that were not written."""
    return view.session.revert is not None or view.restore is not None


def is_open(view: SessionView) -> bool:
    """Whether files are being restored, or a process died while it restored them."""
    return view.restore is not None and view.restore.is_open


def _leads_to(restore: Restore, revert: Revert) -> bool:
    aim = restore.revert
    return aim is not None and (aim.message_id, aim.part_id) == (revert.message_id, revert.part_id)
