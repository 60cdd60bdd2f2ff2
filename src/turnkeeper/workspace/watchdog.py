"""The watchdog: a helper process that terminates the commands of this process if this process is killed.

The watchdog reads a pipe from this process. A new command writes the id of its process group into the pipe before it
executes its program, and this process removes the id once the group has ended. When the pipe closes, because this
process was killed, the watchdog terminates the remaining groups: SIGTERM, a pause, then SIGKILL.

A process that left its group (``setsid``) is not terminated.
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
"""A command's standard input is the pipe until its program is executed."""


class Watchdog:
    """Terminates process groups after this process. Started with the first command, and restarted if it has exited."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = Lock()

    def pipe(self) -> int:
        """The file descriptor for the standard input of a process with ``enrolled`` arguments."""
        with self._starting:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
                atexit.register(self.close)
            assert self._process.stdin is not None, "it is started with a pipe"
            return self._process.stdin.fileno()

    def enrolled(self, arguments: Sequence[str]) -> list[str]:
        """Arguments that register the process group with the watchdog and then execute the given arguments."""
        return [SHELL, "-c", _ENROL, SHELL, *arguments]

    def release(self, group: int) -> None:
        """Unregister a group that has ended or may outlive this process."""
        if self._process is not None and self._process.stdin is not None:
            # A watchdog that has exited has no registered groups.
            with suppress(BrokenPipeError):
                os.write(self._process.stdin.fileno(), b"- %d\n" % group)

    def close(self) -> None:
        """Stop the watchdog, which terminates the groups that were not released."""
        atexit.unregister(self.close)
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    @staticmethod
    def _start() -> "subprocess.Popen[bytes]":
        # In its own session, so that Ctrl-C does not stop it, and in / so that it keeps no directory in use.
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
"""The watchdog of this process."""
