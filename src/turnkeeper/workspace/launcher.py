"""Launcher: starts commands, each with a guard."""

import atexit
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from turnkeeper.core.sandbox import Confinement
from turnkeeper.workspace import guard, sandbox
from turnkeeper.workspace.guarded import OF_MODELS, Guarded


class Launcher:
    """Starts commands. Its process is started for the first command, and again if it has exited."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._starting = Lock()

    def start(
        self,
        arguments: Sequence[str],
        directory: Path,
        environ: Mapping[str, str],
        streams: tuple[int, int, int],
        *,
        confined: Confinement | None = None,
        is_of_model: bool = False,
    ) -> Guarded:
        """Start a command with these standard streams. Raises OSError, also if it cannot be confined as it should."""
        with ExitStack() as stack:
            descriptors = list(streams)
            restrictions = None
            if confined is not None:
                arguments = sandbox.arguments_of(confined, list(arguments))
                if (made := sandbox.restrictions(confined)) is not None:
                    (restrictions, ruleset) = made
                    stack.callback(os.close, ruleset)
                    descriptors.append(ruleset)
            request = guard.Request(
                [os.fsencode(one) for one in arguments],
                os.fsencode(directory),
                {os.fsencode(name): os.fsencode(value) for name, value in environ.items()},
                None if restrictions is None else (*restrictions,),
            )
            started = Guarded(*self._answered(marshal.dumps(tuple(request)), descriptors, str(directory)))
        if is_of_model:
            OF_MODELS.add(started)
        return started

    def prepare(self) -> None:
        """Start the launcher's process, if it is not there yet: the first command then need not wait for it."""
        with self._starting, suppress(OSError):  # The next start reports the error.
            self._connected()

    def close(self) -> None:
        """Stop the launcher. Guards end the remaining processes when this process has ended."""
        atexit.unregister(self.close)
        process, self._process = self._process, None
        requests, self._requests = self._requests, None
        if requests is not None:
            requests.close()
        if process is not None:
            process.wait()

    def _answered(self, body: bytes, descriptors: Sequence[int], directory: str) -> tuple[socket.socket, list[int]]:
        """Request a guard. Returns its control socket, and the process ids of the command and of the guard."""
        for _ in range(2):  # The launcher may have been killed, by the system for example.
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    self._send(body, [theirs.fileno(), *descriptors])
                answer = bytearray()
                while not answer.endswith(b"\n") and (piece := ours.recv(1)):
                    answer += piece
                if answer.startswith(b"started"):
                    return ours, [int(one) for one in answer.split()[1:]]
                if answer:
                    number = int(answer.split()[1])
                    raise OSError(number, os.strerror(number), directory)
            except BrokenPipeError:
                pass
            except BaseException:
                ours.close()
                raise
            ours.close()
        raise OSError("the process that starts commands ended; try again")

    def _send(self, body: bytes, descriptors: list[int]) -> None:
        with self._starting:
            requests = self._connected()
            socket.send_fds(requests, [len(body).to_bytes(guard.HEAD_BYTES, "big")], descriptors)
            requests.sendall(body)

    def _connected(self) -> socket.socket:
        if self._process is None or self._requests is None or self._process.poll() is not None:
            self.close()
            self._process, self._requests = _launched()
            atexit.register(self.close)
        return self._requests


def _launched() -> tuple["subprocess.Popen[bytes]", socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        # In its own session, so that Ctrl-C does not stop it, and in / so that it keeps no directory in use. Without
        # variables, because commands may be able to read those of processes above them.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
    return process, ours


LAUNCHER: Final = Launcher()
"""The launcher of this process."""
