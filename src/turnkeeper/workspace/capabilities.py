"""Capabilities: the powers of root that the calling thread, and every process it starts, keep.

Files are confined by Landlock also for root. What is left are powers over the whole machine, such as its clock, its
name, its devices and its kernel's log; ordinary development needs none of them.
"""

import errno
from contextlib import suppress
from typing import Final

from turnkeeper.workspace.landlock import interface

CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE = 0, 1, 3, 4, 5, 6, 7, 10
KEPT: Final = (CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE)
"""What installing files, serving a low port and running as another user take.

Reading every file is part of DAC_OVERRIDE. DAC_READ_SEARCH would also open files by number, without a path.
"""

_DROP_BOUNDING: Final = 24
_AMBIENT: Final = 47
_CLEAR_AMBIENT: Final = 4
_VERSION: Final = 0x20080522
_NUMBERS: Final = 64
"""How many the interface has room for; a kernel knows fewer."""


def restrict() -> None:
    """Drop the other powers of the calling thread, which may gain none any more. Raises OSError."""
    system = interface()
    # Who may not do this gains nothing by starting a program, either; what it has itself is dropped below.
    with suppress(PermissionError):
        for one in range(_NUMBERS):
            if one not in KEPT and not _dropped(one):
                break
    with suppress(OSError):  # An old kernel has no ambient set.
        system.control(_AMBIENT, _CLEAR_AMBIENT)
    kept = sum(1 << one for one in KEPT)
    effective, permitted, _, *higher = system.capabilities(_VERSION)
    system.set_capabilities(_VERSION, (effective & kept, permitted & kept, 0, *(0 for _ in higher)))


def _dropped(one: int) -> bool:
    """Drop a power from those that a program can have; False if the kernel does not know it."""
    try:
        interface().control(_DROP_BOUNDING, one)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    return True
