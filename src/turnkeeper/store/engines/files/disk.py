"""The system calls of the files engine. New files and directories are private to their owner."""

import errno
import os
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

SYNC_THREADS = 4
"""Concurrent syncs share one commit of the file system, which is five times faster than one after another."""

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700

_OPEN_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK
"""O_NONBLOCK: opening a pipe in place of a file must not block."""


class NotAFile(OSError):
    """A pipe, directory or device is in place of an ordinary file."""

    def __init__(self, target: str) -> None:
        super().__init__(errno.EINVAL, "not an ordinary file", target)


class Disk:
    """System calls. A test's subclass may make ``about_to`` raise, as a full or broken disk would."""

    def about_to(self, action: str, target: str) -> None:
        """Called before each change with its name and the file."""

    def write(self, target: str, body: bytes, offset: int | None = None) -> None:
        """Write a whole file, or bytes at an offset; not yet synced. A missing file is created."""
        self.about_to("write", target)
        flags = os.O_WRONLY | os.O_CREAT | _OPEN_FLAGS | (os.O_TRUNC if offset is None else 0)
        handle = os.open(target, flags, FILE_MODE)
        try:
            at, rest = offset or 0, memoryview(body)
            while rest:
                written = os.pwrite(handle, rest, at)
                at, rest = at + written, rest[written:]
        finally:
            os.close(handle)

    def truncate(self, target: str, size: int) -> None:
        """Truncate a file."""
        self.about_to("truncate", target)
        os.truncate(target, size)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target."""
        self.about_to("rename", target)
        os.rename(source, target)

    def unlink(self, target: str) -> None:
        """Remove a file, if it exists."""
        self.about_to("unlink", target)
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(target)

    def make_directory(self, target: str) -> None:
        """Make a directory, and those above it that are missing."""
        if os.path.isdir(target):
            return
        self.make_directory(os.path.dirname(target))
        self.about_to("make", target)
        # Another process may have made it meanwhile. A file of this name fails where it is used.
        with suppress(FileExistsError):
            os.mkdir(target, DIRECTORY_MODE)

    def remove_directory(self, target: str) -> bool:
        """Remove a directory if it is empty; False if it is not."""
        self.about_to("unmake", target)
        with suppress(OSError):
            os.rmdir(target)
        return not os.path.isdir(target)

    def sync(self, targets: Iterable[str]) -> None:
        """Return once these files and directories are on the medium. Missing ones are skipped."""
        targets = list(targets)
        for target in targets:
            self.about_to("sync", target)
        with ThreadPoolExecutor(min(SYNC_THREADS, len(targets))) as threads:
            list(threads.map(_sync, targets))


def read(target: str) -> bytes | None:
    """The content of a file; None if it does not exist."""
    size = size_of(target)
    return None if size is None else read_range(target, 0, size)


def read_range(target: str, start: int, end: int) -> bytes:
    """The bytes of a file between two offsets, or as many as there are; none if it does not exist. Raises NotAFile."""
    try:
        handle = os.open(target, os.O_RDONLY | _OPEN_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    pieces: list[bytes] = []
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NotAFile(target)
        while start < end and (piece := os.pread(handle, end - start, start)):
            pieces.append(piece)
            start += len(piece)
    finally:
        os.close(handle)
    return b"".join(pieces)


def size_of(target: str) -> int | None:
    """The size of a file; None if it does not exist."""
    try:
        return os.stat(target).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _sync(target: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        handle = os.open(target, os.O_RDONLY | _OPEN_FLAGS)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
