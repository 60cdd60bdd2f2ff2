"""File times: when a file was made, and the clock of file systems."""

import ctypes
import os
import sys
import time
from functools import cache
from typing import Final

_COARSE: Final = 5
"""``CLOCK_REALTIME_COARSE``, which Python does not name."""
_32_BITS: Final = 0xFFFFFFFF
_AT_FDCWD: Final = -100
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_STATX_BTIME: Final = 0x800
_STATX_BYTES: Final = 256
_BTIME: Final = slice(80, 88), slice(88, 92)
"""The positions of the seconds and nanoseconds of the birth time in the result of ``statx``."""


def moment() -> int:
    """The current time in nanoseconds, by the coarse clock of file systems: a file made later is never older."""
    return time.clock_gettime_ns(_COARSE) if sys.platform == "linux" else time.time_ns()


def is_since(path: bytes, since_ns: int) -> bool:
    """Whether a file was made and written at or after a moment. A missing file counts as new.

    A rename keeps the time at which a file was made, and a copy that keeps times keeps that of the last write. Where
    the file system does not tell when a file was made, the last write alone decides.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return True
    made = _birth(path)
    return found.st_mtime_ns >= since_ns and (made is None or made >= since_ns)


def is_older(path: bytes, than_ns: int) -> bool:
    """Whether the creation time of a file is known and before a moment."""
    made = _birth(path)
    return made is not None and made < than_ns


def inode(path: bytes) -> tuple[int, int] | None:
    """The device and the inode of a file, as far as git keeps them; None if it is not there."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev & _32_BITS, found.st_ino & _32_BITS


def _birth(path: bytes) -> int | None:
    """The creation time of a file in nanoseconds; None if it is not known."""
    call = _statx()
    if call is None:
        made = getattr(os.lstat(path), "st_birthtime", None) if os.path.lexists(path) else None
        return int(made * 1_000_000_000) if made is not None else None
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if call(_AT_FDCWD, path, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, answer) != 0:
        return None
    raw = answer.raw
    if not int.from_bytes(raw[:4], "little") & _STATX_BTIME:
        return None
    seconds, nanoseconds = (int.from_bytes(raw[part], "little") for part in _BTIME)
    return seconds * 1_000_000_000 + nanoseconds or None


@cache
def _statx() -> "ctypes._NamedFuncPointer | None":
    """The Linux system call ``statx``, which Python lacks; None if it is not available."""
    try:
        return ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None
