"""File restores: the changes of a project's files by a revert, or by its end, file by file."""

from typing import Final, Literal, TypeAlias

from turnkeeper.model.session import Session
from turnkeeper.model.value import Value

RestoreKind: TypeAlias = Literal["restore", "create", "delete", "merged", "conflict", "unchanged"]
"""The result for a file. ``merged``: changes of others are kept. ``conflict``: the file is left as it is."""

OTHER_MODE: Final = "other"
"""The mode of anything but a file or a link, such as a pipe, and of a file behind a link."""


class FileState(Value):
    """The content of a file as a git blob, and its mode: 100644, 100755, or 120000 for a link."""

    mode: str
    blob: str


class FileEdit(Value):
    """A change of one file. None: there is no file."""

    before: FileState | None = None
    after: FileState | None = None


class FileRestore(Value):
    """One file of a restore: its state ``now``, and its state after. Its name is relative to the restore's root."""

    file: str
    kind: RestoreKind
    now: FileState | None = None
    to: FileState | None = None
    undone: FileEdit | None = None
    """The whole change of the file by the pending revert. A redo undoes it."""
    earlier: FileEdit | None = None
    """The earlier change of the file by the pending revert. It stays valid if the file cannot be written."""
    reason: str | None = None
    """The reason why the file is left as it is, or a warning about putting it back."""

    @property
    def writes(self) -> bool:
        """Whether the file on disk is changed."""
        return self.kind not in ("conflict", "unchanged")


class Reverted(Value):
    """A revert, or its end: the session after it and the result for each file. ``is_plan``: nothing was done yet."""

    session: Session
    message_id: str | None = None
    """The message from which on the history is, or would be, set aside; None if nothing is set aside."""
    files: tuple[FileRestore, ...] = ()
    problem: str | None = None
    """Changes that are not undone, besides conflicts, with the reasons."""
    is_plan: bool = False

    @property
    def conflicts(self) -> tuple[FileRestore, ...]:
        """The files that are left as they are, because others changed them."""
        return tuple(one for one in self.files if one.kind == "conflict")
