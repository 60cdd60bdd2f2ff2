"""Guard: a process above each command. It ends all that the command started, when told to or when this program is gone.

On Linux a guard adopts the processes below it that lose their parent (``PR_SET_CHILD_SUBREAPER``), so a process that
left its group or session (``setsid``, ``nohup``, a daemon) is still found below the guard, and ``waitpid`` tells when
the last one is gone. Elsewhere only the command's group is known.

This file is also the program of the **launcher**, a small process with one thread that forks a guard for each command.
It uses the standard library alone and is executed by its path, because importing the package takes longer than a
command does.
"""

import errno
import marshal
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

HEAD_BYTES: Final = 4
DESCRIPTORS_MAX: Final = 5
RELEASE: Final = b"release"
"""The order to let the processes of a command go on unguarded. The other order is a number: the grace period."""

_GRACE_S: Final = 1.0
"""Grace period after the end of the program."""
_GIVE_UP_S: Final = 10.0
"""Time limit for waiting for a process that cannot be killed (in the kernel, or another user's)."""
_LOOK_AGAIN_S: Final = 0.02
_SET_CHILD_SUBREAPER: Final = 36
_SET_NO_NEW_PRIVILEGES: Final = 38
_DROP_POWER: Final = 24
_AMBIENT_POWERS: Final = 47
_CLEAR_ALL: Final = 4
_POWERS_VERSION: Final = 0x20080522
_POWERS_MAX: Final = 64
"""Maximum number of powers in the interface; a kernel knows fewer."""
_LANDLOCK_RESTRICT_SELF: Final = 446
_SECCOMP_SET_FILTER: Final = 1
_HAS_PROC: Final = os.path.isdir("/proc/self")


class Restrictions(NamedTuple):
    """Restrictions of a command, ready to be applied. The rules of Landlock are passed as a descriptor."""

    system_call: int
    """The number of ``seccomp`` on this processor; 0 for no filter."""
    filter_flags: int
    filter: bytes
    powers: int = 0
    """The powers of root that stay (``capabilities``), one bit each."""


class Request(NamedTuple):
    """A command to start. Its descriptors come along: control, the three standard streams, and rules of Landlock."""

    arguments: list[bytes]
    directory: bytes
    environ: dict[bytes, bytes]
    restrictions: tuple[int, int, bytes, int] | None


def descendants(roots: Iterable[int]) -> dict[int, int]:
    """The processes below some processes, each with its group; zombies are left out. Empty without ``/proc``."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc") if _HAS_PROC else ()):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, its_group, *_ = file.read().rpartition(b")")[2].split()
        except (OSError, ValueError):
            continue
        # A zombie is listed, for it may have children; it is dropped below.
        children.setdefault(int(parent), []).append((int(name), 0 if state in b"ZX" else int(its_group)))
    found: dict[int, int] = {}
    left = list(roots)
    while left:
        for number, group in children.pop(left.pop(), ()):
            left.append(number)
            if group:
                found[number] = group
    return found


def main() -> None:
    """The launcher: fork a guard for each request, until the program is gone."""
    requests, kernel = socket.socket(fileno=0), _Kernel()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The kernel reaps guards.
    while True:
        head, descriptors, *_ = socket.recv_fds(requests, HEAD_BYTES, DESCRIPTORS_MAX)
        body = _read(requests, int.from_bytes(head, "big"))
        if body is None:
            return
        for one in descriptors:
            os.set_inheritable(one, False)
        if os.fork() == 0:
            requests.close()
            try:
                _guard(Request(*marshal.loads(body)), descriptors, kernel)
            finally:
                os._exit(0)
        for one in descriptors:
            os.close(one)


def _read(requests: socket.socket, size: int) -> bytes | None:
    body = bytearray()
    while size > len(body):
        if not (piece := requests.recv(size - len(body))):
            return None
        body += piece
    return bytes(body) or None


def _guard(request: Request, descriptors: list[int], kernel: "_Kernel") -> None:
    control = socket.socket(fileno=descriptors[0])
    if sys.platform == "linux":
        kernel.set(_SET_CHILD_SUBREAPER)
    reading, writing = os.pipe()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command == 0:
        try:
            _execute(request, descriptors[1:], kernel)
        except OSError as error:
            os.write(writing, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    for one in (writing, *descriptors[1:]):
        os.close(one)
    with open(reading, "rb") as pipe:
        trouble = pipe.read()  # Ends when the program of the command is executed.
    with suppress(BrokenPipeError):
        control.sendall(b"failed %s\n" % trouble if trouble else b"started %d %d\n" % (command, os.getpid()))
    _Guard(control, command).watch()


def _execute(request: Request, descriptors: list[int], kernel: "_Kernel") -> None:
    """Replace this process by the command. Raises OSError."""
    os.setsid()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs expect the default.
        signal.signal(ignored, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.chdir(request.directory)
    if request.restrictions is not None:
        kernel.restrict(Restrictions(*request.restrictions), descriptors[3])
    os.execvpe(request.arguments[0], request.arguments, request.environ)


class _Kernel:
    """System calls that Python has no functions for."""

    def __init__(self) -> None:
        import ctypes  # Only the launcher needs it.

        self._ctypes, self._libc = ctypes, ctypes.CDLL(None, use_errno=True)

    def set(self, option: int) -> None:
        """Switch an option on for this process (``prctl``). Raises OSError."""
        self._control(option, 1)

    def restrict(self, given: Restrictions, ruleset: int) -> None:
        """Restrict this process and all its descendants, for good. Raises OSError."""
        self.set(_SET_NO_NEW_PRIVILEGES)
        self._call(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
        self._keep_powers(given.powers)
        if given.system_call:
            kept = self._ctypes.create_string_buffer(given.filter, len(given.filter))
            steps = struct.pack("@HP", len(given.filter) // 8, self._ctypes.addressof(kept))
            self._call(given.system_call, _SECCOMP_SET_FILTER, given.filter_flags, steps)

    def _keep_powers(self, kept: int) -> None:
        """Drop all other powers of root, of this process and of every program that it starts."""
        # A process without this right gains no powers from programs, either; its own ones are dropped below.
        with suppress(PermissionError):
            for one in range(_POWERS_MAX):
                if not kept >> one & 1 and not self._dropped(one):
                    break
        with suppress(OSError):  # An old kernel has no ambient set.
            self._control(_AMBIENT_POWERS, _CLEAR_ALL)
        header = (self._ctypes.c_uint32 * 2)(_POWERS_VERSION, 0)
        held = (self._ctypes.c_uint32 * 6)()
        self._checked(self._libc.capget(header, held))
        low = (held[0] & kept, held[1] & kept, 0)  # Effective, permitted, inheritable.
        self._checked(self._libc.capset(header, (self._ctypes.c_uint32 * 6)(*low, 0, 0, 0)))

    def _dropped(self, power: int) -> bool:
        """Drop a power that programs may gain; False if the kernel does not know it."""
        try:
            self._control(_DROP_POWER, power)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return False
            raise
        return True

    def _control(self, option: int, argument: int) -> None:
        self._checked(self._libc.prctl(option, *map(self._ctypes.c_ulong, (argument, 0, 0, 0))))

    def _call(self, number: int, *arguments: int | bytes) -> None:
        c = self._ctypes
        given = [c.c_long(one) if isinstance(one, int) else c.c_char_p(one) for one in arguments]
        self._checked(self._libc.syscall(c.c_long(number), *given))

    def _checked(self, result: int) -> None:
        if result < 0:
            raise OSError(self._ctypes.get_errno(), "the kernel refused")


class _Guard:
    """Reports the end of a command, and ends its remaining processes."""

    def __init__(self, control: socket.socket, command: int) -> None:
        self._control, self._command = control, command
        self._woken, waking = os.pipe()
        for one in (self._woken, waking):
            os.set_blocking(one, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def watch(self) -> None:
        """Return when no process of the command is left, or when it is released."""
        while self._reap():
            ready, _, _ = select.select([self._control.fileno(), self._woken], [], [])
            self._clear()
            if self._control.fileno() in ready:
                order = self._order()
                if order != RELEASE:
                    self._end(float(order or _GRACE_S))
                return

    def _order(self) -> bytes:
        """The first received order; empty if the program has ended."""
        try:
            return self._control.recv(64).partition(b"\n")[0]
        except ConnectionResetError:
            return b""

    def _end(self, grace_s: float) -> None:
        """Send SIGTERM to all processes, and SIGKILL to those left after the grace period."""
        self._send(signal.SIGTERM)
        self._send(signal.SIGCONT)  # A stopped process handles SIGTERM only then.
        kill_at = time.monotonic() + grace_s
        while self._reap() and (left_s := kill_at - time.monotonic()) > 0:
            select.select([self._woken], [], [], left_s if sys.platform == "linux" else _LOOK_AGAIN_S)
            self._clear()
        give_up_at = time.monotonic() + _GIVE_UP_S
        while self._reap() and time.monotonic() < give_up_at:
            self._send(signal.SIGKILL)
            # A process may have been started since the last look, so this is repeated until none is left.
            select.select([self._woken], [], [], _LOOK_AGAIN_S)
            self._clear()

    def _send(self, number: int) -> None:
        """Send a signal to all groups below; they have no members elsewhere, because the command began a session."""
        for group in set(descendants([os.getpid()]).values()) if _HAS_PROC else {self._command}:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def _clear(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._woken, 512):
                pass

    def _reap(self) -> bool:
        """Read the exit codes of ended processes, and report that of the command. False if no process is left."""
        ended: int | None = None
        is_left = True
        try:
            while (one := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                if one[0] == self._command:
                    ended = os.waitstatus_to_exitcode(one[1])
        except ChildProcessError:
            is_left = sys.platform != "linux" and self._has_group()
        if ended is not None:
            with suppress(BrokenPipeError):
                self._control.sendall(b"exit %d %d\n" % (ended, is_left))
        return is_left

    def _has_group(self) -> bool:
        try:
            os.killpg(self._command, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


if __name__ == "__main__":
    main()
