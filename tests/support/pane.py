"""A terminal that a program runs in and that can be looked at: tmux, which tells when something was drawn."""

import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clients import DEADLINE_S

WIDTH: Final = 140
"""Wide enough for what opencode shows beside a session."""
HEIGHT: Final = 40


class Pane:
    """One terminal. What is drawn is waited for, never guessed."""

    def __init__(self, socket: Path, drawn: int) -> None:
        self._socket, self._drawn = socket, drawn

    def tmux(self, *words: str) -> str:
        """What a command of tmux prints."""
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen(self, *, colours: bool = False) -> str:
        """What stands on it; with ``colours`` as a terminal would be sent it."""
        return self.tmux("capture-pane", "-p", *(["-e", "-N"] if colours else []))

    def program(self) -> int:
        """The process that the shell in this terminal waits for."""
        shell = self.tmux("list-panes", "-F", "#{pane_pid}").strip()
        listed = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
        [child] = listed.stdout.split()
        return int(child)

    def types(self, words: str) -> None:
        """Type words."""
        self.tmux("send-keys", "-l", words)

    def presses(self, *keys: str) -> None:
        """Press keys by their names."""
        self.tmux("send-keys", *keys)

    def shows(self, *patterns: str) -> str:
        """The screen, once all the patterns are on it."""
        return self._until(lambda text: all(re.search(one, text) for one in patterns), f"shows {patterns}")

    def presses_until(self, key: str, pattern: str) -> str:
        """The screen, once the pattern is on it. A key that must come in time after another is pressed again."""

        def fits(text: str) -> bool:
            if not (is_shown := bool(re.search(pattern, text))):
                self.presses(key)
            return is_shown

        return self._until(fits, f"shows {pattern!r} for {key}")

    def hides(self, pattern: str) -> str:
        """The screen, once the pattern has gone from it."""
        return self._until(lambda text: not re.search(pattern, text), f"no more shows {pattern!r}")

    def _until(self, fits: Callable[[str], bool], wish: str) -> str:
        end = time.monotonic() + DEADLINE_S
        while not fits(text := self.screen()):
            left = end - time.monotonic()
            assert left > 0, f"the screen never {wish}:\n{text}"
            # Something is drawn at the latest when a cursor blinks or a clock ticks; a second look costs little.
            if select.select([self._drawn], [], [], min(left, 1))[0]:
                os.read(self._drawn, 1 << 20)
        return text


@contextmanager
def pane(
    command: list[str], *, cwd: Path, environ: Mapping[str, str], size: tuple[int, int] = (WIDTH, HEIGHT)
) -> Iterator[Pane]:
    """Run a program in a terminal of its own, and end it afterwards, whatever it does."""
    with tempfile.TemporaryDirectory(prefix="tk-") as short:  # Paths of sockets have a limit.
        socket, pipe = Path(short, "tmux"), Path(short, "drawn")
        os.mkfifo(pipe)
        drawn = os.open(pipe, os.O_RDWR)  # Both ways, so that opening waits for nobody and reading never ends.
        shown = Pane(socket, drawn)
        start = ["new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "-c", str(cwd)]
        given = [word for name, value in environ.items() for word in ("-e", f"{name}={value}")]
        shown.tmux(*start, *given, *command)
        ended = os.pidfd_open(int(shown.tmux("list-panes", "-F", "#{pane_pid}")))
        try:
            shown.tmux("pipe-pane", f"exec cat > {pipe}")
            yield shown
        finally:
            shown.tmux("kill-server")
            # What is told to end may still write, for example into a folder that is removed next.
            assert select.select([ended], [], [], DEADLINE_S)[0], "the program did not end with its terminal"
            os.close(ended)
            os.close(drawn)
