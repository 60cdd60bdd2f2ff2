"""Capabilities: the powers of root that commands in a sandbox keep.

Files are confined by Landlock also for root. What is left are powers over the whole machine, such as its clock, its
name, its devices and its kernel's log; ordinary development needs none of them.
"""

from typing import Final

CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE = 0, 1, 3, 4, 5, 6, 7, 10
KEPT: Final = sum(1 << one for one in (CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE))
"""Bit mask of the capabilities for installing files, serving a low port and running as another user.

Reading every file is part of DAC_OVERRIDE. DAC_READ_SEARCH would also open files by number, without a path.
"""
