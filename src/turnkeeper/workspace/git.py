"""What we ask git: where a directory's repository is, its remote, its root commits. Nothing is changed."""

import os
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import Final, NamedTuple

import anyio

from turnkeeper.core.limits import GIT_S, GIT_WALK_S
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files

_READ_FIRST: Final = ("", "HEAD", "config", "commondir", "packed-refs")
"""What git reads of a repository whatever it is asked. It would wait for the writer of a pipe among them."""

_POINTER_BYTES_MAX: Final = 64 * 1024

# Of git's own variables only these are passed on: a GIT_DIR set by a hook would answer for another place.
_KEPT: Final = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"})
_ADDED: Final = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
# A repository's own configuration can name programs that git runs. None of them may run because we asked a question.
_HARMLESS: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.sshCommand=false")


class Worktree(NamedTuple):
    """A checkout of a repository: its top, its git directory, and the one that all checkouts share."""

    top: Path
    git_dir: Path
    common: Path

    @property
    def main(self) -> Path:
        """The top of the first worktree, or the bare repository itself."""
        if self.git_dir == self.common:
            return self.top
        return self.common.parent if self.common.name == ".git" else self.common


class Repository:
    """A repository as seen from one of its worktrees."""

    def __init__(self, worktree: Worktree, run: "_Git") -> None:
        self.worktree = worktree
        self._git = run

    async def remote(self) -> str:
        """The URL of ``origin``; empty if it has none."""
        return (await self._git.answer("remote", "get-url", "origin")).strip()

    async def branch(self) -> str | None:
        """The branch that is checked out; None where none is."""
        return (await self._git.answer("symbolic-ref", "--quiet", "--short", "HEAD")).strip() or None

    async def default_branch(self) -> str | None:
        """The branch that others start from: what ``origin`` says, else ``main`` or ``master`` if there is one."""
        said = (await self._git.answer("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")).strip()
        if said:
            return said.removeprefix("origin/")
        heads = ("refs/heads/main", "refs/heads/master")
        found = (await self._git.answer("for-each-ref", "--format=%(refname:short)", *heads)).split()
        return found[0] if found else None

    async def root_commit(self, revision: str) -> str | None:
        """The first, by name, of the commits without a parent that a revision reaches."""
        found = await self._git.answer("rev-list", "--max-parents=0", revision, walks=True)
        return min(found.split(), default=None)


def top(directory: Path) -> Path | None:
    """The nearest directory, from this one upwards, in which a ``.git`` stands."""
    return next((place for place in (directory, *directory.parents) if os.path.lexists(place / ".git")), None)


def worktree(top: Path) -> Worktree | None:
    """The checkout with this top, read from its ``.git`` without asking git; None if that is not a plain one."""
    entry = top / ".git"
    try:
        if entry.is_dir():
            git_dir = common = entry.resolve()
        else:
            pointer = files.read_bytes(entry, _POINTER_BYTES_MAX).decode()
            git_dir = common = (top / pointer.removeprefix("gitdir:").strip()).resolve()
            if (git_dir / "commondir").exists():
                common = (
                    git_dir / files.read_bytes(git_dir / "commondir", _POINTER_BYTES_MAX).decode().strip()
                ).resolve()
        return Worktree(top, git_dir, common) if (git_dir / "HEAD").is_file() else None
    except (OSError, ValueError, Invalid):
        return None


async def find(directory: Path, environ: Mapping[str, str], timeout_s: float = GIT_S) -> Repository | None:
    """The repository around a directory; None without one, or without a git that can read it."""
    at = top(directory)
    if at is None or any((at / ".git" / name).is_fifo() for name in _READ_FIRST):
        return None
    run = _Git(at, environ, timeout_s)
    # In this order: a bare repository has no toplevel, so git stops there after having answered the others.
    # And the toplevel takes all the rest of the answer, for a path may hold a line break.
    places = ("--git-dir", "--git-common-dir", "--show-toplevel")
    lines = (await run.answer("rev-parse", *places, partial=True)).split("\n", 2)
    if len(lines) < 3:
        return None
    git_dir, common, toplevel = (Path(at, line.removesuffix("\n")).resolve() for line in lines)
    return Repository(Worktree(toplevel, git_dir, common), run)


async def listed(directory: Path, environ: Mapping[str, str], timeout_s: float = GIT_S) -> list[str]:
    """Paths of tracked and new files below a directory, ignored ones left out, in order."""
    names = await _Git(directory, environ, timeout_s).answer(
        "ls-files", "--cached", "--others", "--exclude-standard", "-z"
    )
    return sorted({name for name in names.split("\0") if name})


class _Git:
    """The git program in one directory."""

    def __init__(self, directory: Path, environ: Mapping[str, str], timeout_s: float) -> None:
        own = {name: value for name, value in environ.items() if name in _KEPT or not name.startswith("GIT_")}
        self._directory = directory
        self._environ = own | _ADDED
        self._timeout_s = timeout_s

    async def answer(self, *arguments: str, partial: bool = False, walks: bool = False) -> str:
        """What git printed; nothing if it failed (unless ``partial``), is missing or is too slow.

        With ``walks`` it has more time. It is ended when its time is up, or when the caller is cancelled.
        """
        command = ["git", *_HARMLESS, *arguments]
        with anyio.move_on_after(self._timeout_s * (GIT_WALK_S / GIT_S if walks else 1)):
            try:
                done = await anyio.run_process(
                    command,
                    cwd=self._directory,
                    env=self._environ,
                    check=False,
                    stdin=DEVNULL,
                    stderr=DEVNULL,
                )
            except OSError:
                return ""
            if partial or done.returncode == 0:
                return done.stdout.decode("utf-8", "surrogateescape")
        return ""
