"""Which process this is, and whether another one is still alive. How a session left by a dead process is told."""

import os
import socket
from pathlib import Path

from turnkeeper.model.status import Owner


def this_process() -> Owner:
    """This process: its number alone would be mistaken for a later process with the same one."""
    return Owner(host=socket.gethostname(), pid=os.getpid(), started=_started(os.getpid()) or "")


def is_alive(owner: Owner) -> bool:
    """Whether that process still runs. One on another host is taken to: only a lease could tell."""
    if owner.host != socket.gethostname():
        return True
    started = _started(owner.pid)
    if started is None:
        return False
    return not owner.started or not started or started == owner.started


def _started(pid: int) -> str | None:
    """When a process began, in the kernel's own words; None if there is no such process, empty if nobody can say."""
    try:
        # Field 22, counted behind the name in parentheses, which may itself hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self").exists() else _signalled(pid)
    except (OSError, IndexError):
        return ""


def _signalled(pid: int) -> str | None:
    """Where there is no /proc: a signal that does nothing finds out whether somebody would get it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""
