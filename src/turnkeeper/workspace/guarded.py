"""Guarded commands: what their guards tell of them, and which commands of models are alive in this process."""

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
"""How long after its end a command is remembered: something that it sent may not have been received yet."""


class Guarded:
    """A command that was started, by what its guard tells of it. It is alive until nothing that it started is left."""

    def __init__(self, control: socket.socket, numbers: Sequence[int]) -> None:
        self._control = control
        self.id, self.guard_id = numbers
        """The id of the process and of its process group, and that of its guard."""
        self.exit_code: int | None = None
        self.is_alive = True
        self.is_left = False
        """Whether the command is over and a process that it started goes on."""
        self._heard = b""
        control.setblocking(False)

    def fileno(self) -> int:
        """The descriptor that becomes readable when the guard has sent something."""
        return self._control.fileno()

    def hear(self) -> None:
        """Take the news of the guard, if there is any."""
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
        """Have everything ended: asked to, and killed after a time. Does not wait for it."""
        self._tell(b"%f" % grace_s)

    def release(self) -> None:
        """Let what is left go on, also after this program. It counts as ended."""
        self._tell(RELEASE)
        if self.is_alive:
            self.is_alive = False
            self._control.close()

    def _tell(self, order: bytes) -> None:
        if self.is_alive:
            with suppress(BrokenPipeError, ConnectionResetError, BlockingIOError):
                self._control.send(order + b"\n")

    def _lose(self) -> None:
        """End at least the process group, because another program killed the guard."""
        self.exit_code = -signal.SIGKILL
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.id, signal.SIGKILL)


class ModelCommands:
    """The commands that models started, and what runs what models wrote, for as long as anything of them is alive."""

    def __init__(self) -> None:
        self._commands: list[Guarded] = []
        self._ended_at: float | None = None
        self._changing = Lock()

    def add(self, command: Guarded) -> None:
        """Take a command that was started."""
        with self._changing:
            self._forget_ended()
            self._commands.append(command)

    def guards(self) -> list[int] | None:
        """The guards of those that are alive; None if there is none, and was none just now."""
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
"""Those of this process."""
