"""Shadow repository: a git repository beside the sessions that holds snapshots of a project's files.

It has its own index, configuration and objects. The project's own repository is only read: its objects are borrowed by
``objects/info/alternates``, its index is copied once. What is captured is stored in ``stored``; commands that write do
not see the borrowed objects, so nothing new depends on the project's repository and no file of it is touched.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Final, NamedTuple

from turnkeeper.core.limits import SNAPSHOT_LOCK_S
from turnkeeper.workspace import files, git, pipes
from turnkeeper.workspace.git_work import GitWork, locked

DIRECTORY: Final = "snapshot"
STORED: Final = "stored"
ROOT_FILE: Final = "root"
REFS_TOP: Final = "refs"
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
REFS: Final = f"{REFS_TOP}/turnkeeper"

# Attributes of the project must not change a byte or run a filter. This file has precedence over all others.
_ATTRIBUTES: Final = "* -text !eol !crlf -ident -filter !working-tree-encoding\n"
# With core.sparseCheckout git also looks at files that the index marks as not checked out, if they are there.
_CONFIG: Final = """\
[core]
\tautocrlf = false
\tlongpaths = true
\tsymlinks = true
\tfsmonitor = false
\tuntrackedCache = true
\tprotectNTFS = false
\tprotectHFS = false
\tsparseCheckout = true
[feature]
\tmanyFiles = true
[index]
\tversion = 4
\tskipHash = false
\tthreads = true
[gc]
\tauto = 0
"""
ALONE: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_DEFAULT_REF_FORMAT": "files",
}
"""Variables with which git reads no configuration but that of its repository, and takes names as they are."""
_HASH: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def session_name(session_id: str) -> str:
    """The id as a part of a ref: ids of other programs may hold what a ref cannot."""
    return (
        session_id
        if _SESSION.fullmatch(session_id)
        else hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()
    )


def is_hash(text: str) -> bool:
    """Whether a text can be the name of a git object."""
    return _HASH.fullmatch(text) is not None


class ShadowPlace(NamedTuple):
    """The location of a shadow repository, and the files that it is for."""

    git_dir: Path
    root: Path
    """The top of the files."""
    source: git.Worktree | None
    """The project's own repository."""
    store: tuple[Path, ...] = ()
    """The files or folders in which the sessions are stored."""

    @classmethod
    def of(cls, data: Path, project_id: str, root: Path, store: tuple[Path, ...] = ()) -> "ShadowPlace":
        """The place for the files below a top."""
        name = hashlib.sha1(os.fsencode(root), usedforsecurity=False).hexdigest()
        return cls(data / DIRECTORY / project_id / name, root, git.worktree(root), store)

    @property
    def stored(self) -> Path:
        """The directory of the objects that were captured."""
        return self.git_dir / STORED


class ShadowGit:
    """Runs git in a shadow repository."""

    def __init__(
        self, place: ShadowPlace, environ: Mapping[str, str], work: GitWork, *, lock: tuple[int, ...] = ()
    ) -> None:
        self.place, self.environ, self.work, self._lock = place, environ, work, lock
        work.when_slow = partial(pipes.refuse, place.root)
        places = {"GIT_DIR": str(place.git_dir), "GIT_WORK_TREE": str(place.root)}
        self._sees_all = {**git.environment(environ), **ALONE, **places}
        self._sees_own = {**self._sees_all, "GIT_OBJECT_DIRECTORY": str(place.stored)}

    @property
    def _directory(self) -> Path:
        """The directory in which git runs: the top of the files, if it still exists."""
        return self.place.root if self.place.root.is_dir() else self.place.git_dir

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other tasks and processes from writing, and clear away what a killed one left behind."""
        self.place.git_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.place.git_dir.with_suffix(".lock"), self.work, SNAPSHOT_LOCK_S) as descriptor:
            self._lock = (descriptor,)
            try:
                self.clear_index_lock()
                yield
            finally:
                self._lock = ()

    def clear_index_lock(self) -> None:
        """Remove git's lock. The process that made it is dead: a living one would hold our own lock, too."""
        with suppress(FileNotFoundError, NotADirectoryError):
            (self.place.git_dir / "index.lock").unlink()

    def read(self, *arguments: str, given: bytes | None = None, directory: Path | None = None) -> bytes:
        """The output of a command that also sees the borrowed objects. Raises GitFailed."""
        with self.reading(*arguments, has_input=given is not None, directory=directory) as process:
            return self.work.finish(process, given)

    def write(self, *arguments: str, given: bytes | None = None, directory: Path | None = None) -> bytes:
        """The output of a command that sees only what was captured, and may add to it. Raises GitFailed."""
        at = directory or self._directory
        with self.work.started(
            arguments, at, self._sees_own, keep_open=self._lock, has_input=given is not None
        ) as process:
            return self.work.finish(process, given)

    @contextmanager
    def reading(
        self, *arguments: str, has_input: bool = False, directory: Path | None = None, is_quiet: bool = False
    ) -> "Iterator[Popen[bytes]]":
        """A running command that also sees the borrowed objects."""
        with self.work.started(
            arguments,
            directory or self._directory,
            self._sees_all,
            keep_open=self._lock,
            has_input=has_input,
            is_quiet=is_quiet,
        ) as process:
            yield process

    def make(self, object_format: str) -> "ShadowGit":
        """Make an empty repository beside the place where it belongs; ``settle`` moves it there."""
        new = self.place._replace(git_dir=self.place.git_dir.with_suffix(".new"))
        remove(new.git_dir)
        new.git_dir.mkdir(mode=0o700)
        made = ShadowGit(new, self.environ, self.work, lock=self._lock)
        arguments = ("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", str(new.git_dir))
        bare = git.environment(self.environ) | ALONE
        with self.work.started(arguments, new.git_dir, bare, keep_open=self._lock) as process:
            self.work.finish(process)
        with (new.git_dir / "config").open("a") as config:
            config.write(_CONFIG)
        for folder in (
            new.git_dir / "info",
            new.git_dir / "objects" / "info",
            new.stored / "info",
            new.stored / "pack",
        ):
            folder.mkdir(parents=True, exist_ok=True)
        (new.git_dir / "info" / "attributes").write_text(_ATTRIBUTES)
        (new.git_dir / ROOT_FILE).write_bytes(os.fsencode(self.place.root))
        borrow(new)
        return made

    def settle(self, made: "ShadowGit") -> None:
        """Move a new repository into its place. After a kill before this, the unfinished one is never used."""
        made.place.git_dir.rename(self.place.git_dir)


def borrow(place: ShadowPlace) -> None:
    """Write the paths of borrowed objects, if they have changed: own captures and the project's repository.

    A directory may become another project, because a repository is made or removed there. Its earlier captures are
    included.
    """
    lines = [f"../{STORED}"]
    if place.source is not None:
        lines.append(_quoted(place.source.common / "objects"))
    for git_dir in _of_other_projects(place):
        lines.append(_quoted(git_dir / STORED))
        lines += [line for line in _alternates(git_dir) if line not in lines and line.startswith(("/", '"/'))]
    text = os.fsencode("".join(f"{line}\n" for line in lines))
    file = place.git_dir / "objects" / "info" / "alternates"
    with suppress(OSError):
        if file.read_bytes() == text:
            return
    with files.replacing(file) as new:
        new.write(text)


def has_begun(place: ShadowPlace) -> bool:
    """Whether snapshots of these files were ever taken, also for another project."""
    return place.git_dir.exists() or bool(_of_other_projects(place))


def _of_other_projects(place: ShadowPlace) -> list[Path]:
    """The shadow repositories of these files from when their directory belonged to other projects."""
    found = place.git_dir.parent.parent.glob(f"*/{place.git_dir.stem}/{STORED}")
    return sorted(stored.parent for stored in found if stored.parent.parent != place.git_dir.parent)


def _alternates(git_dir: Path) -> list[str]:
    try:
        return os.fsdecode((git_dir / "objects" / "info" / "alternates").read_bytes()).splitlines()
    except OSError:
        return []


def is_whole(place: ShadowPlace) -> bool:
    """Whether a repository has all files and folders that it was made with."""
    folders = (REFS_TOP, "objects/info", "info", f"{STORED}/pack")
    entries = ("HEAD", "config", "info/attributes")
    return all((place.git_dir / name).is_dir() for name in folders) and all(
        (place.git_dir / name).is_file() for name in entries
    )


def has_sound_index(place: ShadowPlace) -> bool:
    """Whether the index ends with the hash of its content, or there is none. Git itself does not check this."""
    try:
        content = (place.git_dir / "index").read_bytes()
    except FileNotFoundError:
        return True
    sizes = ((hashlib.sha1(usedforsecurity=False), 20), (hashlib.sha256(), 32))
    for hashed, size in sizes:
        hashed.update(content[:-size])
        if hashed.digest() == content[-size:]:
            return True
    return False


def set_aside(place: ShadowPlace) -> None:
    """Move a broken repository aside, so that people can examine it; an older broken one is removed."""
    broken = place.git_dir.with_suffix(".broken")
    remove(broken)
    place.git_dir.rename(broken)


def remove(path: Path) -> None:
    """Remove a file or a directory, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _quoted(path: Path) -> str:
    """A path as git reads it from a file of lines."""
    text = str(path)
    if "\n" not in text and not text.startswith(('"', "#")):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
