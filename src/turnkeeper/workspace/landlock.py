"""Landlock: the rules that restrict what a command may do with files, TCP and signals.

The kernel denies what a ruleset handles and no rule of it allows. A rule names a file or a directory with all below
it. Nothing can be taken away from a rule, so a path is excluded by allowing its siblings one by one. A process cannot
undo a restriction, so the command's own process applies it (``guard``).
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from turnkeeper.core.sandbox import Confinement

ABI_MAX: Final = 7
"""The newest version of the interface that is known here; a newer kernel is used as if it had this one."""

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
READING: Final = _EXECUTE | _READ_FILE | _READ_DIR
_WRITING_FIRST: Final = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Rights to write, remove and create files of every kind, in the first version of the interface."""
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
"""Rights to create devices, which no rule allows: with one, root could reach a disk or the memory past all rules."""
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""The rights that a rule about something other than a directory may have."""
_TCP: Final = 0b11
_SCOPED: Final = 0b11
"""Scopes for signals and abstract sockets, which then reach no process outside."""


class _Interface:
    """The system calls."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long

    def call(self, number: int, *arguments: int | bytes | None) -> int:
        """Make a system call. Raises OSError."""
        given = [ctypes.c_long(one) if isinstance(one, int) else ctypes.c_char_p(one) for one in arguments]
        return self._checked(self._libc.syscall(ctypes.c_long(number), *given))

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


@cache
def interface() -> _Interface:
    """The system calls of this process."""
    return _Interface()


@cache
def abi() -> int:
    """The version of the interface that the kernel offers; 0 if it offers none."""
    try:
        return min(interface().call(_CREATE_RULESET, None, 0, _ASK_VERSION), ABI_MAX)
    except (OSError, AttributeError):
        return 0


def ruleset(confined: Confinement, version: int | None = None) -> int:
    """A file descriptor of the rules for a confinement. Raises OSError, and then nothing may be started with it."""
    return _ruleset(interface(), confined, abi() if version is None else version)


def writing(version: int) -> int:
    """The rights to change files that a version of the interface knows."""
    known = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
    return _WRITING_FIRST | sum(right for since, right in known.items() if version >= since)


def covering(roots: Iterable[str], excluded: Sequence[str]) -> Iterator[str]:
    """Paths without links that together cover the roots, except the excluded paths.

    Names that are created later, directly in a directory that contains an excluded path, are not covered.
    """
    for root in roots:
        if root in excluded:
            continue
        inside = [one for one in excluded if one.startswith(f"{root.rstrip('/')}/")]
        if not inside:
            yield root
            continue
        try:
            with os.scandir(root) as found:
                below = [entry.path for entry in found if not entry.is_symlink()]
        except OSError:
            # A directory that may be entered and not listed, as /home is on some machines: the names that are known.
            below = [one for one in _next_steps(root, inside) if not os.path.islink(one)]
        yield from covering(below, inside)


def _next_steps(root: str, paths: Iterable[str]) -> list[str]:
    """The names directly in a directory that lead to paths below it."""
    start = f"{root.rstrip('/')}/"
    return list(dict.fromkeys(start + path.removeprefix(start).split("/", 1)[0] for path in paths))


def _ruleset(system: _Interface, confined: Confinement, version: int) -> int:
    """A file descriptor of the rules."""
    write = writing(version)
    hidden = [os.path.realpath(path) for path in confined.hidden if os.path.exists(path)]
    is_reading_restricted = confined.read is not None or bool(hidden)
    handled = write | (READING if is_reading_restricted else 0)
    attributes = struct.pack("=Q", handled)
    if version >= 4:
        attributes += struct.pack("=Q", 0 if confined.network else _TCP)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPED)
    ruleset = system.call(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        allowed = write & ~_MAKE_DEVICES
        for path in covering(confined.write, confined.protected):
            _allow(system, ruleset, path, allowed)
        for path in confined.devices:
            _allow(system, ruleset, path, (allowed | READING) & handled)
        if is_reading_restricted:
            _allow_reading(system, ruleset, confined, hidden)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _allow_reading(system: _Interface, ruleset: int, confined: Confinement, hidden: Sequence[str]) -> None:
    read = confined.read
    if read is None:
        # The names of hidden files stay visible; without this no directory on the way to one could be listed.
        _allow(system, ruleset, "/", _READ_DIR)
        # What is below a directory that cannot be listed has to be named.
        named = (*confined.write, *confined.needed)
        read = ("/", *(path for path in named if not any(path.startswith(f"{one}/") for one in hidden)))
    for path in covering(read, hidden):
        _allow(system, ruleset, path, READING)


def _allow(system: _Interface, ruleset: int, path: str, rights: int) -> None:
    """Add a rule for a path, unless it does not exist or cannot be opened."""
    try:
        opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        mode = os.fstat(opened).st_mode
        allowed = rights if stat.S_ISDIR(mode) else rights & _OF_FILES
        if allowed and not stat.S_ISLNK(mode):
            system.call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", allowed, opened), 0)
    except OSError as error:
        # Internal files of the kernel, such as those of some mounts in containers, cannot have a rule.
        if error.errno not in (errno.EBADFD, errno.EBADF):
            raise
    finally:
        os.close(opened)
