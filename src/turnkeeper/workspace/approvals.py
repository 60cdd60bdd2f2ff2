"""Saved approvals: what a user allowed for good, by project, in ``approvals.json`` of the data directory.

Only its owner may read the file. Changes are atomic, and those of two processes do not undo each other.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from turnkeeper.model.permission import Rule, SavedApproval
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.workspace import files, paths
from turnkeeper.workspace.project import GLOBAL

NAME: Final = "approvals.json"


class Approvals:
    """The saved approvals of the person this process runs for. Read again only when their file has changed."""

    def __init__(self, environ: Mapping[str, str], now: Callable[[], int], new_id: Callable[[str], str]) -> None:
        self._environ, self._now, self._new_id = environ, now, new_id
        self._seen: tuple[int, ...] = ()
        self._saved: tuple[SavedApproval, ...] = ()

    def saved(self, project_id: str | None = None) -> tuple[SavedApproval, ...]:
        """The approvals, oldest first; of one project or of all. Raises Invalid if the file is damaged."""
        return tuple(one for one in self._read() if project_id in (None, one.project_id))

    def rules(self, session: Session) -> tuple[Rule, ...]:
        """What is allowed for good where a session works."""
        place = _place(session)
        return tuple(
            Rule(permission=one.permission, pattern=one.pattern, action="allow")
            for one in self._read()
            if (one.project_id, one.directory) == place
        )

    def add(self, session: Session, rules: Sequence[Rule]) -> None:
        """Allow these for good where a session works. What is allowed already is not added again."""
        project_id, directory = _place(session)
        with self._changing() as saved:
            known = {(one.project_id, one.directory, one.permission, one.pattern) for one in saved}
            for rule in rules:
                if (project_id, directory, rule.permission, rule.pattern) not in known:
                    saved.append(
                        SavedApproval(
                            id=self._new_id("psv"),
                            project_id=project_id,
                            permission=rule.permission,
                            pattern=rule.pattern,
                            created=self._now(),
                            directory=directory,
                        )
                    )

    def revoke(self, id: str) -> bool:
        """Remove an approval; whether there was one."""
        with self._changing() as saved:
            left = [one for one in saved if one.id != id]
            is_there = len(left) < len(saved)
            saved[:] = left
        return is_there

    @property
    def path(self) -> Path:
        """Where the approvals are. Raises Invalid if there is no data directory."""
        try:
            return paths.data(self._environ) / NAME
        except ValueError as error:
            raise Invalid(str(error)) from error

    def _read(self) -> tuple[SavedApproval, ...]:
        try:
            found = os.stat(self.path)
        except (FileNotFoundError, Invalid):
            return ()
        # A writer puts a new file in its place.
        stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        if stamp != self._seen:
            self._saved, self._seen = tuple(self._decoded()), stamp
        return self._saved

    def _decoded(self) -> list[SavedApproval]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=list[SavedApproval])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            raise Invalid(f"{self.path}: cannot be read: {error}; delete it to be asked again") from error

    @contextmanager
    def _changing(self) -> Iterator[list[SavedApproval]]:
        """The approvals as a list, which is written when the block ends. No other process changes them meanwhile."""
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The directory itself is locked, so no lock file is left behind.
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            saved = self._decoded()
            before = list(saved)
            yield saved
            if saved != before:
                with files.replacing(self.path, mode=files.PRIVATE) as file:
                    file.write(msgspec.json.format(msgspec.json.encode(saved), indent=2))
        finally:
            os.close(handle)


def _place(session: Session) -> tuple[str, str | None]:
    """Where an approval holds: in a project. Directories without a repository share one, so there in the directory."""
    return session.project_id, session.directory if session.project_id == GLOBAL else None
