"""What we ask git: where a directory's repository is, its remote, its root commits. Nothing is changed."""

import os
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import Final

import anyio

TIMEOUT_S: Final = 30.0
"""For one question. Finding the root of a million commits takes some ten seconds."""

# Of git's own variables only these are passed on: a GIT_DIR set by a hook would answer for another place.
_KEPT: Final = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"})
_ADDED: Final = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class Repository:
    """A repository as seen from one of its worktrees."""

    def __init__(self, worktree: Path, git_dir: Path, common: Path, run: "_Git") -> None:
        self.worktree = worktree
        self.common = common
        """The git directory that all worktrees share."""
        self._is_linked = git_dir != common
        self._git = run

    @property
    def main_worktree(self) -> Path:
        """The top of the first worktree, or the bare repository itself."""
        if not self._is_linked:
            return self.worktree
        return self.common.parent if self.common.name == ".git" else self.common

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
        return min((await self._git.answer("rev-list", "--max-parents=0", revision)).split(), default=None)


async def find(directory: Path, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> Repository | None:
    """The repository around a directory; None without one, or without a git that can read it."""
    top = next((place for place in (directory, *directory.parents) if os.path.exists(place / ".git")), None)
    if top is None:
        return None
    run = _Git(top, environ, timeout_s)
    # In this order: a bare repository has no toplevel, so git stops there after having answered the others.
    # And the toplevel takes all the rest of the answer, for a path may hold a line break.
    places = ("--git-dir", "--git-common-dir", "--show-toplevel")
    lines = (await run.answer("rev-parse", *places, partial=True)).split("\n", 2)
    if len(lines) < 3:
        return None
    git_dir, common, toplevel = (Path(top, line.removesuffix("\n")).resolve() for line in lines)
    return Repository(toplevel, git_dir, common, run)


async def files(directory: Path, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> list[str]:
    """Paths of tracked and new files below a directory, ignored ones left out, in order."""
    listed = await _Git(directory, environ, timeout_s).answer(
        "ls-files", "--cached", "--others", "--exclude-standard", "-z"
    )
    return sorted({name for name in listed.split("\0") if name})


class _Git:
    """The git program in one directory."""

    def __init__(self, directory: Path, environ: Mapping[str, str], timeout_s: float) -> None:
        own = {name: value for name, value in environ.items() if name in _KEPT or not name.startswith("GIT_")}
        self._directory = directory
        self._environ = own | _ADDED
        self._timeout_s = timeout_s

    async def answer(self, *arguments: str, partial: bool = False) -> str:
        """What git printed; nothing if it failed (unless ``partial``), is missing or is too slow."""
        command = ["git", *arguments]
        with anyio.move_on_after(self._timeout_s):
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
