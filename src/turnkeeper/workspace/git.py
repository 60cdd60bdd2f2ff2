"""Read-only git queries: the repository of a directory, its remote, its branches, its root commits."""

import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from subprocess import DEVNULL
from typing import Final, NamedTuple

import anyio

from turnkeeper.core.limits import GIT_S, GIT_WALK_S
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files

log = logging.getLogger(__name__)

_READ_FIRST: Final = ("", "HEAD", "config", "commondir", "packed-refs")
"""The files that git reads in every command. A named pipe among them would block git."""

_POINTER_BYTES_MAX: Final = 64 * 1024
_CONFIG_BYTES_MAX: Final = 1024 * 1024
_SECTION: Final = re.compile(r"\s*\[\s*([^\]]*?)\s*\]")
_WORKTREE: Final = re.compile(r"\s*worktree\s*=\s*(.*?)\s*", re.IGNORECASE)

# Of git's own variables only these are passed on: a GIT_DIR set by a hook would select another repository.
_KEPT: Final = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"})
# A repository that lacks an object may name a remote to fetch it from, and the program to fetch it with. None of our
# commands needs a remote: git 2.45 knows a variable for that, an older one allows no protocol.
_ADDED: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
HARMLESS: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.sshCommand=false")
"""Options of every git command. A repository's configuration can name programs that git runs; none of them may run."""


class Worktree(NamedTuple):
    """A worktree of a repository: its top, its git directory, and the git directory that all worktrees share."""

    top: Path
    git_dir: Path
    common: Path

    @property
    def main(self) -> Path:
        """The top of the main worktree; the repository itself if it is bare."""
        if self.git_dir == self.common:
            return self.top
        return self.common.parent if self.common.name == ".git" else self.common


class Repository:
    """A repository, queried in one of its worktrees."""

    def __init__(self, worktree: Worktree, run: "_Git") -> None:
        self.worktree = worktree
        self._git = run

    async def remote(self) -> str:
        """The URL of the remote ``origin``; empty if there is none."""
        return (await self._git.answer("remote", "get-url", "origin")).strip()

    async def branch(self) -> str | None:
        """The checked-out branch; None for a detached HEAD."""
        return (await self._git.answer("symbolic-ref", "--quiet", "--short", "HEAD")).strip() or None

    async def default_branch(self) -> str | None:
        """The default branch of ``origin``, else ``main`` or ``master`` if it exists."""
        said = (await self._git.answer("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")).strip()
        if said:
            return said.removeprefix("origin/")
        heads = ("refs/heads/main", "refs/heads/master")
        found = (await self._git.answer("for-each-ref", "--format=%(refname:short)", *heads)).split()
        return found[0] if found else None

    async def root_commit(self, revision: str) -> str | None:
        """The smallest hash of the root commits that a revision reaches."""
        found = await self._git.answer("rev-list", "--max-parents=0", revision, walks=True)
        return min(found.split(), default=None)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a git command: without those that select another repository or other settings."""
    own = {name: value for name, value in environ.items() if name in _KEPT or not name.startswith("GIT_")}
    return own | _ADDED


def top(directory: Path) -> Path | None:
    """The nearest directory with a ``.git``, from this one upwards."""
    at = str(directory)
    while not os.path.lexists(os.path.join(at, ".git")):
        at, below = os.path.dirname(at), at
        if at == below:
            return None
    return Path(at)


def worktree(top: Path) -> Worktree | None:
    """The worktree with this top, read from its ``.git`` without running git; None if it is not valid."""
    entry = top / ".git"
    try:
        if entry.is_dir():
            git_dir = common = files.real(entry)
        else:
            pointer = files.read_bytes(entry, _POINTER_BYTES_MAX).decode()
            git_dir = common = files.real(top / pointer.removeprefix("gitdir:").strip())
            if (shared := git_dir / "commondir").exists():
                common = files.real(_named_in(shared))
        is_here = common != git_dir or configured_worktree(git_dir) in (None, top)
        return Worktree(top, git_dir, common) if is_here and (git_dir / "HEAD").is_file() else None
    except (OSError, ValueError, Invalid):
        return None


def belonging(worktree: Worktree) -> list[Path]:
    """The git directories outside a worktree that belong to it: those that refer back to the worktree.

    A command that may write the worktree can make its ``.git`` refer to another repository.
    """
    top, git_dir, common = worktree
    try:
        if git_dir != common:  # A linked worktree.
            named = _named_in(git_dir / "gitdir")
            is_listed = git_dir.parent == common / "worktrees"
            is_ours = is_listed and named.name == ".git" and files.real(named.parent) == top
        else:  # A submodule.
            is_ours = configured_worktree(git_dir) == top
    except (OSError, ValueError, Invalid):
        is_ours = False
    found = dict.fromkeys((common, git_dir))
    return [place for place in found if is_ours and not place.is_relative_to(top)]


def configured_worktree(git_dir: Path) -> Path | None:
    """The top of the worktree that a git directory's own configuration names (``core.worktree``).

    Raises OSError or Invalid if the configuration cannot be read.
    """
    section, found = "", None
    if not (git_dir / "config").exists():
        return None
    for line in files.read_bytes(git_dir / "config", _CONFIG_BYTES_MAX).decode("utf-8", "surrogateescape").splitlines():
        if heading := _SECTION.match(line):
            section, line = heading[1].lower(), line[heading.end() :]
        if section == "core" and (entry := _WORKTREE.fullmatch(line)):
            found = files.real(git_dir / re.sub(r"\\(.)", r"\1", entry[1].strip('"')))
    return found


def _named_in(file: Path) -> Path:
    """The path that a file holds, which may be relative to the file's directory."""
    return file.parent / files.read_bytes(file, _POINTER_BYTES_MAX).decode().strip()


async def find(directory: Path, environ: Mapping[str, str], timeout_s: float = GIT_S) -> Repository | None:
    """The repository of a directory; None if there is none, git cannot read it, or its worktree is elsewhere.

    The configuration of a repository can name any worktree (``core.worktree``), and the worktree bounds the project.
    """
    at = top(directory)
    if at is None or any((at / ".git" / name).is_fifo() for name in _READ_FIRST):
        return None
    run = _Git(at, environ, timeout_s)
    # The toplevel comes last: git fails there in a bare repository, after it has printed the others, and a path may
    # contain a line break.
    places = ("--git-dir", "--git-common-dir", "--show-toplevel")
    lines = (await run.answer("rev-parse", *places, partial=True)).split("\n", 2)
    if len(lines) < 3:
        return None
    git_dir, common, toplevel = (files.real(at / line.removesuffix("\n")) for line in lines)
    if not _is_same(toplevel, at):
        _warn(at, toplevel)
        return None
    return Repository(Worktree(at, git_dir, common), run)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths are one directory, also where the file system takes two spellings for one name."""
    return one == other or (one.exists() and one.samefile(other))


@cache
def _warn(at: Path, named: Path) -> None:
    """Warn the user, once, why a repository is not used."""
    log.warning("%s is taken for a directory without git: its repository names the worktree %s", at, named)


async def listed(directory: Path, environ: Mapping[str, str], timeout_s: float = GIT_S) -> list[str]:
    """The sorted paths of tracked and untracked files below a directory, without ignored ones."""
    names = await _Git(directory, environ, timeout_s).answer(
        "ls-files", "--cached", "--others", "--exclude-standard", "-z"
    )
    return sorted({name for name in names.split("\0") if name})


class _Git:
    """Runs git in one directory."""

    def __init__(self, directory: Path, environ: Mapping[str, str], timeout_s: float) -> None:
        self._directory = directory
        self._environ = environment(environ)
        self._timeout_s = timeout_s

    async def answer(self, *arguments: str, partial: bool = False, walks: bool = False) -> str:
        """The output of git; empty if git fails (unless ``partial``), is missing or times out.

        ``walks`` allows more time. A timeout or a cancellation terminates git.
        """
        command = ["git", *HARMLESS, *arguments]
        with anyio.move_on_after(self._timeout_s * (GIT_WALK_S / GIT_S if walks else 1)):
            try:
                done = await anyio.run_process(
                    command, cwd=self._directory, env=self._environ, check=False, stdin=DEVNULL, stderr=DEVNULL
                )
            except OSError:
                return ""
            if partial or done.returncode == 0:
                return done.stdout.decode("utf-8", "surrogateescape")
        return ""
