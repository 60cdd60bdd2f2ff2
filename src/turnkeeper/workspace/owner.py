"""Owner: identifies the process that runs a session, and checks whether that process still runs.

A process is identified by its machine id, boot id, process id and start time. The host name is used only if the system
has no such ids, because a host name may change while processes run.
"""

import os
import socket
from functools import cache
from hashlib import sha256
from pathlib import Path

from turnkeeper.core.lease import Process
from turnkeeper.model.status import Owner

MACHINE_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
BOOT_FILE = "/proc/sys/kernel/random/boot_id"
NAMESPACE = "/proc/self/ns/pid"
ENDED_STATES = ("Z", "X")


def this_process() -> Owner:
    """The identity of this process."""
    return Owner(
        host=socket.gethostname(),
        pid=os.getpid(),
        started=_begun(os.getpid()),
        machine=_machine(),
        boot=_boot(),
        namespace=_namespace(),
    )


def is_alive(owner: Owner) -> bool:
    """Whether a process still runs. A process that is not visible from here counts as running."""
    return process(owner) != "ended"


def process(owner: Owner) -> Process:
    """Whether the process of an owner runs, as far as it can be seen from here."""
    here = this_process()
    if owner.boot and here.boot and owner.boot != here.boot:
        # A reboot has ended all processes of this machine.
        return "ended" if _is_same_machine(owner, here) else "unseen"
    is_kernel_known = bool(owner.boot and here.boot)
    is_visible = owner.host == here.host or (is_kernel_known and owner.namespace == here.namespace)
    if not is_visible:  # On another machine, or in another container of this machine.
        return "unseen"
    started = _started(owner.pid)
    is_same = started is not None and (not owner.started or not started or started == owner.started)
    return "runs" if is_same else "ended"


def _is_same_machine(owner: Owner, here: Owner) -> bool:
    if owner.machine and here.machine:
        return owner.machine == here.machine
    return owner.host == here.host


@cache
def _machine() -> str:
    """A hash of the machine id, which must not leave the machine itself; empty if the system has none."""
    found = next(filter(None, map(_content, MACHINE_FILES)), "")
    return sha256(f"turnkeeper {found}".encode()).hexdigest()[:16] if found else ""


@cache
def _begun(pid: int) -> str:
    """The start time of this process, ``pid``; empty if unknown. After a fork the number is another one."""
    return _started(pid) or ""


@cache
def _boot() -> str:
    """The boot id of the kernel, equal in all containers; empty if the system has none."""
    return _content(BOOT_FILE)


def _namespace() -> str:
    """The PID namespace of this process; empty if the system has none."""
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
    """The start time of a process in the kernel's format; None if there is no such process, empty if unknown."""
    try:
        # Fields 3 and 22, counted after the name in parentheses, which may contain spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # A process that has ended keeps its number until its parent asks for its exit code.
        return None if fields[0] in ENDED_STATES else fields[19]
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self").exists() else _signalled(pid)
    except (OSError, IndexError):
        return ""


def _signalled(pid: int) -> str | None:
    """``_started`` without /proc: signal 0 does nothing and fails if the process does not exist."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # The process exists and belongs to another user.
    return ""
