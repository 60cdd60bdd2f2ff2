"""The oldest trees of opencode, one for each project, and the new keys of their documents."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from turnkeeper.core.limits import GIT_WALK_S
from turnkeeper.interop.opencode_v0 import messages
from turnkeeper.interop.raw import RawObject
from turnkeeper.store.engine import Key
from turnkeeper.workspace import git

GLOBAL: Final = "global"
"""The project of sessions outside of repositories."""

RootCommits = Callable[[Path], list[str]]


class Unresolved(Exception):
    """The project of a tree is unknown."""


def git_root_commits(worktree: Path) -> list[str]:
    """The root commits of the repository of a directory; none outside of a repository."""
    try:
        done = subprocess.run(
            ["git", *git.HARMLESS, "rev-list", "--max-parents=0", "--all"],
            cwd=worktree,
            env=git.environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GIT_WALK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split() if done.returncode == 0 else []


def project_trees(project_dir: Path, skip: Callable[[str], None]) -> "list[ProjectTree]":
    """The trees below ``DATA/project`` that have sessions, by name."""
    trees = [ProjectTree(directory, skip) for directory in _folders(project_dir)]
    return [tree for tree in trees if tree.root.is_dir()]


class ProjectTree:
    """The tree of a project."""

    def __init__(self, directory: Path, skip: Callable[[str], None]) -> None:
        self.directory = directory
        self.root = directory / "storage" / "session"
        self._skip = skip

    def identity(self, root_commits: RootCommits) -> tuple[str, str]:
        """The id and worktree of the project. Raises Unresolved."""
        if self.directory.name == GLOBAL:
            return GLOBAL, "/"
        worktree = self._worktree()
        if worktree is None:
            raise Unresolved("none of its messages says which worktree it was written in")
        if not os.path.isdir(worktree):
            raise Unresolved(f"its worktree {worktree} is not there")
        commits = sorted(root_commits(Path(worktree)))
        if not commits:
            raise Unresolved(f"its worktree {worktree} has no commits")
        return commits[0], worktree

    def names(self) -> list[str]:
        """The ids of the sessions."""
        names = {file.stem for kind in ("info", "share") for file in self._files(kind)}
        names |= {folder.name for kind in ("message", "part") for folder in _folders(self.root / kind)}
        return sorted(names)

    def session(self, session: str, project_id: str) -> tuple[dict[Key, bytes], int]:
        """The documents of a session under their new keys, and the number of parts that the new format cannot have."""
        documents: dict[Key, bytes] = {}
        self._add(documents, self.root / "info" / f"{session}.json", "session", project_id)
        self._add(documents, self.root / "share" / f"{session}.json", "share")
        dropped = self._add_messages(session, documents)
        for folder in _folders(self.root / "part" / session):
            for file in _json_files(folder):
                self._add(documents, file, "part", folder.name)
        return documents, dropped

    def _add(self, documents: dict[Key, bytes], file: Path, *folder: str) -> None:
        body = self._compact(file)
        if body is not None:
            documents[*folder, file.stem] = body

    def _add_messages(self, session: str, documents: dict[Key, bytes]) -> int:
        dropped = 0
        for file in self._files(f"message/{session}"):
            message = self._message(file)
            if message is None:
                continue
            try:
                info, parts, without_place = messages.current(message)
            except messages.UnknownShape as reason:
                self._skip(f"{file} is left as it is: {reason}")
                continue
            dropped += without_place
            body = self._compact(file) if info == message else msgspec.json.encode(info)
            documents["message", session, file.stem] = body or b"null"
            for part in parts:
                documents["part", file.stem, part["id"]] = msgspec.json.encode(part)
        return dropped

    def _worktree(self) -> str | None:
        for folder in _folders(self.root / "message"):
            for file in _json_files(folder):
                message = self._message(file, is_quiet=True)
                found = messages.worktree(message) if message is not None else None
                if found is not None:
                    return found
        return None

    def _message(self, file: Path, *, is_quiet: bool = False) -> RawObject | None:
        try:
            return msgspec.json.decode(file.read_bytes(), type=RawObject)
        except msgspec.DecodeError as error:
            if not is_quiet:
                self._skip(f"{file} is left as it is: {error}")
            return None

    def _compact(self, file: Path) -> bytes | None:
        """The JSON of a file without white space; None if it does not exist or cannot be parsed."""
        try:
            return msgspec.json.format(file.read_bytes(), indent=-1)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            self._skip(f"{file} is left as it is: {error}")
            return None

    def _files(self, below: str) -> list[Path]:
        return _json_files(self.root / below)


def _json_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def _folders(folder: Path) -> list[Path]:
    return sorted(found for found in folder.iterdir() if found.is_dir()) if folder.is_dir() else []
