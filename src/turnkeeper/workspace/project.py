"""Project identity: the repository of a directory, and an id that all its worktrees share.

The strategy ``root-commit`` takes the id stored in the repository, else the root commit. The strategy ``opencode``
takes the id that opencode computes, which uses the remote first. If git fails, there is no repository.
"""

import errno
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from turnkeeper.core import flags
from turnkeeper.core.limits import GIT_S
from turnkeeper.model.identifier import ProjectID
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files, git

VcsStrategy: TypeAlias = Literal["root-commit", "opencode"]

GLOBAL: Final = ProjectID("global")
"""The project of every directory outside a repository, and of repositories without a commit."""

REMEMBERED: Final = "turnkeeper"
OPENCODE_REMEMBERED: Final = "opencode"

_REMEMBERED_BYTES_MAX: Final = 4096
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
# user@host:path. At least two characters, because C:/code is a drive; no // after the colon, because that is a URL.
_SCP: Final = re.compile(r"(?:[^@:/\s]+@)?([^@:/\s]{2,}):(?!//)(.+)")


class ProjectPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A directory and its project. The paths have their links resolved."""

    id: ProjectID
    directory: Path
    worktree: Path
    """The top of the directory's worktree, or the root of the file system."""
    main_worktree: Path
    """The top of the repository's main worktree, or the bare repository; for display."""
    vcs: Literal["git"] | None
    path: str
    """The directory relative to the worktree, with ``/``; empty at its top."""
    aliases: tuple[ProjectID, ...] = ()
    """Other ids of the repository, as far as they were looked up; see ``identify``."""

    @property
    def top(self) -> Path:
        """The top of the project's files: the worktree, or the directory if there is no repository."""
        return files.top(self.directory, self.worktree)


async def identify(
    directory: Path | str,
    *,
    strategy: VcsStrategy = "root-commit",
    every_alias: bool = False,
    environ: Mapping[str, str] | None = None,
    timeout_s: float = GIT_S,
) -> ProjectPlace:
    """The current project of a directory, without a cache in this process.

    ``root-commit`` stores the id in the repository: it then stays equal in worktrees of unrelated branches, and git is
    not run again. ``aliases`` has the other ids that were looked up; with ``every_alias`` also those of the remote and
    of all root commits, which takes a walk of the whole history. Raises Invalid for a path that is too long, invalid
    or a loop of links.
    """
    resolved, environ = _resolved(directory), os.environ if environ is None else environ
    top = git.top(resolved)
    if top is None:
        return _outside(resolved, environ)
    if strategy == "root-commit" and not every_alias and (place := _remembered(resolved, top)) is not None:
        return place
    repository = await git.find(resolved, environ, timeout_s)
    if repository is None:
        return _outside(resolved, environ)
    return _inside(resolved, repository.worktree, await _ids(repository, strategy, every_alias))


async def stored_place(directory: str) -> ProjectPlace:
    """The current project of a directory that a session has stored. Raises Invalid if it leads elsewhere by now.

    Directories are stored without links. A link on the way was put there since, by a command of the model perhaps,
    and would make another directory the project of the session.
    """
    place = await identify(directory)
    if str(place.directory) != os.path.abspath(directory):
        raise Invalid(
            f"the session's directory {directory!r} leads to {str(place.directory)!r} by now, because a part of it has "
            "become a link; put the directory back, or let the session go on there with `turnkeeper session move`"
        )
    return place


def check_not_grown(place: ProjectPlace, project_id: str, root: str | None) -> None:
    """Raise Invalid if the project of a session has become one around it since a turn whose worktree was ``root``.

    A command of the model can remove the repository that it works in. Then the one around it would be the project, with
    all that its files and rules allow. ``project_id`` is that of the session, which a move of the session changes.
    """
    if root is None or root == place.directory.anchor or project_id in (place.id, *place.aliases):
        return
    if place.worktree in Path(root).parents and str(place.worktree) != place.worktree.anchor:
        raise Invalid(
            f"the repository {root!r} of the session is gone, and {str(place.worktree)!r} is around it; put its .git "
            "back, or let the session go on in the larger project with `turnkeeper session move`"
        )


def approved_place(directory: str) -> str:
    """The place of a directory's saved approvals: its repository with all worktrees, or the directory alone.

    It is derived from paths only. A command of the model can write the id of a project into any repository.
    """
    top = git.top(Path(directory))
    worktree = git.worktree(top) if top is not None else None
    if top is None or worktree is None:
        return directory
    return str(worktree.main if git.belonging(worktree) else top)


def _resolved(directory: Path | str) -> Path:
    """The directory with links resolved; it need not exist. Raises Invalid for a path that the system rejects."""
    try:
        resolved = files.real(Path(directory))
        os.stat(resolved)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{directory!r:.80} cannot be a directory: {error}") from error
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise Invalid(f"{directory!r:.80} cannot be a directory: {error.strerror}") from error
    return resolved


def _remembered(directory: Path, top: Path) -> ProjectPlace | None:
    """The project of a directory whose repository, with this top, has a stored id; else None."""
    worktree = git.worktree(top)
    ours = _read_id(worktree.common / REMEMBERED) if worktree is not None else None
    if worktree is None or ours is None:
        return None
    theirs = _read_id(worktree.common / OPENCODE_REMEMBERED)
    return _inside(directory, worktree, [ours] if theirs in (None, ours) else [ours, theirs])


def _inside(directory: Path, worktree: git.Worktree, ids: Sequence[ProjectID]) -> ProjectPlace:
    return ProjectPlace(
        id=ids[0] if ids else GLOBAL,
        directory=directory,
        worktree=worktree.top,
        main_worktree=worktree.main,
        vcs="git",
        path=_relative(directory, worktree.top),
        aliases=tuple(ids[1:]),
    )


def normalise_remote(url: str) -> str | None:
    """``host/path`` of a remote, equal for all forms of its URL; None for a local one."""
    host, path = _split_remote(url.strip())
    path = re.sub(r"\.git/?$", "", path.lstrip("/")).rstrip("/")
    return f"{host.lower()}/{path}" if host and path else None


def remote_id(url: str) -> ProjectID | None:
    """The id that opencode computes for a repository with this remote."""
    normalised = normalise_remote(url)
    if normalised is None:
        return None
    return ProjectID(hashlib.sha1(f"git-remote:{normalised}".encode(), usedforsecurity=False).hexdigest())


def _split_remote(url: str) -> tuple[str, str]:
    if url.lower().startswith("file:"):
        return "", ""
    if match := _SCP.fullmatch(url):
        return match[1], match[2]
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.path
    except ValueError:
        return "", ""  # Not a URL.


async def _ids(repository: git.Repository, strategy: VcsStrategy, every_alias: bool) -> list[ProjectID]:
    """All ids that were looked up, without duplicates; the first is the project's."""
    ours = _read_id(repository.worktree.common / REMEMBERED)
    theirs = _read_id(repository.worktree.common / OPENCODE_REMEMBERED)
    is_opencode = strategy == "opencode"
    remote = remote_id(await repository.remote()) if is_opencode or every_alias else None
    ids = [remote if is_opencode else ours, theirs]
    if every_alias or not any(ids):
        ids.append(await _root_id(repository, "HEAD"))
    ids.append(ours)
    if every_alias:
        ids += [remote, await _root_id(repository, "--all")]
    found = [project_id for project_id in ids if project_id is not None]
    if found and ours is None and not is_opencode:
        found.insert(0, _write_id(repository.worktree.common / REMEMBERED, found[0]))
    return list(dict.fromkeys(found))


async def _root_id(repository: git.Repository, revision: str) -> ProjectID | None:
    commit = await repository.root_commit(revision)
    return None if commit is None else ProjectID(commit)


def _read_id(file: Path) -> ProjectID | None:
    try:
        content = files.read_bytes(file, _REMEMBERED_BYTES_MAX).decode().strip()
    except (OSError, ValueError, Invalid):
        return None
    # Some stores use the id as a directory name, so other content of the file is ignored.
    return ProjectID(content) if _ID.fullmatch(content) and content != GLOBAL else None


def _write_id(file: Path, project_id: ProjectID) -> ProjectID:
    """Store an id unless one is stored already, and return the stored one."""
    own = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        try:
            own.write_text(project_id, "utf-8")
            # Creating a link is atomic and never replaces a file: of two processes, the first one wins.
            os.link(own, file)
        finally:
            own.unlink(missing_ok=True)
    except FileExistsError:
        return _read_id(file) or project_id
    except OSError:
        pass  # A read-only repository has no stored id; git is run each time.
    return project_id


def _outside(directory: Path, environ: Mapping[str, str]) -> ProjectPlace:
    root = Path(directory.anchor)
    vcs: Literal["git"] | None = "git" if flags.FAKE_VCS.value(environ) == "git" else None
    path = _relative(directory, root)
    return ProjectPlace(id=GLOBAL, directory=directory, worktree=root, main_worktree=root, vcs=vcs, path=path)


def _relative(directory: Path, worktree: Path) -> str:
    if not directory.is_relative_to(worktree):
        return ""
    path = directory.relative_to(worktree).as_posix()
    return "" if path == "." else path
