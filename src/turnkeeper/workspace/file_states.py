"""File states: the file at a name in an open folder, as git sees it, and the stamp that shows its changes."""

import errno
import fcntl
import os
import signal
import stat
import sys
from contextlib import suppress
from hashlib import sha1, sha256
from typing import Final, NamedTuple

from turnkeeper.model.restore import OTHER_MODE, FileRestore, FileState

LINK: Final = "120000"
EXECUTABLE: Final = "100755"
PLAIN: Final = "100644"

_SHA1_DIGITS: Final = 40
_CHUNK_BYTES: Final = 1 << 20


class Stamp(NamedTuple):
    """Metadata of a file that changes when the file is written or replaced."""

    device: int
    inode: int
    size: int
    written_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Stamp":
        """The stamp of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Seen(NamedTuple):
    """A file as it was read. ``stamp`` is None while it is being written."""

    state: FileState
    stamp: Stamp | None


def seen(name: str, parent: int, one: FileRestore) -> Seen | None:
    """The file or link at a name; links are not followed. None for a folder and if nothing is there, as in git."""
    found = found_at(name, parent)
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


def found_at(name: str, parent: int) -> os.stat_result | None:
    """The metadata of the file at a name; links are not followed. None if nothing is there."""
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    return None


def has_writer(name: str, parent: int) -> bool:
    """Whether a program has a file open for writing. False if unknown: other systems, other users, network files."""
    if sys.platform != "linux":
        return False
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return False
    try:
        # The kernel signals this process when another one opens the file. The default signal, SIGIO, would end it.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)  # Closing releases the lease.
    return False


def blob_name(content: bytes, digits: int) -> str:
    """The name that git gives to a content."""
    named = b"blob %d\0" % len(content) + content
    return (sha1 if digits == _SHA1_DIGITS else sha256)(named, usedforsecurity=False).hexdigest()
