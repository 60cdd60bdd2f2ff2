"""File restores: what a revert, or its end, does to the files of a project; file by file."""

from typing import Final, Literal, TypeAlias

from turnkeeper.model.session import Session
from turnkeeper.model.value import Value

RestoreKind: TypeAlias = Literal["restore", "create", "delete", "merged", "conflict", "unchanged"]
"""What becomes of a file. ``merged``: changes of others are kept. ``conflict``: the file is left as it is."""

OTHER_MODE: Final = "other"
"""The mode of what is no file and no link, such as a pipe, and of a file behind a link."""


class FileState(Value):
    """The content of a file as a git blob, and its mode: 100644, 100755, or 120000 for a link."""

    mode: str
    blob: str


class FileEdit(Value):
    """A change of one file. None: there is no file."""

    before: FileState | None = None
    after: FileState | None = None


class FileRestore(Value):
    """One file of a restore: what it is ``now``, and what it becomes. Its name is relative to the restore's root."""

    file: str
    kind: RestoreKind
    now: FileState | None = None
    to: FileState | None = None
    undone: FileEdit | None = None
    """What the pending revert has done to the file in all. A redo takes it back."""
    earlier: FileEdit | None = None
    """What the pending revert had done to the file before. It stays true if the file cannot be written."""
    reason: str | None = None
    """Why the file is left as it is, or what is to be known before it is put back."""

    @property
    def writes(self) -> bool:
        """Whether the file on disk is changed."""
        return self.kind not in ("conflict", "unchanged")


class Reverted(Value):
    """A revert, or its end: the session after it and what became of each file. ``is_plan``: nothing was done yet."""

    session: Session
    message_id: str | None = None
    """From which message on the history is, or would be, set aside; None: it is whole."""
    files: tuple[FileRestore, ...] = ()
    problem: str | None = None
    """What is not put back besides conflicts, and why."""
    is_plan: bool = False

    @property
    def conflicts(self) -> tuple[FileRestore, ...]:
        """The files that are left as they are, because others changed them."""
        return tuple(one for one in self.files if one.kind == "conflict")
