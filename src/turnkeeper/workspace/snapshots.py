"""Snapshots: trees of a project's files, in a shadow repository that the project's own repository knows nothing of.

A capture that fails gives None and one warning in the log. A tree or an object that is asked for and no longer kept is
a refusal.
"""

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

import anyio

from turnkeeper.core.limits import (
    DIFF_BYTES_MAX,
    SNAPSHOT_AGAIN_S,
    SNAPSHOT_DIFFED_BYTES_MAX,
    SNAPSHOT_FILE_BYTES_MAX,
    SNAPSHOT_NEW_FILES_MAX,
    SNAPSHOT_S,
)
from turnkeeper.model.config import Config, SnapshotConfig
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import FileDiff
from turnkeeper.model.value import Value
from turnkeeper.workspace import paths, shadow_seed, tree_diff
from turnkeeper.workspace.capture import Capture, CaptureLimits
from turnkeeper.workspace.git_work import GitFailed, GitStopped, GitWork, TooManyNames, in_thread
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.shadow import REFS, ShadowGit, ShadowPlace, borrow, is_hash, set_aside

log = logging.getLogger(__name__)

T = TypeVar("T")

_WHOLE: Final = 2**31 - 1
"""Lines of context that take in every line of a file."""
_SOME: Final = 3
_ARGUMENTS_MAX: Final = 500
_SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class TreeEntry(Value):
    """A file in a snapshot."""

    mode: str
    """``100644``, ``100755`` for an executable file, ``120000`` for a link."""
    blob: str


class Snapshots:
    """The shadow repositories of one process. ``now`` is in milliseconds."""

    def __init__(self, environ: Mapping[str, str], now: Callable[[], int]) -> None:
        self._environ, self._now = environ, now
        self._known: dict[Path, ShadowRepository] = {}
        self._warned: set[str] = set()

    async def of(self, place: ProjectPlace, config: Config) -> "ShadowRepository | None":
        """The shadow repository of a project; None if snapshots are switched off, or impossible there."""
        settings = _settings(config)
        if settings is None:
            return None
        root = place.top
        reason = self._reason_against(root)
        if reason is not None:
            self._warn(f"no snapshots of {str(root)!r}: {reason}")
            return None
        shadow = ShadowPlace.of(paths.data(self._environ), place.id, root)
        known = self._known.get(shadow.git_dir)
        if known is None or known.place.source != shadow.source:
            known = self._known[shadow.git_dir] = ShadowRepository(shadow, self._environ, self._now)
        known.settings = settings
        return known

    def _reason_against(self, root: Path) -> str | None:
        home = self._environ.get("HOME")
        try:
            paths.data(self._environ)
        except ValueError as error:
            return str(error)
        if shutil.which("git", path=self._environ.get("PATH")) is None:
            return "git is not installed; without it changes of files are neither shown nor undone"
        if root == Path(root.anchor) or (home and Path(os.path.realpath(home)).is_relative_to(root)):
            return "it is, or contains, the home directory; start in the directory of a project"
        return None

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning("%s", text)


def _settings(config: Config) -> SnapshotConfig | None:
    """The settings of snapshots; None if they are switched off."""
    if config.snapshot is False:
        return None
    return config.snapshot if isinstance(config.snapshot, SnapshotConfig) else SnapshotConfig()


class ShadowRepository:
    """Snapshots of the files below one top."""

    def __init__(self, place: ShadowPlace, environ: Mapping[str, str], now: Callable[[], int]) -> None:
        self.place, self.settings = place, SnapshotConfig()
        self._environ, self._now = environ, now
        self._capture = Capture(_own_name(place))
        self._one_at_a_time = anyio.Lock()
        self._warned: set[str] = set()
        self._again_at = 0

    @property
    def root(self) -> Path:
        """The top that all names are relative to."""
        return self.place.root

    async def capture(self, session_id: str) -> str | None:
        """The tree of the files now, kept for this session; None if that is not possible, which is warned of once."""
        if self._now() < self._again_at:
            return None
        try:
            async with self._one_at_a_time:
                return await self._in_thread(lambda shadow: self._captured(shadow, session_id))
        except (GitFailed, GitStopped, TooManyNames, OSError) as error:
            self._again_at = self._now() + int(SNAPSHOT_AGAIN_S * 1000)
            self._warn(f"no snapshot of {str(self.root)!r}: {error}")
            return None

    async def changed(self, before: str, after: str) -> tuple[str, ...]:
        """The sorted names of the files that differ. Names that are not UTF-8 are left out, here and in ``diff``."""
        raw = await self._asked("diff-tree", "-r", "-z", "--raw", "--no-renames", *_trees(before, after))
        return tree_diff.names(raw)

    async def diff(self, before: str, after: str, names: Sequence[str] | None = None) -> tuple[FileDiff, ...]:
        """The differences with all lines of the files, or with those near a change if that would be long."""
        found = await self._diffs(before, after, names, _WHOLE)
        if long := [name for name, one in found.items() if _is_long(one)]:
            found |= await self._diffs(before, after, long, _SOME)
        return tuple(one.but(patch="") if _is_long(one) else one for _, one in sorted(found.items()))

    async def entries(self, tree: str, names: Sequence[str]) -> dict[str, TreeEntry]:
        """The files of a tree with these names; names that are not in it are left out."""
        if not names:
            return {}
        wanted = set(names)
        chosen = ["--", *names] if len(names) <= _ARGUMENTS_MAX else ["-r"]
        listing = await self._asked("ls-tree", "-z", "--full-tree", *_trees(tree), *chosen)
        return {name: entry for name, entry in _listed(listing) if name in wanted}

    async def files(self, tree: str) -> dict[str, TreeEntry]:
        """All files of a tree."""
        return dict(_listed(await self._asked("ls-tree", "-r", "-z", "--full-tree", *_trees(tree))))

    async def read(self, blobs: Sequence[str]) -> dict[str, bytes]:
        """The contents of blobs."""
        if not blobs:
            return {}
        wanted = list(dict.fromkeys(_trees(*blobs)))
        output = await self._asked("cat-file", "--batch", given="".join(f"{blob}\n" for blob in wanted).encode())
        return dict(_contents(wanted, output))

    async def store(self, contents: Sequence[bytes]) -> list[str]:
        """Store contents as blobs. They stay for an hour unless a capture has them, too."""
        if not contents:
            return []
        async with self._one_at_a_time:
            return await self._refusing(lambda shadow: self._stored(shadow, contents))

    async def merge(self, base: str, ours: str, theirs: str) -> str | None:
        """The blob with both changes of a blob; None if they conflict, or one of them is binary."""
        found = await self.read([base, ours, theirs])
        merged = await self._refusing(lambda shadow: _merged(shadow, [found[one] for one in (ours, base, theirs)]))
        return None if merged is None else (await self.store([merged]))[0]

    async def forget(self, session_id: str) -> None:
        """Keep nothing for this session any longer."""
        async with self._one_at_a_time:
            await self._refusing(lambda shadow: self._forgotten(shadow, session_id))

    def _captured(self, shadow: ShadowGit, session_id: str) -> str:
        with shadow.locked():
            self._make_ready(shadow)
            try:
                tree = self._tree(shadow)
            except GitFailed as error:
                self._repair(shadow, error)
                tree = self._tree(shadow)
            _keep(self.place, session_id, tree, self._now())
        return tree

    def _tree(self, shadow: ShadowGit) -> str:
        new_max = SNAPSHOT_NEW_FILES_MAX
        size = self.settings.max_file_bytes
        limits = CaptureLimits(
            file_bytes=SNAPSHOT_FILE_BYTES_MAX if size is None else size,
            new_files=new_max,
            all_files=new_max if self.place.source is None else None,
        )
        try:
            return self._capture.tree(shadow, limits, lambda added: None)
        except TooManyNames as error:
            raise TooManyNames(f"it has {error} files that no repository tracks; ignore some in .gitignore") from error

    def _make_ready(self, shadow: ShadowGit) -> None:
        if not self.place.git_dir.exists():
            found = self._capture.settings(shadow)
            made = shadow.make(found.object_format)
            shadow_seed.seed(made, found)
            shadow.settle(made)
        borrow(self.place)

    def _repair(self, shadow: ShadowGit, error: GitFailed) -> None:
        """Make the index anew, and the whole repository if git does not take it for one."""
        self._warn(f"the snapshot repository of {str(self.root)!r} is made anew: {error}")
        try:
            shadow.read("rev-parse", "--git-dir")
        except GitFailed:
            set_aside(self.place)
            self._make_ready(shadow)
            return
        (self.place.git_dir / "index").unlink(missing_ok=True)
        shadow_seed.seed(shadow, self._capture.settings(shadow))

    def _stored(self, shadow: ShadowGit, contents: Sequence[bytes]) -> list[str]:
        with shadow.locked(), _folder(self.place) as folder:
            for number, content in enumerate(contents):
                (folder / str(number)).write_bytes(content)
            given = "".join(f"{number}\n" for number in range(len(contents))).encode()
            return (
                shadow.write("hash-object", "-w", "--no-filters", "--stdin-paths", given=given, directory=folder)
                .decode("ascii")
                .split()
            )

    def _forgotten(self, shadow: ShadowGit, session_id: str) -> None:
        if self.place.git_dir.exists():
            with shadow.locked():
                shutil.rmtree(self.place.git_dir / REFS / session_name(session_id), ignore_errors=True)

    async def _diffs(self, before: str, after: str, names: Sequence[str] | None, context: int) -> dict[str, FileDiff]:
        if names is not None and not names:
            return {}
        chosen = ["--", *names] if names is not None and len(names) <= _ARGUMENTS_MAX else []
        output = await self._asked(
            *("-c", f"core.bigFileThreshold={SNAPSHOT_DIFFED_BYTES_MAX}"),
            *("diff-tree", "-r", "-z", "--raw", "--numstat", "-p", f"-U{context}"),
            *("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"),
            *_trees(before, after),
            *chosen,
        )
        wanted = None if names is None else set(names)
        return {name: one for name, one in tree_diff.diffs(output).items() if wanted is None or name in wanted}

    async def _asked(self, *arguments: str, given: bytes | None = None) -> bytes:
        return await self._refusing(lambda shadow: shadow.read(*arguments, given=given))

    async def _refusing(self, do: Callable[[ShadowGit], T]) -> T:
        """Do what a caller asked for. Raises NotFound with git's words if git cannot."""
        if not self.place.git_dir.exists():
            raise NotFound(f"no snapshots of {str(self.root)!r} are kept")
        try:
            return await self._in_thread(do)
        except (GitFailed, GitStopped, OSError) as error:
            raise NotFound(f"a snapshot of {str(self.root)!r} cannot be read or is no longer kept: {error}") from error

    async def _in_thread(self, do: Callable[[ShadowGit], T]) -> T:
        return await in_thread(SNAPSHOT_S, lambda work: do(self._git(work)))

    def _git(self, work: GitWork) -> ShadowGit:
        return ShadowGit(self.place, self._environ, work)

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning("%s", text)


def session_name(session_id: str) -> str:
    """The id as a part of a ref: ids of other programs may hold what a ref cannot."""
    return session_id if _SESSION.fullmatch(session_id) else sha256(session_id.encode("utf-8", "replace")).hexdigest()


def _keep(place: ShadowPlace, session_id: str, tree: str, now: int) -> None:
    """Protect a tree by a ref. The time of its file says when the session last captured it."""
    folder = place.git_dir / REFS / session_name(session_id)
    folder.mkdir(parents=True, exist_ok=True)
    file, new = folder / tree, place.git_dir / "ref.new"
    if not file.exists():
        new.write_text(f"{tree}\n")
        new.rename(file)  # A ref that a kill cut short would make git refuse the whole repository.
    os.utime(file, (now / 1000, now / 1000))


def _trees(*hashes: str) -> tuple[str, ...]:
    """The hashes, if they are such; they become arguments of git."""
    for one in hashes:
        if not is_hash(one):
            raise NotFound(f"{one!r} is not the hash of a snapshot or a file in one")
    return hashes


def _listed(listing: bytes) -> Iterator[tuple[str, TreeEntry]]:
    for line in filter(None, listing.split(b"\0")):
        facts, _, name = line.partition(b"\t")
        mode, kind, blob = facts.decode("ascii").split(" ")
        if kind == "blob":
            yield os.fsdecode(name), TreeEntry(mode=mode, blob=blob)


def _contents(blobs: Sequence[str], output: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    for blob in blobs:
        end = output.index(b"\n", at)
        head = output[at:end].split(b" ")
        if len(head) != 3:
            raise NotFound(f"the content {blob} is no longer kept")
        at = end + 1 + int(head[2])
        yield blob, output[end + 1 : at]
        at += 1


def _merged(shadow: ShadowGit, contents: Sequence[bytes]) -> bytes | None:
    with _folder(shadow.place) as folder:
        for number, content in enumerate(contents):
            (folder / str(number)).write_bytes(content)
        with suppress(GitFailed):  # It ends with the number of conflicts, or with an error for binary files.
            return shadow.read("merge-file", "-p", "--quiet", "0", "1", "2", directory=folder)
    return None


@contextmanager
def _folder(place: ShadowPlace) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=place.git_dir) as folder:
        yield Path(folder)


def _own_name(place: ShadowPlace) -> bytes | None:
    """The data directory of this program relative to the files, if it is among them."""
    data = place.git_dir.parents[2]
    return os.fsencode(data.relative_to(place.root)) if data.is_relative_to(place.root) else None


def _is_long(one: FileDiff) -> bool:
    return one.patch is not None and len(one.patch.encode("utf-8")) > DIFF_BYTES_MAX
