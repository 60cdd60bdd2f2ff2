"""Owner: which process runs a session, and whether that process still runs.

A process is named by its machine, the start of that machine's kernel (the boot id), its number and its start time.
A host name only stands in where the system gives none of these: host names change while processes run.
"""

import os
import socket
from functools import cache
from hashlib import sha256
from pathlib import Path

from turnkeeper.model.status import Owner

MACHINE_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
BOOT_FILE = "/proc/sys/kernel/random/boot_id"
NAMESPACE = "/proc/self/ns/pid"


def this_process() -> Owner:
    """This process. Its number alone would be mistaken for a later process with the same one."""
    return Owner(
        host=socket.gethostname(),
        pid=os.getpid(),
        started=_started(os.getpid()) or "",
        machine=_machine(),
        boot=_boot(),
        namespace=_namespace(),
    )


def is_alive(owner: Owner) -> bool:
    """Whether that process still runs. A process that cannot be seen from here counts as running."""
    here = this_process()
    if owner.boot and here.boot and owner.boot != here.boot:
        return not _is_same_machine(owner, here)  # A machine that was started anew runs none of its old processes.
    is_kernel_known = bool(owner.boot and here.boot)
    is_visible = owner.host == here.host or (is_kernel_known and owner.namespace == here.namespace)
    if not is_visible:  # It is on another machine, or in another container of this one.
        return True
    started = _started(owner.pid)
    if started is None:
        return False
    return not owner.started or not started or started == owner.started


def _is_same_machine(owner: Owner, here: Owner) -> bool:
    if owner.machine and here.machine:
        return owner.machine == here.machine
    return owner.host == here.host


@cache
def _machine() -> str:
    """A name for this machine that outlives its host name; empty if it has none.

    It is a hash, because the id itself is meant to stay on the machine and a store may be copied.
    """
    found = next(filter(None, map(_content, MACHINE_FILES)), "")
    return sha256(f"turnkeeper {found}".encode()).hexdigest()[:16] if found else ""


@cache
def _boot() -> str:
    """The id of the running kernel's start, the same in all containers; empty if the system gives none."""
    return _content(BOOT_FILE)


def _namespace() -> str:
    """The set of process numbers that this process lives in; empty if the system gives none."""
    try:
        return os.readlink(NAMESPACE)
    except OSError:
        return ""


def _content(path: str) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _started(pid: int) -> str | None:
    """When a process began, in the kernel's own words; None if there is no such process, empty if it is not known."""
    try:
        # Field 22, counted behind the name in parentheses, which may itself hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self").exists() else _signalled(pid)
    except (OSError, IndexError):
        return ""


def _signalled(pid: int) -> str | None:
    """Where there is no /proc: signal 0 does nothing and fails if the process does not exist."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""
