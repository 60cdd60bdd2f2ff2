"""New worktree: a directory with the files of a snapshot, as a worktree of the project's repository if it has one.

This is the only place where the project's own repository is changed: a worktree is added, because the user asks for it.
"""

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from turnkeeper.core.limits import SNAPSHOT_S
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.workspace import files, git
from turnkeeper.workspace.git_work import GitFailed, GitStopped, GitWork, in_thread
from turnkeeper.workspace.shadow import ALONE
from turnkeeper.workspace.shadow_repository import ShadowRepository
from turnkeeper.workspace.tree_listing import trees


@asynccontextmanager
async def new_worktree(
    repository: ShadowRepository, tree: str, target: Path, environ: Mapping[str, str]
) -> AsyncIterator[Path]:
    """A new worktree with the files of a tree. If the block fails, the worktree is removed again.

    Raises Invalid or Conflict if the directory cannot be a new one, and NotFound if the snapshot is no longer kept.
    """
    target = _checked(target, repository.root)
    await repository.ask("cat-file", "-e", *trees(tree))
    was_there = _claim(target)
    own = _Worktree(repository, target, environ)
    try:
        try:
            await in_thread(SNAPSHOT_S, lambda work: own.make(work, tree))
        except GitFailed as error:
            raise NotFound(f"the files of that moment cannot be written to {str(target)!r}: {error}") from error
        except GitStopped as error:
            raise Conflict(f"no worktree was made at {str(target)!r}: {error}") from error
        yield target
    except BaseException:
        with anyio.CancelScope(shield=True):
            await in_thread(SNAPSHOT_S, own.remove)
            if was_there:
                target.mkdir(exist_ok=True)
        raise


def _checked(target: Path, root: Path) -> Path:
    """The directory with links resolved. Raises Invalid if it cannot be one of a worktree."""
    if not target.is_absolute():
        raise Invalid(f"{str(target)!r} is not a whole path; a worktree needs one")
    try:
        target = files.real(target)
    except (OSError, ValueError) as error:
        raise Invalid(f"{str(target)!r} cannot be the directory of a worktree: {error}") from error
    if any(part.casefold() == ".git" for part in target.parts):
        raise Invalid(f"{str(target)!r} is inside of a repository of git; name a directory outside of it")
    if target.is_relative_to(root):
        raise Invalid(
            f"{str(target)!r} is inside of {str(root)!r}, which would then contain a copy of itself; name a directory "
            "beside it"
        )
    return target


def _claim(target: Path) -> bool:
    """Make the directory new and empty; returns whether an empty one existed. Raises Conflict if it is not empty."""
    was_there = False
    try:
        if os.path.lexists(target):
            target.rmdir()  # It fails if something is in it.
            was_there = True
        target.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise Conflict(f"{str(target)!r} is not an empty directory; name another one") from error
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise Conflict(f"{str(target)!r} is not an empty directory; name another one{_left(target)}") from error
        raise Invalid(f"{str(target)!r} cannot be made: {error.strerror}; name another directory") from error
    return was_there


def _left(target: Path) -> str:
    """Advice for a directory that a killed fork may have left. It is not removed: others may have put files there."""
    if not (target / ".git").is_file():
        return ", or remove it if a fork that was killed has left it"
    command = shlex.join(["git", "worktree", "remove", "--force", "--force", str(target)])
    return f". If a fork that was killed has left it, `{command}` in the project removes it"


class _Worktree:
    """Makes and removes one worktree."""

    def __init__(self, repository: ShadowRepository, target: Path, environ: Mapping[str, str]) -> None:
        self._shadow, self._target = repository.place, target
        self._environ = git.environment(environ)
        self._is_added = False

    def make(self, work: GitWork, tree: str) -> None:
        """Make the directory and write the files of the tree."""
        if self._shadow.source is not None:
            self._is_added = True
            # Nothing is checked out: files that the tree does not have must not come from the commit.
            # Twice forced, because a killed attempt may have left the name of the directory in the repository, locked.
            how = ("--quiet", "--detach", "--no-checkout", "--force", "--force")
            self._run(work, "worktree", "add", *how, str(self._target), "HEAD")
        with tempfile.TemporaryDirectory(prefix="turnkeeper-index-") as folder:
            own = {
                **self._environ,
                **ALONE,
                "GIT_DIR": str(self._shadow.git_dir),
                "GIT_WORK_TREE": str(self._target),
                "GIT_INDEX_FILE": os.path.join(folder, "index"),
            }
            for command in (("read-tree", tree), ("checkout-index", "--all", "--force", "--quiet")):
                arguments = ("-c", "core.sparseCheckout=false", *command)
                with work.started(arguments, self._target, own) as process:
                    work.finish(process)
        if self._is_added:
            # The index is that of the commit, so that git shows what differs. Comparing files would run filters.
            self._run(work, "read-tree", "HEAD", at=self._target)
            self._skip(work)

    def _skip(self, work: GitWork) -> None:
        """Mark the files that a sparse checkout of the project leaves out, or git would take them for deleted."""
        listing = self._run(work, "ls-files", "-t", "-z").split(b"\0")
        if skipped := {line[2:] for line in listing if line.startswith(b"S ")}:
            known = self._run(work, "ls-files", "-z", at=self._target).split(b"\0")
            given = b"".join(name + b"\0" for name in known if name in skipped)
            self._run(work, "update-index", "-z", "--skip-worktree", "--stdin", at=self._target, given=given)

    def remove(self, work: GitWork) -> None:
        """Remove the directory, and its entry in the repository."""
        if self._is_added:
            with suppress(GitFailed, GitStopped):  # It was not added.
                self._run(work, "worktree", "remove", "--force", "--force", str(self._target))
        shutil.rmtree(self._target, ignore_errors=True)

    def _run(self, work: GitWork, *arguments: str, at: Path | None = None, given: bytes | None = None) -> bytes:
        source = self._shadow.source
        assert source is not None, "only a repository has worktrees"
        with work.started(arguments, at or source.top, self._environ, has_input=given is not None) as process:
            return work.finish(process, given)
