"""FileChange: the difference of one file between two moments, as it is shown to people."""

from typing import Literal

from turnkeeper.model.value import Value


class FileChange(Value):
    """A changed file. Unlike a FileDiff, which clients know, it tells renames and binary files."""

    file: str
    renamed_from: str | None = None
    status: Literal["added", "deleted", "modified", "renamed"]
    binary: bool = False
    additions: int
    deletions: int
    patch: str = ""
    """The patch of git, with some lines around each change; empty if it would be long."""
