"""Seccomp: the filter that refuses a command system calls that Landlock cannot restrict.

| Refused | When |
|---|---|
| typing into a terminal (``TIOCSTI``, ``TIOCLINUX``) | always |
| limits of another process (``prlimit``), which could end it | always |
| changing modes, owners, times and attributes of files | nothing may be written |
| sockets other than those between processes of this machine | there is no network |
| ``io_uring``, and programs for another processor, both of which would avoid the filter | either of the two above |
"""

import errno
import platform
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from turnkeeper.core.sandbox import Confinement
from turnkeeper.workspace.guard import Restrictions


class _Machine(NamedTuple):
    """The numbers of system calls on one kind of processor."""

    architecture: int
    seccomp: int
    ioctl: int
    socket: int
    limits: int
    foreign_limits: int
    """``prlimit`` for 32-bit programs, which have numbers of their own."""
    attributes: tuple[int, ...]
    """The calls that change the mode, owner, times or attributes of a file."""
    first_foreign: int | None = None
    """From this number on a call belongs to another set of numbers for the same processor."""


_NEW: Final = (452, 463, 466, 469)
"""fchmodat2, setxattrat, removexattrat and file_setattr, which have these numbers everywhere."""
_IO_URING_SETUP: Final = 425
_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        16,
        41,
        302,
        340,
        (*range(90, 95), 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280, *_NEW),
        0x40000000,
    ),
    "aarch64": _Machine(0xC00000B7, 277, 29, 198, 261, 369, (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, *_NEW)),
}
_TYPING: Final = (0x5412, 0x541C)
_FILE_FLAGS: Final = (0x40086602, 0x401C5820)
"""The requests to ``ioctl`` that change flags of a file (``chattr``)."""
_LOCAL: Final = (1, 16)
"""Sockets between processes of a machine, and to its kernel."""

_LOAD, _EQUAL, _AT_LEAST, _ANSWER = 0x20, 0x15, 0x35, 0x06
_ALLOWED: Final = 0x7FFF0000
_REFUSED: Final = 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
"""Offsets in the input of a filter: call number, processor, and the lower halves of the first three arguments."""
_NO_SLOWER_MEMORY: Final = 1 << 2
"""Flag without which older kernels switch on a processor mitigation that slows down every program."""


def restrictions(confined: Confinement) -> Restrictions:
    """The filter for a confinement; none on a processor whose system calls are not known."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return Restrictions(0, 0, b"")
    return Restrictions(machine.seccomp, _NO_SLOWER_MEMORY, b"".join(_filter(machine, confined)))


def _filter(machine: _Machine, confined: Confinement) -> list[bytes]:
    is_reading = confined.mode == "read-only"
    is_strict = is_reading or not confined.network
    elsewhere = _refused(errno.EPERM) if is_strict else _step(_ANSWER, _ALLOWED)
    foreign = [_step(_LOAD, _NUMBER), *_refuse_limits(machine.foreign_limits), elsewhere]
    lines = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, machine.architecture, len(foreign), 0), *foreign]
    lines += [_step(_LOAD, _NUMBER), *_refuse_limits(machine.limits)]
    if machine.first_foreign is not None:
        lines += _refuse_limits(machine.first_foreign + machine.limits)
        lines += [_step(_AT_LEAST, machine.first_foreign, 0, 1), elsewhere]
    if is_strict:
        lines += _refuse_each([_IO_URING_SETUP], errno.ENOSYS)
    if is_reading:
        lines += _refuse_each(machine.attributes, errno.EPERM)
    if not confined.network:
        local = [_step(_EQUAL, kind, len(_LOCAL) - place, 0) for place, kind in enumerate(_LOCAL)]
        lines += _for_call(machine.socket, _FIRST, [*local, _refused(errno.EACCES)])
    requests = (*_TYPING, *(_FILE_FLAGS if is_reading else ()))
    lines += _for_call(machine.ioctl, _SECOND, _refuse_each(requests, errno.EPERM))
    return [*lines, _step(_ANSWER, _ALLOWED)]


def _refuse_each(numbers: Sequence[int], number: int) -> list[bytes]:
    return [step for one in numbers for step in (_step(_EQUAL, one, 0, 1), _refused(number))]


def _refuse_limits(call: int) -> list[bytes]:
    """Refuse new limits for a process that is named by its id. A program names itself by 0."""
    no_limits = [_step(_LOAD, _THIRD), _step(_EQUAL, 0, 0, 2), _step(_LOAD, _THIRD + 4), _step(_EQUAL, 0, 1, 0)]
    return _for_call(call, _FIRST, [_step(_EQUAL, 0, 5, 0), *no_limits, _refused(errno.EPERM)])


def _for_call(call: int, argument: int, steps: list[bytes]) -> list[bytes]:
    """Filter steps that check an argument of one call; the number of the call is loaded again after them."""
    inner = [_step(_LOAD, argument), *steps, _step(_LOAD, _NUMBER)]
    return [_step(_EQUAL, call, 0, len(inner)), *inner]


def _refused(number: int) -> bytes:
    return _step(_ANSWER, _REFUSED | number)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
