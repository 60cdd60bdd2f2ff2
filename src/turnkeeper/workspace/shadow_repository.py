"""Shadow repository of a project: captures its files, and reads captured files and their differences.

A failed capture returns None and logs one warning. A request for a tree or an object that is no longer kept raises a
refusal.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import anyio
from anyio import to_thread

from turnkeeper.core.limits import (
    DIFF_BYTES_MAX,
    SNAPSHOT_AGAIN_S,
    SNAPSHOT_COLLECT_S,
    SNAPSHOT_DIFFED_BYTES_MAX,
    SNAPSHOT_NEW_FILES_MAX,
    SNAPSHOT_S,
)
from turnkeeper.core.retention import SnapshotLimits
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import FileDiff
from turnkeeper.workspace import claims, files, kept_permissions, shadow_seed, snapshot_upkeep, tree_diff
from turnkeeper.workspace.capture import Capture, CaptureLimits
from turnkeeper.workspace.gaps import Captured
from turnkeeper.workspace.git_work import GitFailed, GitStopped, TooManyNames, in_thread, refusal
from turnkeeper.workspace.own_places import OwnPlaces
from turnkeeper.workspace.pipes import BlockedByPipe
from turnkeeper.workspace.shadow import (
    REFS,
    ShadowGit,
    ShadowPlace,
    borrow,
    has_begun,
    has_sound_index,
    is_whole,
    remove,
    session_name,
    set_aside,
)
from turnkeeper.workspace.snapshot_upkeep import Policy, Progress, Removed
from turnkeeper.workspace.tree_listing import TreeEntry, contents, listed, trees

log = logging.getLogger(__name__)

T = TypeVar("T")

_WHOLE: Final = 2**31 - 1
"""Number of context lines that includes every line of a file."""
_SOME: Final = 3
_ARGUMENTS_MAX: Final = 500
_SHARE: Final = 8
"""Divisor of the quota that limits one file: for a few versions of a larger one all snapshots would be removed."""


class NoRoom(Exception):
    """The quota of a project's snapshots is too small for a capture."""


class _Pressed(Exception):
    """Snapshots must be removed, and the sessions with a pending undo are not known yet."""


Protected: TypeAlias = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Finds the sessions among these that have a pending undo. Their snapshots are kept, regardless of the quota."""


async def no_undo_pends(sessions: Collection[str]) -> Collection[str]:
    """No sessions: for stores in which no undo can be pending."""
    return ()


class ShadowRepository:
    """Snapshots of the files below one top."""

    def __init__(
        self,
        place: ShadowPlace,
        environ: Mapping[str, str],
        now: Callable[[], int],
        protected: Protected = no_undo_pends,
    ) -> None:
        self.place, self.limits = place, SnapshotLimits()
        self._environ, self._now, self._protected = environ, now, protected
        self.own = OwnPlaces.below(place.root, (place.git_dir.parents[2], *place.store))
        """The store and the data directory, if they are among the files."""
        self._capture = Capture(self.own)
        self._one_at_a_time = anyio.Lock()
        self._warned: set[str] = set()
        self._again_at = 0
        self.failure: Exception | None = None  # The reason of the last failed capture.
        self._is_index_checked = False
        self._used_bytes: int | None = None

    @property
    def root(self) -> Path:
        """The top that all names are relative to."""
        return self.place.root

    async def capture(self, session_id: str, *, at_once: bool = False) -> str | None:
        """The tree of the files, kept for this session; None if it failed now or, unless ``at_once``, a minute ago."""
        self._again_at = 0 if at_once else self._again_at
        found = await self.take(session_id)
        return found.tree if found is not None else None

    async def take(self, session_id: str, *, with_ignored: bool = False) -> Captured | None:
        """A capture with its gaps. ``with_ignored`` also lists ignored files, which takes longer."""
        if self._now() < self._again_at:
            return None
        try:
            async with self._one_at_a_time:
                try:
                    return await self._in_thread(lambda shadow: self._captured(shadow, session_id, None, with_ignored))
                except _Pressed:
                    protected = await self.protected()
                    return await self._in_thread(
                        lambda shadow: self._captured(shadow, session_id, protected, with_ignored)
                    )
        except (GitFailed, GitStopped, TooManyNames, NoRoom, OSError) as error:
            self._again_at = self._now() + int(SNAPSHOT_AGAIN_S * 1000)
            self.failure = error
            self._warn(f"no snapshot of {str(self.root)!r}: {error}")
            return None

    async def changed(self, before: str, after: str) -> tuple[str, ...]:
        """The sorted names of the files that differ. Names that are not UTF-8 are left out, here and in ``diff``."""
        raw = await self.ask("diff-tree", "-r", "-z", "--raw", "--no-renames", *trees(before, after))
        return tuple(name for name in tree_diff.names(raw) if not self.own.has(name))

    async def diff(self, before: str, after: str, names: Sequence[str] | None = None) -> tuple[FileDiff, ...]:
        """The differences with all lines of the files, or with those near a change if that would be long."""
        found = await self._diffs(before, after, names, _WHOLE)
        if long := [name for name, one in found.items() if _is_long(one)]:
            found |= await self._diffs(before, after, long, _SOME)
        return tuple(one.but(patch="") if _is_long(one) else one for _, one in sorted(found.items()))

    async def git_diff(self, before: str, after: str, names: Sequence[str] | None = None) -> tuple[FileDiff, ...]:
        """The differences as git prints them, with some lines around each change."""
        found = await self._diffs(before, after, names, _SOME, as_git=True)
        return tuple(one.but(patch="") if _is_long(one) else one for _, one in sorted(found.items()))

    async def entries(self, tree: str, names: Sequence[str]) -> dict[str, TreeEntry]:
        """The files of a tree with these names; names that are not in it are left out."""
        if not names:
            return {}
        wanted = set(names)
        chosen = ["--", *names] if len(names) <= _ARGUMENTS_MAX else ["-r"]
        listing = await self.ask("ls-tree", "-z", "--full-tree", *trees(tree), *chosen)
        return {name: entry for name, entry in listed(listing) if name in wanted}

    async def files(self, tree: str) -> dict[str, TreeEntry]:
        """All files of a tree."""
        found = listed(await self.ask("ls-tree", "-r", "-z", "--full-tree", *trees(tree)))
        return {name: entry for name, entry in found if not self.own.has(name)}

    async def read(self, blobs: Sequence[str]) -> dict[str, bytes]:
        """The contents of blobs."""
        if not blobs:
            return {}
        wanted = list(dict.fromkeys(trees(*blobs)))
        output = await self.ask("cat-file", "--batch", given="".join(f"{blob}\n" for blob in wanted).encode())
        return dict(contents(wanted, output))

    async def ask(self, *arguments: str, given: bytes | None = None) -> bytes:
        """The output of a git command that only reads. Raises NotFound with git's words if git fails."""
        return await self._refusing(lambda shadow: shadow.read(*arguments, given=given))

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

    async def keep(self, session_id: str, blobs: Sequence[str]) -> None:
        """Keep stored blobs for this session, as its captures are kept."""
        async with self._one_at_a_time:
            await self._refusing(lambda shadow: self._kept(shadow, session_id, blobs))

    async def permissions(self) -> dict[str, int]:
        """The unusual permission bits of files, as of their newest capture."""
        return await to_thread.run_sync(kept_permissions.read, self.place)

    async def forget(self, session_id: str) -> None:
        """Stop keeping the snapshots and blobs of this session."""
        async with self._one_at_a_time:
            await self._refusing(lambda shadow: self._forgotten(shadow, session_id))

    async def protected(self) -> Collection[str]:
        """The sessions with snapshots here that have a pending undo."""
        kept = await to_thread.run_sync(snapshot_upkeep.kept_trees, self.place)
        return await self._protected({one.session for one in kept})

    async def collect(self, *, progress: Progress = lambda *_: None) -> Removed:
        """Remove objects that are no longer kept. ``progress`` is called in a thread. Captures wait, or fail."""
        protected = await self.protected()
        policy = Policy(self._now(), self.limits.retention_days, self.limits.quota_bytes, protected)
        async with self._one_at_a_time:
            self._used_bytes = None
            return await self._refusing(
                lambda shadow: snapshot_upkeep.collect(shadow, policy, progress), SNAPSHOT_COLLECT_S
            )

    def _captured(
        self, shadow: ShadowGit, session_id: str, protected: Collection[str] | None, with_ignored: bool
    ) -> Captured:
        if not files.is_enterable(self.root):  # Not a project whose files were all deleted.
            raise NotADirectoryError("it is no directory any more, or may not be entered")
        with shadow.locked():
            self._make_ready(shadow)
            try:
                found = self._taken(shadow, protected, with_ignored)
            except BlockedByPipe as blocked:
                if not self._capture.leave_out(blocked.folder):
                    raise
                self._warn(f"a folder of {str(self.root)!r} is in no snapshot: {blocked}")
                shadow.clear_index_lock()
                found = self._taken(shadow, protected, with_ignored)
            except GitFailed as error:
                self._repair(shadow, error)
                found = self._taken(shadow, protected, with_ignored)
            except TooManyNames:
                if self.place.source is None:
                    raise
                self._seed(shadow)  # After a checkout of another branch the new files are tracked.
                found = self._taken(shadow, protected, with_ignored)
            snapshot_upkeep.keep(self.place, session_id, found.tree, self._now())
        return found

    def _taken(self, shadow: ShadowGit, protected: Collection[str] | None, with_ignored: bool) -> Captured:
        limits = CaptureLimits(
            file_bytes=self.limits.file_bytes,
            tracked_file_bytes=self.limits.quota_bytes // _SHARE,
            new_files=SNAPSHOT_NEW_FILES_MAX,
            all_files=SNAPSHOT_NEW_FILES_MAX if self.place.source is None else None,
        )
        try:
            return self._capture.take(
                shadow,
                limits,
                lambda added: self._require_room(shadow, added, protected),
                with_ignored=with_ignored,
            )
        except TooManyNames as error:
            raise TooManyNames(f"it has {error} files that no repository tracks; ignore some in .gitignore") from error

    def _require_room(self, shadow: ShadowGit, added_bytes: int, protected: Collection[str] | None) -> None:
        """Make room for added files. Raises NoRoom, and _Pressed if ``protected`` is needed and None.

        Objects are stored compressed, so they take less than the estimate.
        """
        project, quota = self.place.git_dir.parent, self.limits.quota_bytes
        if not added_bytes:
            return
        if self._used_bytes is None or self._used_bytes + added_bytes > quota:
            self._used_bytes = snapshot_upkeep.disk_bytes(project)
        if added_bytes <= quota < self._used_bytes + added_bytes:
            if protected is None:
                raise _Pressed
            left = Policy(self._now(), self.limits.retention_days, max(0, quota - added_bytes), protected)
            snapshot_upkeep.make_room(shadow, left)
            self._used_bytes = snapshot_upkeep.disk_bytes(project)
        if self._used_bytes + added_bytes > quota:
            raise NoRoom(
                f"its snapshots would take more than {quota:,} bytes; run `turnkeeper snapshot gc`, ignore files in"
                " .gitignore, or set snapshot.quota_bytes"
            )
        self._used_bytes += added_bytes

    def _make_ready(self, shadow: ShadowGit) -> None:
        if os.path.lexists(self.place.git_dir) and not is_whole(self.place):
            self._set_aside("parts of it are missing")
        if not self.place.git_dir.exists():
            found = self._capture.settings(shadow)
            made = shadow.make(found.object_format)
            shadow_seed.seed(made, found)
            shadow.settle(made)
        borrow(self.place)
        if not self._is_index_checked:
            if not has_sound_index(self.place):
                self._seed(shadow)
            self._is_index_checked = True
        if not (self.place.git_dir / "index").exists():
            self._seed(shadow)

    def _repair(self, shadow: ShadowGit, error: GitFailed) -> None:
        """Rebuild the index, which is derived from the files. A repository that git does not accept is replaced."""
        try:
            shadow.read("rev-parse", "--git-dir")
        except GitFailed:
            self._set_aside(str(error))
            self._make_ready(shadow)
            return
        self._seed(shadow)

    def _seed(self, shadow: ShadowGit) -> None:
        remove(self.place.git_dir / "index")
        shadow_seed.seed(shadow, self._capture.settings(shadow))

    def _set_aside(self, reason: str) -> None:
        self._warn(f"the snapshots of {str(self.root)!r} are damaged and are begun anew: {reason}")
        set_aside(self.place)

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

    def _kept(self, shadow: ShadowGit, session_id: str, blobs: Sequence[str]) -> None:
        given = "".join(f"100644 blob {blob}\t{blob}\n" for blob in sorted(set(trees(*blobs)))).encode()
        with shadow.locked():
            tree = shadow.write("mktree", given=given).decode("ascii").strip()
            snapshot_upkeep.keep(self.place, session_id, tree, self._now())

    def _forgotten(self, shadow: ShadowGit, session_id: str) -> None:
        if self.place.git_dir.exists():
            with shadow.locked():
                shutil.rmtree(self.place.git_dir / REFS / session_name(session_id), ignore_errors=True)
                claims.forget(self.place, session_id)

    async def _diffs(
        self, before: str, after: str, names: Sequence[str] | None, context: int, *, as_git: bool = False
    ) -> dict[str, FileDiff]:
        if names is not None and not names:
            return {}
        chosen = ["--", *names] if names is not None and len(names) <= _ARGUMENTS_MAX else []
        output = await self.ask(
            *("-c", f"core.bigFileThreshold={SNAPSHOT_DIFFED_BYTES_MAX}"),
            *("diff-tree", "-r", "-z", "--raw", "--numstat", "-p", f"-U{context}"),
            *("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"),
            *trees(before, after),
            *chosen,
        )
        wanted = None if names is None else set(names)
        found = tree_diff.diffs(output, as_git=as_git)
        if wanted is not None:
            found = {name: one for name, one in found.items() if name in wanted}
        return {name: one for name, one in found.items() if not self.own.has(name)}

    async def _refusing(self, do: Callable[[ShadowGit], T], timeout_s: float = SNAPSHOT_S) -> T:
        """Run an operation for a caller. Raises NotFound with git's message, or Conflict if the disk is full."""
        if not has_begun(self.place):
            raise NotFound(f"no snapshots of {str(self.root)!r} are kept")
        try:
            return await self._in_thread(lambda shadow: do(self._opened(shadow)), timeout_s)
        except (GitFailed, GitStopped, OSError) as error:
            raise refusal(self.root, error) from error

    def _opened(self, shadow: ShadowGit) -> ShadowGit:
        """The repository. If the directory has become another project it is made now, and borrows earlier objects."""
        if not self.place.git_dir.exists():
            with shadow.locked():
                self._make_ready(shadow)
        return shadow

    async def _in_thread(self, do: Callable[[ShadowGit], T], timeout_s: float = SNAPSHOT_S) -> T:
        return await in_thread(timeout_s, lambda work: do(ShadowGit(self.place, self._environ, work)))

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning("%s", text)


def _merged(shadow: ShadowGit, contents: Sequence[bytes]) -> bytes | None:
    with _folder(shadow.place) as folder:
        for number, content in enumerate(contents):
            (folder / str(number)).write_bytes(content)
        with suppress(GitFailed):  # The exit code is the number of conflicts, or an error for binary files.
            return shadow.read("merge-file", "-p", "--quiet", "0", "1", "2", directory=folder)
    return None


@contextmanager
def _folder(place: ShadowPlace) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=place.git_dir) as folder:
        yield Path(folder)


def _is_long(one: FileDiff) -> bool:
    return one.patch is not None and len(one.patch.encode("utf-8")) > DIFF_BYTES_MAX
