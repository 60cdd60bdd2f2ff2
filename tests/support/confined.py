"""A world in which commands run confined: a home, a project and a place outside, with a picture of all files in it."""

import ctypes
import os
import shutil
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from turnkeeper.core.sandbox import Confinement, confinement
from turnkeeper.model.config import SandboxConfig
from turnkeeper.model.permission import Rule
from turnkeeper.workspace import landlock, sandbox, shell
from turnkeeper.workspace.shell import Ran
from turnkeeper.workspace.temporary import TemporaryDirectories

T = TypeVar("T")

needs_kernel = pytest.mark.skipif(
    sandbox.unavailable() is not None, reason=f"commands cannot be confined here: {sandbox.unavailable()}"
)
ALL = Rule(permission="*", pattern="*", action="allow")


def needs(*programs: str) -> None:
    """Skip a test without these programs."""
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


@dataclass
class ConfinedWorld:
    """Directories below one that a test owns."""

    root: Path
    config: SandboxConfig = field(default_factory=SandboxConfig)
    rules: list[Rule] = field(default_factory=lambda: [ALL])
    approvals: list[Rule] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = self.root.resolve()
        self.home, self.project, self.outside = (self.root / name for name in ("home", "project", "outside"))
        (self.root / "tmp").mkdir(parents=True)
        for place in (self.project, self.outside, self.home / ".ssh", self.home / ".config/turnkeeper"):
            place.mkdir(parents=True)
        data = self.home / ".local/share/turnkeeper"
        data.mkdir(parents=True)
        (data / "auth.json").write_text('{"key": "secret"}')
        (self.home / ".bashrc").write_text("# mine\n")
        (self.home / ".ssh/authorized_keys").write_text("key\n")
        (self.home / ".config/turnkeeper/turnkeeper.json").write_text("{}")
        (self.outside / "file").write_text("old\n")
        (self.outside / "folder").mkdir()
        (self.outside / "folder/inner").write_text("old\n")
        (self.project / "file").write_text("inside\n")
        self.confinement()  # Makes missing caches, once; commands change only what is in them.

    @property
    def environ(self) -> dict[str, str]:
        """Variables for commands and for the places of the sandbox."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "RUSTUP_HOME") if name in os.environ}
        rustup = Path.home() / ".rustup"
        if rustup.exists():  # Toolchains are the user's own, and are only read.
            kept.setdefault("RUSTUP_HOME", str(rustup))
        identity = {
            f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        places = {"HOME": str(self.home), "TMPDIR": str(self.root / "tmp"), "OUT": str(self.outside)}
        # The interpreter itself, not the script of a version manager, which takes longer than most tests.
        path = f"{os.path.dirname(os.path.realpath(sys.executable))}:{kept['PATH']}"
        return {**kept, **identity, **places, "PATH": path, "SHELL": "/bin/bash"}

    def confinement(self) -> Confinement:
        policy = sandbox.policy(self.config, self.project, self.project, self.environ)
        temporary = TemporaryDirectories(self.environ).directory("ses_one")
        confined = confinement(policy, self.rules, self.approvals, temporary)
        assert confined is not None
        return confined

    async def run(self, command: str, *, timeout_s: float = 120) -> Ran:
        """Run a command in the project, confined."""
        confined = self.confinement()
        temporary = {"TMPDIR": confined.temporary} if confined.temporary else {}
        environ = {**self.environ, **temporary}
        return await shell.run(command, self.project, environ=environ, timeout_s=timeout_s, confined=confined)

    def outside_files(self) -> dict[str, str]:
        """Every file outside of what may be written, by its path."""
        return {path: said for top in (self.outside, self.home) for path, said in files(top).items() if is_kept(path)}

    def all_files(self) -> dict[str, str]:
        return files(self.root)


def restrict(confined: Confinement, version: int | None = None) -> None:
    """Restrict the calling thread by Landlock, for good."""
    libc, ruleset = ctypes.CDLL(None, use_errno=True), landlock.ruleset(confined, version)
    try:
        assert libc.prctl(38, *map(ctypes.c_ulong, (1, 0, 0, 0))) == 0
        assert libc.syscall(*map(ctypes.c_long, (446, ruleset, 0))) == 0
    finally:
        os.close(ruleset)


def without_powers() -> None:
    """Take root's powers from the calling thread, for good: files have modes for it as for everybody."""
    version_3, libc = struct.pack("=Ii", 0x20080522, 0), ctypes.CDLL(None)
    if os.geteuid() == 0:  # SECBIT_NOROOT: the programs that it starts do not get them back.
        assert libc.prctl(28, *map(ctypes.c_ulong, (1, 0, 0, 0))) == 0
    assert libc.capset(version_3, bytes(24)) == 0


def unprivileged(work: Callable[[], T]) -> T:
    """What work returns on a thread without root's powers, as if an ordinary user ran it."""

    def done() -> T:
        without_powers()
        return work()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(done).result(120)


def is_kept(path: str) -> bool:
    return not any(f"/home/{cache}" in path for cache in (".cache", ".npm", ".cargo/", ".m2", "go/", ".gradle"))


def files(top: Path) -> dict[str, str]:
    """What is at each path: the kind of file with its mode, time of change, and content or target."""
    found = {}
    for path in [top, *top.rglob("*")]:
        about = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""
        found[str(path)] = f"{about.st_mode:o} {about.st_nlink} {content}"
    return found
