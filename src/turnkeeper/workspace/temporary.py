"""Temporary directories: one for each session, below a directory that only its user can enter.

A confined command cannot write the system's temporary directory, in which other programs keep their sockets and files.
What a session writes to its own is there for its next command, and is removed with the session.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Final

NAME: Final = "turnkeeper"


class TemporaryDirectories:
    """The temporary directories of the sessions of one user."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._parent: str | None = None

    def directory(self, session_id: str) -> str:
        """The directory of a session, created if it is missing. Raises OSError if that is not possible."""
        path = self.path(session_id)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def remove(self, session_ids: Iterable[str]) -> None:
        """Remove the directories of sessions. Files that cannot be removed are left to the system."""
        for session_id in session_ids:
            shutil.rmtree(self.path(session_id), ignore_errors=True)

    def path(self, session_id: str) -> str:
        """The path of the directory of a session, which need not exist. Raises OSError if it cannot be created."""
        # A hash: an id may hold what a file name cannot, and paths of sockets must be short.
        return os.path.join(self._made(), sha256(session_id.encode("utf-8", "replace")).hexdigest()[:12])

    def _made(self) -> str:
        """The parent of all temporary directories. It gets a random name if others own or can enter the usual one."""
        if self._parent is None or not os.path.isdir(self._parent):
            base = os.path.realpath(self._base())
            path = os.path.join(base, f"{NAME}-{os.getuid()}")
            with suppress(FileExistsError):
                os.mkdir(path, mode=0o700)
            found = os.lstat(path)
            is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
            self._parent = path if is_own else tempfile.mkdtemp(prefix=f"{NAME}-", dir=base)
        return self._parent

    def _base(self) -> str:
        """Where temporary files are made. A shell can outlive what ``TMPDIR`` names, as it is of the shell before."""
        named = self._environ.get("TMPDIR", "")
        return named if os.path.isdir(named) and os.access(named, os.W_OK | os.X_OK) else tempfile.gettempdir()
