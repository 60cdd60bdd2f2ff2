"""Capture: brings the index of a shadow repository up to date with the files, and makes a tree of it.

Only names that git reports as changed or new are looked at. Left out are own places, ignored files, large files that
the project's repository does not track, nested repositories, and what is neither a file nor a link. A file that was
captured before and cannot be captured now (it is unreadable, or has become too large) stays in the tree as it was.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from subprocess import Popen
from typing import Final, NamedTuple

from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import file_times, files, kept_permissions, shadow_seed
from turnkeeper.workspace.gaps import ANYTHING, Captured, Gaps, Stamp, folders, stamps
from turnkeeper.workspace.git_work import GitFailed, TooManyNames
from turnkeeper.workspace.own_places import OwnPlaces
from turnkeeper.workspace.shadow import ShadowGit
from turnkeeper.workspace.shadow_seed import SourceSettings

_HALVINGS_MAX: Final = 64
"""Maximum number of times that names are halved to find those that git cannot add."""
_ARGUMENTS_MAX: Final = 500
_OBJECT_BYTES: Final = 24 * 1024
"""Estimated disk space of an object, its directory, the trees above it and their ref, without its content."""
_IGNORED: Final = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
_IGNORED_MAX: Final = 100_000
"""Maximum number of ignored names that are listed. If there are more, any new file may have been ignored."""
_INODE: Final = re.compile(rb"^  dev: (\d+)\tino: (\d+)$", re.MULTILINE)
_REFUSED: Final = b"Permission denied"
"""The words of git, which runs with LC_ALL=C, for a file that it may not look at."""
_IGNORE_FILE: Final = b".gitignore"
_PENDING: Final = b"# The files that were captured are not yet checked against these rules.\n"


class CaptureLimits(NamedTuple):
    """Limits of a capture."""

    file_bytes: int
    tracked_file_bytes: int
    """Maximum size of a file that the project's repository tracks."""
    new_files: int
    all_files: int | None
    """Maximum number of files in the index; None for no limit."""


class _Scan(NamedTuple):
    """The result of a scan of the files by git."""

    changed: list[bytes]
    """Names in the index whose files changed."""
    new: list[bytes]
    ignored: frozenset[bytes]
    closed: frozenset[bytes]
    """Folders with captured files that cannot be entered."""


class _Plan(NamedTuple):
    """The changes to the index that a capture makes."""

    add: list[bytes]
    remove: set[bytes]
    modes: dict[bytes, int]
    """The modes of the added regular files."""
    bytes: int
    """Estimated disk space of the added files."""
    gaps: Gaps


class Capture:
    """Captures the files of one place, and caches answers of git that are still valid."""

    def __init__(self, own: OwnPlaces) -> None:
        self._own = own
        self._tree: tuple[Stamp, str] | None = None
        self._settings: tuple[list[tuple[int, ...] | None], SourceSettings] | None = None
        self._is_tracked: dict[bytes, bool] = {}
        self._source_index: tuple[int, ...] | None = None
        self._left_out: set[bytes] = set()

    def leave_out(self, folder: bytes) -> bool:
        """Exclude a folder from further captures; False for the top, and for a folder that is already excluded."""
        is_new = bool(folder) and folder not in self._left_out
        self._left_out.add(folder)
        return is_new

    def settings(self, shadow: ShadowGit) -> SourceSettings:
        """The settings of the project's repository, read again only after their files have changed."""
        stamps = shadow_seed.stamps(shadow.place, shadow.environ)
        if self._settings is None or self._settings[0] != stamps:
            self._settings = stamps, shadow_seed.settings(shadow.place, shadow.environ, shadow.work)
        return self._settings[1]

    def take(
        self,
        shadow: ShadowGit,
        limits: CaptureLimits,
        require_room: Callable[[int], None],
        *,
        with_ignored: bool = False,
    ) -> Captured:
        """The tree of the current files, and its gaps; ``with_ignored`` also lists the ignored files.

        ``require_room`` is called with the bytes to add, and raises if they are too many. Raises GitFailed, GitStopped,
        TooManyNames and OSError.
        """
        is_pending = self._write_rules(shadow)
        changed, new, left_out, closed = _scan(shadow, limits, with_ignored)
        ignored: set[bytes] = set()
        if is_pending or any(name.rpartition(b"/")[2] == _IGNORE_FILE for name in (*changed, *new)):
            ignored = self._ignored(shadow)
        ignored |= self._captured_own(shadow)
        plan = self._plan(shadow, [name for name in changed if name not in ignored], new, limits)
        gaps = plan.gaps._replace(ignored=left_out | ignored, closed=closed)
        gone = _inodes(shadow, plan.remove) if new else frozenset[tuple[int, int]]()
        # Removals come first: after a kill in between, the rules or the file with them still count as new. The removed
        # files also make room for the others.
        _update(shadow, sorted(plan.remove | ignored), "--force-remove")
        require_room(plan.bytes)
        stage(shadow, plan.add)
        kept_permissions.note(shadow.place, plan.modes)
        if is_pending:
            _rules_file(shadow, self._rules(shadow))
        return Captured(self._written(shadow), gaps, file_times.moment(), gone)

    def _written(self, shadow: ShadowGit) -> str:
        index = shadow.place.git_dir / "index"
        if self._tree is None or self._tree[0] is None or self._tree[0] != files.stamp(index):
            # Borrowed objects are not looked for: they were there when the index was seeded.
            tree = shadow.write("write-tree", "--missing-ok").decode("ascii").strip()
            self._tree = files.stamp(index), tree
        return self._tree[1]

    def _rules(self, shadow: ShadowGit) -> bytes:
        rules = shadow_seed.ignore_rules(shadow.place, self.settings(shadow))
        own = [b"/" + _escaped(name) + b"\n" for name in self._own.names]
        return rules + b"".join(
            [*own, *(b"/" + _escaped(one) + b"/\n" for one in sorted(filter(None, self._left_out)))]
        )

    def _write_rules(self, shadow: ShadowGit) -> bool:
        """Update the ignore rules; returns whether captured files may be ignored now."""
        rules = self._rules(shadow)
        try:
            if files.read_bytes(shadow.place.git_dir / "info" / "exclude", len(rules)) == rules:
                return False
        except (OSError, Invalid):
            pass
        _rules_file(shadow, rules + _PENDING)
        return True

    def _ignored(self, shadow: ShadowGit) -> set[bytes]:
        """The captured files that are ignored and that the project's repository does not track."""
        listed = ("--cached", "--ignored", "--exclude-standard")
        found = set(filter(None, shadow.read("ls-files", "-z", *listed).split(b"\0")))
        return found - shadow_seed.tracked(shadow.place, shadow.environ, shadow.work, *listed) if found else found

    def _captured_own(self, shadow: ShadowGit) -> set[bytes]:
        """Own files in the index: the project's repository tracks them, or an earlier program version added them."""
        if not self._own.names:
            return set()
        listing = shadow.read("ls-files", "-z", "--cached", "--", *map(os.fsdecode, self._own.names))
        return set(filter(None, listing.split(b"\0")))

    def _plan(self, shadow: ShadowGit, changed: list[bytes], new: list[bytes], limits: CaptureLimits) -> _Plan:
        root = os.fsencode(shadow.place.root)
        add: list[bytes] = []
        remove: set[bytes] = set()
        large: dict[bytes, int] = {}
        stale: set[bytes] = set()
        left_out: set[bytes] = set()
        modes: dict[bytes, int] = {}
        total = 0
        for name in changed:
            size = _size(os.path.join(root, name), name, modes)
            if size is None or _is_beyond_link(root, name):
                remove.add(name)
            elif size > limits.file_bytes:
                large[name] = size
            elif size >= 0:
                add.append(name)
                total += size + _OBJECT_BYTES
            else:
                stale.add(name)
        for name in self._tracked(shadow, [one for one, size in large.items() if size <= limits.tracked_file_bytes]):
            add.append(name)
            total += large.pop(name) + _OBJECT_BYTES
        for name in new:  # A nested repository is one name here, that of its directory.
            size = None if self._own.has(name) else _size(os.path.join(root, name), name, modes)
            if size is None:
                continue
            if 0 <= size <= limits.file_bytes:
                add.append(name)
                total += size + _OBJECT_BYTES
            else:
                left_out.add(name)
        gaps = Gaps(
            files=stamps(root, left_out),
            stale=stamps(root, stale | large.keys()),
            nested=frozenset(name for name in new if name.endswith(b"/") and not self._own.has(name)),
        )
        return _Plan(add, remove, {name: modes[name] for name in add if name in modes}, total, gaps)

    def _tracked(self, shadow: ShadowGit, names: list[bytes]) -> list[bytes]:
        """The names among these that the project's repository tracks."""
        source = shadow.place.source
        if source is None or not names:
            return []
        stamp = files.stamp(source.git_dir / "index")
        if stamp != self._source_index:
            self._is_tracked, self._source_index = {}, stamp
        if unknown := [name for name in names if name not in self._is_tracked]:
            asked = ["--", *map(os.fsdecode, unknown)] if len(unknown) <= _ARGUMENTS_MAX else []
            found = shadow_seed.tracked(shadow.place, shadow.environ, shadow.work, *asked)
            self._is_tracked |= {name: name in found for name in unknown}
        return [name for name in names if self._is_tracked[name]]


def _scan(shadow: ShadowGit, limits: CaptureLimits, with_ignored: bool) -> _Scan:
    """The changed names of the index, the new names and the ignored names. The git commands run concurrently."""
    new_max = limits.new_files
    if limits.all_files is not None:
        new_max = min(new_max, max(0, limits.all_files - _count(shadow)))
    with (
        shadow.reading("diff-files", "-z", "--name-only", "--ignore-submodules=all") as differing,
        shadow.reading("ls-files", "-z", "--others", "--exclude-standard", is_quiet=True) as others,
        shadow.reading(*_IGNORED, is_quiet=True) if with_ignored else nullcontext() as hidden,
    ):
        new = shadow.work.names(others, new_max)
        changed, warnings = shadow.work.ended(differing)
        ignored = _ignored_names(shadow, hidden) if hidden is not None else ANYTHING
    # Git reports no change of a file in a directory that it cannot enter, so these directories are listed here.
    closed = _closed(shadow) if _REFUSED in warnings else frozenset[bytes]()
    return _Scan(list(dict.fromkeys(filter(None, changed.split(b"\0")))), new, ignored, closed)


def _closed(shadow: ShadowGit) -> frozenset[bytes]:
    """The folders with captured files that cannot be entered, without those below them."""
    root, found = os.fsencode(shadow.place.root), set[bytes]()
    names = shadow.read("ls-files", "-z", "--cached").split(b"\0")
    for folder in sorted({folder for name in names for folder in folders(name) if folder}):
        if found.isdisjoint(folders(folder.removesuffix(b"/"))):
            try:
                os.lstat(os.path.join(root, folder, b"."))
            except PermissionError:
                found.add(folder)
            except OSError:
                continue
    return frozenset(found)


def _ignored_names(shadow: ShadowGit, hidden: "Popen[bytes]") -> frozenset[bytes]:
    try:
        return frozenset(shadow.work.names(hidden, _IGNORED_MAX))
    except TooManyNames:
        return ANYTHING


def _inodes(shadow: ShadowGit, names: set[bytes]) -> frozenset[tuple[int, int]]:
    """The devices and inodes of captured files: a renamed file still has those of its old name."""
    if not names:
        return frozenset()
    asked = ["--", *map(os.fsdecode, sorted(names))] if len(names) <= _ARGUMENTS_MAX else []
    listing = shadow.read("ls-files", "-z", "--debug", *asked)
    return frozenset((int(device), int(inode)) for device, inode in _INODE.findall(listing))


def _count(shadow: ShadowGit) -> int:
    """The number of files in the index: the third word of its header."""
    try:
        with (shadow.place.git_dir / "index").open("rb") as index:
            return int.from_bytes(index.read(12)[8:], "big")
    except OSError:
        return 0


def _size(path: bytes, name: bytes, modes: dict[bytes, int]) -> int | None:
    """The size of a file or link; -1 if it exists and cannot be captured; None if there is no file or link.

    The mode of a file is put into ``modes``.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return -1
    if stat.S_ISLNK(found.st_mode):
        return found.st_size
    if stat.S_ISREG(found.st_mode):
        modes[name] = found.st_mode
        return found.st_size if os.access(path, os.R_OK) else -1
    return None


def _is_beyond_link(root: bytes, name: bytes) -> bool:
    """Whether a directory on the way to a file is a link: the file is then not below the root any more."""
    folder = os.path.dirname(name)
    while folder:
        if os.path.islink(os.path.join(root, folder)):
            return True
        folder = os.path.dirname(folder)
    return False


def stage(shadow: ShadowGit, names: list[bytes]) -> None:
    """Add files to the index as they are now. Names that git cannot add are left out."""
    waiting, halvings, left_out = [names], 0, 0
    while waiting:
        some = waiting.pop()
        try:
            _update(shadow, some, "--add", "--remove")
        except GitFailed:
            # Git adds all or none. A file was replaced since it was looked at, or has a name that git does not take.
            halvings += 1
            left_out += len(some) == 1
            if halvings > _HALVINGS_MAX or left_out == len(names):
                raise
            if len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]


def _update(shadow: ShadowGit, names: Iterable[bytes], *how: str) -> None:
    if given := b"".join(name + b"\0" for name in names):
        shadow.write("update-index", "-z", *how, "--stdin", given=given)


def _escaped(name: bytes) -> bytes:
    """A name as a pattern of an ignore file."""
    return b"".join(
        b"\\" + name[at : at + 1] if name[at] in b"\\*?[ " else name[at : at + 1] for at in range(len(name))
    )


def _rules_file(shadow: ShadowGit, rules: bytes) -> None:
    with files.replacing(shadow.place.git_dir / "info" / "exclude") as file:
        file.write(rules)
