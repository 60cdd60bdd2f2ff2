"""Guarded commands: their state as their guards report it, and the running commands of models in this process."""

import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from time import monotonic
from typing import Final

from turnkeeper.workspace.guard import RELEASE

_RECENT_S: Final = 10.0
"""Time for which an ended command is remembered: data that it sent may not have been received yet."""


class Guarded:
    """A started command, as its guard reports it. It is alive until all processes that it started have ended."""

    def __init__(self, control: socket.socket, numbers: Sequence[int]) -> None:
        self._control = control
        self.id, self.guard_id = numbers
        """The id of the process and of its process group, and that of its guard."""
        self.exit_code: int | None = None
        self.is_alive = True
        self.is_left = False
        """Whether the command has ended and a background process of it goes on."""
        self._heard = b""
        control.setblocking(False)

    def fileno(self) -> int:
        """The descriptor that becomes readable when the guard has sent something."""
        return self._control.fileno()

    def hear(self) -> None:
        """Read the pending messages of the guard, without waiting."""
        if not self.is_alive:
            return
        try:
            while piece := self._control.recv(256):
                self._heard += piece
            self.is_alive = False
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self.is_alive = False
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            code, is_left = map(int, line.split()[1:])
            self.exit_code, self.is_alive = code, self.is_alive and bool(is_left)
        if not self.is_alive:
            if self.exit_code is None:
                self._lose()
            self._control.close()

    def end(self, grace_s: float) -> None:
        """Order the guard to end all processes, and to kill them after a grace period. Does not wait."""
        self._tell(b"%f" % grace_s)

    def release(self) -> None:
        """Let the remaining processes go on, also after this program. The command then counts as ended."""
        self._tell(RELEASE)
        if self.is_alive:
            self.is_alive = False
            self._control.close()

    def _tell(self, order: bytes) -> None:
        if self.is_alive:
            with suppress(BrokenPipeError, ConnectionResetError, BlockingIOError):
                self._control.send(order + b"\n")

    def _lose(self) -> None:
        """Kill at least the process group, because another program killed the guard."""
        self.exit_code = -signal.SIGKILL
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.id, signal.SIGKILL)


class ModelCommands:
    """The running commands that models started, or that may run code of models."""

    def __init__(self) -> None:
        self._commands: list[Guarded] = []
        self._ended_at: float | None = None
        self._changing = Lock()

    def add(self, command: Guarded) -> None:
        """Add a started command."""
        with self._changing:
            self._forget_ended()
            self._commands.append(command)

    def guards(self) -> list[int] | None:
        """The process ids of the guards of running commands; None if no command runs or ended recently."""
        if not self._commands and self._ended_at is None:
            return None
        with self._changing:
            self._forget_ended()
            if not self._commands and (self._ended_at is None or monotonic() > self._ended_at + _RECENT_S):
                self._ended_at = None
                return None
            return [one.guard_id for one in self._commands]

    def _forget_ended(self) -> None:
        for one in self._commands:
            if one.is_left:
                one.hear()
        alive = [one for one in self._commands if one.is_alive]
        if len(alive) < len(self._commands):
            self._commands, self._ended_at = alive, monotonic()


OF_MODELS: Final = ModelCommands()
"""The commands of this process."""
