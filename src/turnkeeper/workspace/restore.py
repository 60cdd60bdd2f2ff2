"""Restore: puts the files of a project back, one by one, each atomically, and only if it is still what was planned.

Doing it twice is the same as doing it once, so a restore that was cut off is simply done again.
"""

import errno
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha1, sha256
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec
from anyio import to_thread

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.restore import FileRestore, FileState
from turnkeeper.workspace.files import CheckedPath, directory_of, holding, keep_owner_and_mode

LINK: Final = "120000"
EXECUTABLE: Final = "100755"
PLAIN: Final = "100644"
OTHER: Final = "other"
"""The mode of what is no file and no link, such as a pipe, and of a file behind a link."""

CHANGED: Final = "it changed while files were put back"
GONE: Final = "the project is no longer there"
READ_ONLY: Final = "it is read-only"

READ_AT_ONCE: Final = 64
"""How many contents are in memory at once."""

Contents: TypeAlias = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]
"""Reads blobs. Those that are no longer stored are left out."""

_SHA1_DIGITS: Final = 40
_LINKLESS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system answers that has no hard links."""


class DiskFile(NamedTuple):
    """A file, or the target of a link, as it was read."""

    mode: str
    content: bytes


def read(root: Path, names: Iterable[str]) -> dict[str, DiskFile]:
    """The files of these names. Those that do not exist are left out."""
    found = {name: _look(root, name) for name in names}
    return {name: one for name, one in found.items() if one is not None}


class Restorer(msgspec.Struct, frozen=True):
    """Puts files below a root back."""

    root: Path
    contents: Contents
    keep: Path | None = None
    """A folder that stays, also if it becomes empty: the one in which the session works."""
    crash: Callable[[str], None] = lambda _: None
    """Called around each step, for tests that kill the process there."""
    permissions: Mapping[str, int] = {}
    """The permission bits of files that come back; others are made like any new file."""

    async def restore(self, files: Sequence[FileRestore]) -> dict[str, str]:
        """Bring files to their new states; the names of those that were left as they are, with the reasons.

        A file that is in its new state already is done. Folders that become empty are removed.
        """
        wanted = sorted((one for one in files if one.writes), key=lambda one: one.file)
        if not self.root.is_dir():
            return dict.fromkeys((one.file for one in wanted), GONE)
        left: dict[str, str] = {}
        # Files go before others come, and inner ones first: a file may take the place of a folder.
        for one in reversed(wanted):
            if one.to is None:
                left |= await self._restore(one, None)
        coming = [(one, one.to.blob) for one in wanted if one.to is not None]
        for begin in range(0, len(coming), READ_AT_ONCE):
            some = coming[begin : begin + READ_AT_ONCE]
            stored = await self.contents(sorted({blob for _, blob in some}))
            for one, blob in some:
                left |= await self._restore(one, stored.get(blob))
        await to_thread.run_sync(_sync_folders, self.root, {os.path.dirname(one.file) for one in wanted})
        return left

    async def _restore(self, one: FileRestore, content: bytes | None) -> dict[str, str]:
        self.crash("restore.before-file")
        try:
            path = CheckedPath.below(self.root, one.file)
        except Invalid as error:
            return {one.file: str(error)}
        async with holding(path):
            permissions = self.permissions.get(one.file) if one.now is None else None
            reason = await to_thread.run_sync(_put, path, one, content, permissions, self.crash)
        if reason is None and one.to is None:
            await to_thread.run_sync(_remove_empty_folders, self.root, one.file, self.keep)
        self.crash("restore.after-file")
        return {one.file: reason} if reason is not None else {}


def _look(root: Path, name: str) -> DiskFile | None:
    path = CheckedPath.below(root, name)
    try:
        with directory_of(path) as parent:
            return _read(path.place.name, parent)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Invalid:  # A folder on the way is a link now.
        return DiskFile(OTHER, b"")


def _read(name: str, parent: int) -> DiskFile | None:
    """What is under a name, followed nowhere; None for nothing, and for a folder, as git sees it."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return None
        if stat.S_ISLNK(found.st_mode):
            return DiskFile(LINK, os.fsencode(os.readlink(name, dir_fd=parent)))
        if not stat.S_ISREG(found.st_mode):
            return DiskFile(OTHER, b"")
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        mode = EXECUTABLE if os.fstat(descriptor).st_mode & stat.S_IXUSR else PLAIN
        return DiskFile(mode, file.read())


def _is(name: str, parent: int, state: FileState | None) -> bool:
    """Whether a file is in this state."""
    found = _read(name, parent)
    if found is None or state is None:
        return found is None and state is None
    return found.mode == state.mode and _blob(found.content, len(state.blob)) == state.blob


def _blob(content: bytes, digits: int) -> str:
    """The name that git gives to a content."""
    named = b"blob %d\0" % len(content) + content
    return (sha1 if digits == _SHA1_DIGITS else sha256)(named, usedforsecurity=False).hexdigest()


def _put(
    path: CheckedPath, one: FileRestore, content: bytes | None, permissions: int | None, crash: Callable[[str], None]
) -> str | None:
    """Bring one file to its new state; the reason if it was left as it is."""
    try:
        with directory_of(path, make=one.now is None and one.to is not None) as parent:
            return _replace(path.place.name, parent, one, content, permissions, crash)
    except FileNotFoundError:
        return None if one.to is None else CHANGED
    except Invalid as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)


def _replace(
    name: str,
    parent: int,
    one: FileRestore,
    content: bytes | None,
    permissions: int | None,
    crash: Callable[[str], None],
) -> str | None:
    temporary = _temporary(one.file)
    with suppress(FileNotFoundError):  # A process that was killed here has left it.
        os.unlink(temporary, dir_fd=parent)
    if _is(name, parent, one.to):
        return None
    if not _is(name, parent, one.now):
        return CHANGED
    if one.now is not None and one.now.mode != LINK and not os.access(name, os.W_OK, dir_fd=parent):
        return READ_ONLY
    if one.to is None:
        os.unlink(name, dir_fd=parent)
        return None
    if content is None:
        return f"its content {one.to.blob} is no longer stored"
    try:
        _write(temporary, parent, one.to.mode, content, _stat(name, parent), permissions)
        crash("restore.file-written")
        # Writing takes a while, so the file is looked at again: from here on it is one step to the new one.
        if not _is(name, parent, one.now):
            return CHANGED
        if one.now is None:
            return _place(temporary, name, parent)
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
    return None


def _place(temporary: str, name: str, parent: int) -> str | None:
    """Give a new file its name, unless there is one of that name: a link, unlike a rename, never replaces."""
    try:
        os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        return CHANGED
    except OSError as error:
        if error.errno not in _LINKLESS:
            raise
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    return None


def _write(
    name: str, parent: int, mode: str, content: bytes, before: os.stat_result | None, permissions: int | None
) -> None:
    if mode == LINK:
        os.symlink(os.fsdecode(content), name, dir_fd=parent)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    usual = 0o777 if mode == EXECUTABLE else 0o666
    # What was private is never readable for others, not even while it is written.
    descriptor = os.open(name, flags, usual if permissions is None else 0o600, dir_fd=parent)
    with open(descriptor, "wb") as file:
        file.write(content)
        if permissions is not None:
            os.fchmod(descriptor, _permissions(permissions, mode))
        if before is not None and stat.S_ISREG(before.st_mode):
            keep_owner_and_mode(descriptor, before, _permissions(stat.S_IMODE(before.st_mode), mode))
        file.flush()
        os.fsync(descriptor)


def _permissions(before: int, mode: str) -> int:
    """The permissions of a file that becomes executable, or stops being so: for those who may read it."""
    return before | (before & 0o444) >> 2 if mode == EXECUTABLE else before & ~0o111


def _temporary(file: str) -> str:
    """The name of the new file until it takes its place; always the same, so that a leftover is found."""
    return f".turnkeeper-restore-{sha1(file.encode('utf-8', 'surrogateescape'), usedforsecurity=False).hexdigest()}"


def _stat(name: str, parent: int) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    return None


def _remove_empty_folders(root: Path, file: str, keep: Path | None) -> None:
    """Remove the folders of a file that are empty now, from the inmost outwards."""
    with suppress(OSError, Invalid):
        while file := os.path.dirname(file):
            path = CheckedPath.below(root, file)
            if keep is not None and keep.is_relative_to(path):
                return
            with directory_of(path) as parent:
                os.rmdir(path.place.name, dir_fd=parent)


def _sync_folders(root: Path, folders: Iterable[str]) -> None:
    """Make names durable, before the log says that they are."""
    for folder in folders:
        with (
            suppress(OSError, Invalid),
            directory_of(CheckedPath.below(root, f"{folder}/x" if folder else "x")) as parent,
        ):
            descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
