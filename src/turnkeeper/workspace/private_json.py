"""A JSON file that only its owner may read: credentials, approvals, trusted directories.

Changes are atomic, and two processes that change the file at once do not undo each other's change.
"""

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files
from turnkeeper.workspace.files import CheckedPath

T = TypeVar("T")


class PrivateJson(Generic[T]):
    """One file with a value of one type. ``empty`` is the value of a file that does not exist."""

    def __init__(self, path: Path, type: type[T], empty: T, *, advice: str = "") -> None:
        """``advice`` ends the message of the error for a damaged file."""
        self.path = path
        self._type, self._empty, self._advice = type, empty, advice
        self._stamp: tuple[int, ...] | None = None
        self._cached = empty

    def read(self) -> T:
        """The value, read again only if the file has changed. Raises Invalid if the file is damaged."""
        stamp = files.stamp(self.path)
        if stamp is None and files.is_missing(self.path):
            return self._empty
        if stamp is None or stamp != self._stamp:
            self._cached, self._stamp = self._decoded(), stamp
        return self._cached

    def change(self, change: Callable[[T], T]) -> None:
        """Replace the value by the result of ``change``, under a lock against other processes."""
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # The directory itself, so that no lock file is left behind.
            before = self._decoded()
            after = change(before)
            if after != before:
                with files.replacing(self.path, mode=files.PRIVATE) as file:
                    file.write(msgspec.json.format(msgspec.json.encode(after), indent=2))
        finally:
            os.close(handle)

    def _decoded(self) -> T:
        try:
            with files.open_file(CheckedPath.of(self.path)) as file:
                self._require_private(os.fstat(file.fileno()))
                return msgspec.json.decode(file.read(), type=self._type)
        except FileNotFoundError:
            return self._empty
        except (OSError, msgspec.MsgspecError) as error:
            raise Invalid(f"{self.path}: cannot be read: {error}{self._advice}") from error

    def _require_private(self, found: os.stat_result) -> None:
        """Refuse a file that another user may have written: it decides about trust, permissions and keys."""
        if found.st_uid not in (os.geteuid(), 0):
            raise Invalid(
                f"{self.path}: belongs to another user, so it is not read; make it yours with chown, or delete it"
            )
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Invalid(
                f"{self.path}: others can write this file, so it is not read; look at its content, then `chmod 600` it"
            )
