"""A project with a real git repository, or without one, whose files are captured; and git as the judge."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from turnkeeper.model.config import Config
from turnkeeper.workspace.project import ProjectPlace, identify
from turnkeeper.workspace.snapshots import ShadowRepository, Snapshots

SESSION = "ses_1"
OTHER = "ses_2"
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


class SnapshotProject:
    """A home directory with data and one project. Git reads no configuration but that of this home."""

    def __init__(self, home: Path, *, has_git: bool = True) -> None:
        self.home = Path(os.path.realpath(home))
        self.top = self.home / "project"
        self.top.mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TURNKEEPER_DATA": str(self.home / "data"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.now = 1_800_000_000_000
        self.pending: set[str] = set()
        """The sessions that have a pending undo."""
        self.snapshots = Snapshots(self.environ, lambda: self.now, self._protected)
        if has_git:
            self.git("init", "-q", "-b", "main")

    async def _protected(self, sessions: Collection[str]) -> Collection[str]:
        return self.pending & set(sessions)

    def git(self, *arguments: str, at: Path | None = None, given: bytes | None = None, check: bool = True) -> str:
        """What git says in the project, as its user runs it."""
        command = ["git", *WHO, *arguments]
        done = subprocess.run(
            command, cwd=at or self.top, env=self.environ, input=given, capture_output=True, check=check, timeout=120
        )
        return os.fsdecode(done.stdout)

    def write(self, name: str | bytes, content: bytes | str = b"some\n") -> Path:
        """Write a file of the project."""
        path = self.top / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self) -> None:
        """Commit all files."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work")

    async def place(self) -> ProjectPlace:
        """The project as the program knows it."""
        return await identify(self.top, environ=self.environ)

    async def shadow(self, config: Config | None = None) -> ShadowRepository:
        """The shadow repository."""
        found = await self.snapshots.of(await self.place(), config or Config())
        assert found is not None
        return found

    async def capture(self, config: Config | None = None) -> str:
        """The tree of the files now."""
        tree = await (await self.shadow(config)).capture(SESSION)
        assert tree is not None
        return tree

    async def listed(self, tree: str) -> dict[str, bytes]:
        """The files of a tree with their contents, as our interface tells them."""
        shadow = await self.shadow()
        found = await shadow.files(tree)
        contents = await shadow.read([entry.blob for entry in found.values()])
        return {name: contents[entry.blob] for name, entry in found.items()}

    def entries(self, shadow: ShadowRepository, tree: str) -> set[str]:
        """The lines of ``git ls-tree`` for a tree of the shadow repository."""
        done = subprocess.run(
            ["git", f"--git-dir={shadow.place.git_dir}", "ls-tree", "-r", "-z", tree],
            env=self.environ,
            capture_output=True,
            check=True,
            timeout=120,
        )
        return set(filter(None, os.fsdecode(done.stdout).split("\0")))

    def expected(self) -> set[str]:
        """The lines of ``git ls-tree`` for what ``git add -A`` stages in a copy of the project."""
        copy = self.home / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.top, copy, symlinks=True)
        self.git("add", "-A", at=copy)
        tree = self.git("write-tree", at=copy).strip()
        lines = filter(None, self.git("ls-tree", "-r", "-z", tree, at=copy).split("\0"))
        return {line for line in lines if not line.startswith("160000")}

    def own_repository(self) -> dict[str, str]:
        """Everything of the project's own repository that must never change, times of files included."""
        state = {
            "status": self.git("--no-optional-locks", "status", "--porcelain", "-uall"),
            "fsck": self.git("fsck", "--full"),
        }
        for path in sorted((self.top / ".git").rglob("*")):
            if path.is_file():
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                state[str(path.relative_to(self.top))] = f"{digest} {path.stat().st_mtime_ns}"
        return state
