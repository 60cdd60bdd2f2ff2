"""Restores in the view: what of the files of a revert is open, done, or known for a redo."""

from itertools import compress

from turnkeeper.core.view import Restore, SessionView
from turnkeeper.model.event import RestoreBegun
from turnkeeper.model.session import Revert


def begun(event: RestoreBegun) -> Restore:
    """The restore that a process is about to carry out."""
    return Restore(root=event.root, files=event.files, revert=event.revert)


def staged(view: SessionView, revert: Revert) -> Restore | None:
    """The restore after a revert was staged: what a redo needs. One that leads elsewhere stays open."""
    restore = view.restore
    if restore is None or not restore.is_open or not _leads_to(restore, revert):
        return restore
    left = frozenset(revert.conflicts or ())
    # A conflict that was planned keeps what an earlier revert did to the file. One that was found late did nothing.
    is_known = [one.undone is not None and (one.kind == "conflict" or one.file not in left) for one in restore.files]
    known = tuple(compress(restore.files, is_known))
    return Restore(root=restore.root, files=known, is_open=False) if known else None


def cleared(view: SessionView) -> Restore | None:
    """The restore after a revert was cleared: none, unless one is open that stages a revert."""
    restore = view.restore
    return restore if restore is not None and restore.is_open and restore.revert is not None else None


def is_pending(view: SessionView) -> bool:
    """Whether a revert is staged, or one was begun and not finished."""
    return view.session.revert is not None or is_open(view)


def is_open(view: SessionView) -> bool:
    """Whether files are being restored, or a process died while it restored them."""
    return view.restore is not None and view.restore.is_open


def _leads_to(restore: Restore, revert: Revert) -> bool:
    aim = restore.revert
    return aim is not None and (aim.message_id, aim.part_id) == (revert.message_id, revert.part_id)
