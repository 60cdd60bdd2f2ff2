"""Reverts: history that is set aside, and the files that are put back with it."""

from turnkeeper.model.events.base import EventBase
from turnkeeper.model.restore import FileRestore
from turnkeeper.model.session import Revert


class RestoreBegun(EventBase):
    """Files below ``root`` are about to be written. ``revert`` is what is staged then; None: the revert is cleared.

    ``RevertStaged`` or ``RevertCleared`` follows when all are written. If the process dies before, the next one that
    works on the session writes the rest.
    """

    KIND = "restore.begun"
    root: str
    files: tuple[FileRestore, ...]
    revert: Revert | None = None


class RevertStaged(EventBase):
    """History from a message on was set aside."""

    KIND = "revert.staged"
    revert: Revert


class RevertCleared(EventBase):
    """The history that was set aside came back. ``unwritten``: files that could not be written; a redo tries again."""

    KIND = "revert.cleared"
    unwritten: tuple[str, ...] = ()


class RevertCommitted(EventBase):
    """The history that was set aside was removed. ``ends_epoch``: also what came before the epoch's baseline."""

    KIND = "revert.committed"
    message_id: str
    ends_epoch: bool = False
