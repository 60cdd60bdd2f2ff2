"""Restored file: the restore of one file, in steps that all files of a batch take together.

``prepare`` checks the file and writes the new one next to it. ``place`` exchanges the two: the old file is kept under a
second name. ``settle`` checks the old file again: it is put back if it is not the file that was read, or was written
to since, or is still open for writing.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import sha1
from typing import Final

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.restore import FileRestore
from turnkeeper.workspace.exchange import Exchange, exchange
from turnkeeper.workspace.file_states import EXECUTABLE, LINK, Seen, Stamp, found_at, has_writer, seen
from turnkeeper.workspace.files import keep_owner_and_mode

CHANGED: Final = "it changed while files were put back"
BESIDE: Final = "it changed while files were put back, and so did the older version that is kept beside it"
OPEN: Final = "another program has it open for writing"
READ_ONLY: Final = "it is read-only"
FOLDER: Final = "there is a folder with other files in its place"
BEHIND_A_LINK: Final = "a folder on its way is a link now"

_SEARCH: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKLESS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""Error numbers of a file system without hard links."""
_SETTLED_NS: Final = 1_000_000_000
"""Age of the last write above which a further write is sure to change the time of the file."""


class RestoredFile:
    """One file of a batch. ``reason`` is set if the file is not changed; ``is_over``: no step is left."""

    def __init__(
        self,
        one: FileRestore,
        content: bytes | None,
        permissions: int | None,
        crash: Callable[[str], None],
        exchange: Exchange = exchange,
    ) -> None:
        self.one, self.is_over, self._exchange = one, False, exchange
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
        """Check that the file is in the planned state, and write the new file next to it."""
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
        self._seen = seen(self._name, self._parent, one)
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
        """Put the old file back if another program has written to it since it was read; else remove it."""
        if not self._is_aside:
            return
        # In this order: a program that had opened the file has either written to it, or still has it open.
        is_open = has_writer(self._aside, self._parent)
        if not self._is_untouched(self._aside):
            self._put_back(CHANGED)
        elif is_open:
            self._put_back(OPEN)
        else:
            os.unlink(self._aside, dir_fd=self._parent)
        self._is_aside = False

    def fail(self, error: OSError | Invalid) -> None:
        """End the restore of this file with the error as its reason."""
        words = error.strerror if isinstance(error, OSError) else None
        self._end(words or str(error))

    def close(self) -> None:
        """Remove the unused new file, and close the folder."""
        self.close_new()
        if self._parent >= 0:
            with suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._parent)
        self._closing.close()

    def close_new(self) -> None:
        """Close the new file, which is durable now."""
        if self.new is not None:
            os.close(self.new)
            self.new = None

    def _end(self, reason: str | None) -> None:
        self.reason, self.is_over = reason, True

    def _clear(self) -> None:
        """Remove the files that a killed process left next to the file."""
        with suppress(FileNotFoundError):
            os.unlink(self._temporary, dir_fd=self._parent)
        aside = seen(self._aside, self._parent, self.one)
        if aside is None:
            return
        if aside.state in (self.one.now, self.one.to) or self._is_same():
            os.unlink(self._aside, dir_fd=self._parent)
            return
        # Another process wrote to the old file just before it was removed.
        found = seen(self._name, self._parent, self.one)
        if (found.state if found is not None else None) == self.one.to:
            self._put_back(CHANGED)
        else:
            self._end(BESIDE)

    def _write(self, mode: str, content: bytes) -> None:
        if mode == LINK:
            os.symlink(os.fsdecode(content), self._temporary, dir_fd=self._parent)
            return
        before = found_at(self._name, self._parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        usual = 0o777 if mode == EXECUTABLE else 0o666
        # A private file is never readable for others, not even while it is written.
        self.new = os.open(self._temporary, flags, usual if self._permissions is None else 0o600, dir_fd=self._parent)
        with open(self.new, "wb", closefd=False) as file:
            file.write(content)
        if self._permissions is not None:
            os.fchmod(self.new, _permissions(self._permissions, mode))
        if before is not None and stat.S_ISREG(before.st_mode):
            keep_owner_and_mode(self.new, before, _permissions(stat.S_IMODE(before.st_mode), mode))

    def _take_away(self) -> None:
        self._rename(self._name, self._aside)
        self._is_aside = True
        self._crash("restore.file-replaced")

    def _add(self) -> None:
        """Give a new file its name, unless the name is taken: a link, unlike a rename, never replaces a file."""
        found = found_at(self._name, self._parent)
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
                self._rename(self._temporary, self._name)
            else:
                raise

    def _replace(self) -> None:
        """Exchange the new file and the old file."""
        # The new file gets the second name first: after a kill both names have planned content, or that of others.
        self._rename(self._temporary, self._aside)
        self._crash("restore.file-linked")
        try:
            self._is_aside = self._exchange(self._aside, self._name, self._parent)
        except FileNotFoundError:
            self._end(CHANGED)
        finally:
            if not self._is_aside:
                self._rename(self._aside, self._temporary)
        if self._is_aside:
            self._crash("restore.file-replaced")
            if not self._has_stamp(self._aside):  # Another program has saved the file as a new one.
                self._put_back(CHANGED)
                self._is_aside = False
        elif not self.is_over:
            self._replace_in_steps()

    def _replace_in_steps(self) -> None:
        """Replace the file where names cannot be exchanged. A file that is saved between the last two steps is lost."""
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

    def _put_back(self, reason: str) -> None:
        self._end(reason)
        if self.one.to is None or found_at(self._name, self._parent) is None:
            self._give_name_back()
        elif self._exchange(self._aside, self._name, self._parent):
            new = seen(self._aside, self._parent, self.one)
            if new is not None and new.state == self.one.to:
                os.unlink(self._aside, dir_fd=self._parent)
            else:  # The file was saved again meanwhile. The saved file keeps the name, and the old one its second name.
                self._exchange(self._aside, self._name, self._parent)
        else:
            os.replace(self._aside, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
            with suppress(FileNotFoundError):  # Both stay if they are two names of one file.
                os.unlink(self._aside, dir_fd=self._parent)

    def _give_name_back(self) -> None:
        """Give the old file its name back, if the name is free.

        If another program creates a file at this moment, the old one keeps its second name.
        """
        with suppress(FileExistsError):
            try:
                self._link(self._aside, self._name)
            except OSError as error:
                if error.errno not in _LINKLESS:
                    raise
                self._rename(self._aside, self._name)
                return
            os.unlink(self._aside, dir_fd=self._parent)

    def _rename(self, name: str, second: str) -> None:
        os.rename(name, second, src_dir_fd=self._parent, dst_dir_fd=self._parent)

    def _link(self, name: str, second: str) -> None:
        os.link(name, second, src_dir_fd=self._parent, dst_dir_fd=self._parent, follow_symlinks=False)

    def _is_same(self) -> bool:
        """Whether the name and the second name are the same file."""
        found, aside = found_at(self._name, self._parent), found_at(self._aside, self._parent)
        return found is not None and aside is not None and os.path.samestat(found, aside)

    def _is_untouched(self, name: str) -> bool:
        """Whether a file is the one that was read, without changes since."""
        if not self._has_stamp(name):
            return False
        # The clock of a file system moves in steps: two writes in one step have the same time.
        assert self._seen is not None
        assert self._seen.stamp is not None
        if time.time_ns() - self._seen.stamp.written_ns > _SETTLED_NS:
            return True
        again = seen(name, self._parent, self.one)
        # Reading takes time: the name may belong to a newly saved file by now.
        return again is not None and again.state == self.one.now and self._has_stamp(name)

    def _has_stamp(self, name: str) -> bool:
        found = found_at(name, self._parent)
        assert self._seen is not None
        return found is not None and Stamp.of(found) == self._seen.stamp


def second_names(file: str) -> tuple[str, str]:
    """The temporary names of the new and of the old file; always the same, so that leftovers are found."""
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
                found = found_at(name, descriptor) if error.errno in (errno.ELOOP, errno.ENOTDIR) else None
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
    """A descriptor of the top of a project, which stays valid if the directory is moved."""
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _permissions(before: int, mode: str) -> int:
    """The permissions of a file with its new mode: an executable file may be executed by those who may read it."""
    return before | (before & 0o444) >> 2 if mode == EXECUTABLE else before & ~0o111
