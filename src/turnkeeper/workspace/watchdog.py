"""The watchdog: a small process that ends the commands of this one if this one is killed.

``kill -9`` leaves no time to end anything, so another process has to. It reads a pipe of which only this process holds
the other end, and a command for the moment in which it starts. A command writes the number of its process group into
the pipe before its program is executed; this process takes the number back once the group is dealt with. When the pipe
ends, because this process is gone, the watchdog ends the groups that are left: it asks, waits a moment and insists.

A process that left its group (``setsid``) is out of its reach.
"""

import atexit
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE
from threading import Lock
from typing import Final

SHELL: Final = "/bin/sh"
_WATCH: Final = """
groups=
while read -r sign group; do
  if [ "$sign" = + ]; then groups="$groups $group"; continue; fi
  left=
  for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
  groups=$left
done
[ -n "$groups" ] || exit 0
for one in $groups; do kill -s TERM -- "-$one"; kill -s CONT -- "-$one"; done
sleep 1
for one in $groups; do kill -s KILL -- "-$one"; done
"""
_ENROL: Final = 'echo "+ $$" >&0; exec "$@" </dev/null'
"""The pipe is the standard input of a command until its program is executed."""


class Watchdog:
    """Ends process groups when this process is gone. Started with the first command, and again if it was ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = Lock()

    def pipe(self) -> int:
        """The standard input to start ``enrolled`` arguments with."""
        with self._starting:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
                atexit.register(self.close)
            assert self._process.stdin is not None, "it is started with a pipe"
            return self._process.stdin.fileno()

    def enrolled(self, arguments: Sequence[str]) -> list[str]:
        """Arguments that enrol a process as a group's leader and then execute the given ones in it."""
        return [SHELL, "-c", _ENROL, SHELL, *arguments]

    def release(self, group: int) -> None:
        """Leave a group alone from now on: it is over, or may go on without this process."""
        if self._process is not None and self._process.stdin is not None:
            # A watchdog that somebody ended watches over nothing.
            with suppress(BrokenPipeError):
                os.write(self._process.stdin.fileno(), b"- %d\n" % group)

    def close(self) -> None:
        """End the watchdog, and with it the groups that were not released."""
        atexit.unregister(self.close)
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    @staticmethod
    def _start() -> "subprocess.Popen[bytes]":
        # In a session of its own: a Ctrl-C at the terminal is not for it. Its directory must not be kept in use.
        return subprocess.Popen(
            [SHELL, "-c", _WATCH],
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            bufsize=0,
            start_new_session=True,
        )


WATCHDOG: Final = Watchdog()
"""The one of this process."""
