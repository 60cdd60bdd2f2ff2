"""Restored file: one file on its way to its new state, in steps that a batch of files takes together.

``prepare`` looks at the file and writes the new one beside it. ``place`` puts the new one in its place and keeps the
old one under a second name. ``settle`` looks at the old one again: if somebody has written to it since it was read, it
is put back.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import sha1, sha256
from typing import Final, NamedTuple

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.restore import OTHER_MODE, FileRestore, FileState
from turnkeeper.workspace.files import keep_owner_and_mode

LINK: Final = "120000"
EXECUTABLE: Final = "100755"
PLAIN: Final = "100644"

CHANGED: Final = "it changed while files were put back"
READ_ONLY: Final = "it is read-only"
FOLDER: Final = "there is a folder with other files in its place"
BEHIND_A_LINK: Final = "a folder on its way is a link now"

_SEARCH: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKLESS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system answers that has no hard links."""
_SHA1_DIGITS: Final = 40
_CHUNK_BYTES: Final = 1 << 20
_SETTLED_NS: Final = 1_000_000_000
"""A file that was written before this shows by its time that it was written again."""


class Stamp(NamedTuple):
    """What changes when a file is written or replaced."""

    device: int
    inode: int
    size: int
    written_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Stamp":
        """The stamp of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Seen(NamedTuple):
    """A file as it was read. ``stamp`` is None while somebody writes it."""

    state: FileState
    stamp: Stamp | None


class RestoredFile:
    """One file of a batch. ``reason`` says why it is left as it is; ``is_over``: nothing is left to do."""

    def __init__(
        self, one: FileRestore, content: bytes | None, permissions: int | None, crash: Callable[[str], None]
    ) -> None:
        self.one, self.is_over = one, False
        self.reason: str | None = None
        self.new: int | None = None
        """The descriptor of the new file, until it is durable."""
        self._content, self._permissions, self._crash = content, permissions, crash
        self._name = os.path.basename(one.file)
        self._temporary, self._aside = second_names(one.file)
        self._seen: Seen | None = None
        self._is_aside = False
        self._closing = ExitStack()
        self._parent = -1

    def prepare(self, root: int) -> None:
        """Look whether the file is what was planned, and write the new one beside it."""
        one = self.one
        self._crash("restore.before-file")
        folder = os.path.dirname(one.file)
        try:
            self._parent = open_folder(root, folder, make=one.now is None and one.to is not None)
        except (FileNotFoundError, NotADirectoryError):
            self._end(None if one.to is None else CHANGED)
            return
        self._closing.callback(os.close, self._parent)
        self._clear()
        if self.is_over:
            return
        self._seen = _seen(self._name, self._parent, one)
        found = self._seen.state if self._seen is not None else None
        if found == one.to:
            self._end(None)
        elif found != one.now or (self._seen is not None and self._seen.stamp is None):
            self._end(CHANGED)
        elif found is not None and found.mode != LINK and not os.access(self._name, os.W_OK, dir_fd=self._parent):
            self._end(READ_ONLY)
        elif one.to is not None and self._content is None:
            self._end(f"its content {one.to.blob} is no longer stored")
        elif one.to is not None and self._content is not None:
            self._write(one.to.mode, self._content)

    def place(self) -> None:
        """Give the new file its name, and the old one a second name until ``settle``."""
        if self.one.to is not None:
            self._crash("restore.file-written")
        if self.one.to is None:
            self._take_away()
        elif self.one.now is None:
            self._add()
        else:
            self._replace()
        self._crash("restore.after-file")

    def settle(self) -> None:
        """Put the old file back if somebody has written to it since it was read; else remove it."""
        if not self._is_aside:
            return
        if self._is_untouched(self._aside):
            os.unlink(self._aside, dir_fd=self._parent)
        else:
            self._put_back()
        self._is_aside = False

    def fail(self, error: OSError | Invalid) -> None:
        """The file could not be written."""
        words = error.strerror if isinstance(error, OSError) else None
        self._end(words or str(error))

    def close(self) -> None:
        """Remove what was written beside the file and not used."""
        self.close_new()
        if self._parent >= 0:
            with suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._parent)
        self._closing.close()

    def close_new(self) -> None:
        """The new file is durable."""
        if self.new is not None:
            os.close(self.new)
            self.new = None

    def _end(self, reason: str | None) -> None:
        self.reason, self.is_over = reason, True

    def _clear(self) -> None:
        """Remove what a process that was killed here has left beside the file."""
        with suppress(FileNotFoundError):
            os.unlink(self._temporary, dir_fd=self._parent)
        aside = _seen(self._aside, self._parent, self.one)
        if aside is None:
            return
        if aside.state in (self.one.now, self.one.to) or self._is_same():
            os.unlink(self._aside, dir_fd=self._parent)
            return
        # Somebody wrote to the old file when it was about to go.
        found = _seen(self._name, self._parent, self.one)
        if (found.state if found is not None else None) == self.one.to:
            self._put_back()
        else:
            self._end(CHANGED)

    def _write(self, mode: str, content: bytes) -> None:
        if mode == LINK:
            os.symlink(os.fsdecode(content), self._temporary, dir_fd=self._parent)
            return
        before = _stat(self._name, self._parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        usual = 0o777 if mode == EXECUTABLE else 0o666
        # What was private is never readable for others, not even while it is written.
        self.new = os.open(self._temporary, flags, usual if self._permissions is None else 0o600, dir_fd=self._parent)
        with open(self.new, "wb", closefd=False) as file:
            file.write(content)
        if self._permissions is not None:
            os.fchmod(self.new, _permissions(self._permissions, mode))
        if before is not None and stat.S_ISREG(before.st_mode):
            keep_owner_and_mode(self.new, before, _permissions(stat.S_IMODE(before.st_mode), mode))

    def _take_away(self) -> None:
        os.rename(self._name, self._aside, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self._is_aside = True
        self._crash("restore.file-replaced")

    def _add(self) -> None:
        """Give a new file its name, unless there is one of that name: a link, unlike a rename, never replaces."""
        found = _stat(self._name, self._parent)
        try:
            if found is not None and stat.S_ISDIR(found.st_mode):
                os.rmdir(self._name, dir_fd=self._parent)
            self._link(self._temporary, self._name)
        except FileExistsError:
            self._end(CHANGED)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                self._end(FOLDER)
            elif error.errno in _LINKLESS:
                os.rename(self._temporary, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
            else:
                raise

    def _replace(self) -> None:
        try:
            self._link(self._name, self._aside)
            self._is_aside = True
        except OSError as error:
            if error.errno not in _LINKLESS:
                raise
        self._crash("restore.file-linked")
        if not self._is_untouched(self._name):
            self._end(CHANGED)
            if self._is_aside:
                os.unlink(self._aside, dir_fd=self._parent)
                self._is_aside = False
            return
        os.replace(self._temporary, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self._crash("restore.file-replaced")

    def _put_back(self) -> None:
        self._end(CHANGED)
        if self.one.to is not None:
            os.replace(self._aside, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
            with suppress(FileNotFoundError):  # Both stay if they are two names of one file.
                os.unlink(self._aside, dir_fd=self._parent)
            return
        # Where somebody has made a file of that name meanwhile, the old one stays under its second name.
        with suppress(FileExistsError):
            try:
                self._link(self._aside, self._name)
            except OSError as error:
                if error.errno not in _LINKLESS:
                    raise
                os.rename(self._aside, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
                return
            os.unlink(self._aside, dir_fd=self._parent)

    def _link(self, name: str, second: str) -> None:
        os.link(name, second, src_dir_fd=self._parent, dst_dir_fd=self._parent, follow_symlinks=False)

    def _is_same(self) -> bool:
        """Whether the old file still is in its place."""
        found, aside = _stat(self._name, self._parent), _stat(self._aside, self._parent)
        return found is not None and aside is not None and os.path.samestat(found, aside)

    def _is_untouched(self, name: str) -> bool:
        """Whether a file is the one that was read, and nobody has written to it since."""
        found = _stat(name, self._parent)
        assert self._seen is not None
        assert self._seen.stamp is not None
        if found is None or Stamp.of(found) != self._seen.stamp:
            return False
        # The clock of a file system moves in steps: two writes in one step have the same time.
        if time.time_ns() - found.st_mtime_ns > _SETTLED_NS:
            return True
        again = _seen(name, self._parent, self.one)
        return again is not None and again.state == self.one.now


def second_names(file: str) -> tuple[str, str]:
    """The names of the new and of the old file meanwhile; always the same, so that leftovers are found."""
    digest = sha1(file.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
    return f".turnkeeper-restore-{digest}", f".turnkeeper-restore-{digest}-old"


def open_folder(root: int, folder: str, *, make: bool = False) -> int:
    """A descriptor of a folder below another one, reached without following a link. Raises Invalid for a link."""
    descriptor = os.dup(root)
    try:
        for name in filter(None, folder.split("/")):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            try:
                below = os.open(name, _SEARCH, dir_fd=descriptor)
            except OSError as error:
                found = _stat(name, descriptor) if error.errno in (errno.ELOOP, errno.ENOTDIR) else None
                if found is not None and stat.S_ISLNK(found.st_mode):
                    raise Invalid(BEHIND_A_LINK) from error
                raise
            os.close(descriptor)
            descriptor = below
        return descriptor
    except BaseException:
        os.close(descriptor)
        raise


def open_root(root: str) -> int:
    """A descriptor of the top of a project. It stays the same directory, also if that is moved meanwhile."""
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def blob_name(content: bytes, digits: int) -> str:
    """The name that git gives to a content."""
    named = b"blob %d\0" % len(content) + content
    return (sha1 if digits == _SHA1_DIGITS else sha256)(named, usedforsecurity=False).hexdigest()


def _seen(name: str, parent: int, one: FileRestore) -> Seen | None:
    """What is under a name, followed nowhere; None for nothing, and for a folder, as git sees it."""
    found = _stat(name, parent)
    if found is None or stat.S_ISDIR(found.st_mode):
        return None
    digits = next((len(state.blob) for state in (one.now, one.to) if state is not None and state.blob), _SHA1_DIGITS)
    if stat.S_ISLNK(found.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=parent))
        return Seen(FileState(mode=LINK, blob=blob_name(target, digits)), Stamp.of(found))
    if not stat.S_ISREG(found.st_mode):
        return Seen(FileState(mode=OTHER_MODE, blob=""), Stamp.of(found))
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        before = os.fstat(descriptor)
        digest = (sha1 if digits == _SHA1_DIGITS else sha256)(b"blob %d\0" % before.st_size, usedforsecurity=False)
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
        is_still = Stamp.of(before) == Stamp.of(os.fstat(descriptor))
    mode = EXECUTABLE if before.st_mode & stat.S_IXUSR else PLAIN
    return Seen(FileState(mode=mode, blob=digest.hexdigest()), Stamp.of(before) if is_still else None)


def _permissions(before: int, mode: str) -> int:
    """The permissions of a file that becomes executable, or stops being so: for those who may read it."""
    return before | (before & 0o444) >> 2 if mode == EXECUTABLE else before & ~0o111


def _stat(name: str, parent: int) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    return None
