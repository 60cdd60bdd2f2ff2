"""Record diff, undo with a conflict, redo and blame as docs/images/undo-*.svg: real commands on a terminal.

``--check`` draws nothing and compares the words of the pictures with what the commands print now.
"""

import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from record_run import draw, on_terminal
from rich.text import Text

from turnkeeper.testing.terminal_emulator import TerminalEmulator

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"
WIDTH = 132
"""Wide enough that no line is cut, whatever the name of the session."""
NARROWEST = 80
PROMPT = "replace `/ 100` with `/ 60` in tides.py, then run `printf 'Made by a command.\\n' > notes.txt`"


def main() -> int:
    """Draw all pictures, or check them."""
    if sys.argv[1:] == ["--check"]:
        return _check()
    for name, title, lines in scenes():
        draw(IMAGES / f"undo-{name}.svg", lines, width=_width(lines), title=title)
    return 0


def _width(lines: list[str]) -> int:
    """As narrow as the lines allow: the letters of a wide picture are small."""
    return max(NARROWEST, *(Text.from_ansi(line.rstrip()).cell_len + 1 for line in lines))


def _check() -> int:
    old = 0
    with TemporaryDirectory() as folder:
        for name, title, lines in scenes():
            draw(fresh := Path(folder) / f"undo-{name}.svg", lines, width=_width(lines), title=title)
            if _words(fresh) != _words(IMAGES / fresh.name):
                print(f"{fresh.name} shows what the program no longer prints; run scripts/record_undo.py")
                old += 1
    return min(old, 1)


def _words(image: Path) -> list[str]:
    """The words of a picture, but for the names and ids of its session."""
    drawn = re.sub(r"<style>.*?</style>", "", image.read_text("utf-8"), flags=re.S)
    words = html.unescape(re.sub(r"<[^>]*>", " ", drawn)).split()
    return [word for word in words if re.fullmatch(r"msg_\w+|ses_\w+|[a-z]+-[a-z]+", word) is None]


def scenes() -> Iterator[tuple[str, str, list[str]]]:
    """The name, the command and the lines of each picture."""
    with TemporaryDirectory(prefix="turnkeeper-") as folder:
        place = _Place(Path(folder))
        place.turnkeeper("run", "-m", "offline/tk-1", PROMPT)
        yield "diff", "turnkeeper session diff ID", place.shown("session", "diff", place.session)
        yield "blame", "turnkeeper session blame tides.py", place.shown("session", "blame", "tides.py")
        tides = place.project / "tides.py"
        edited = tides.read_text().replace("/ 60", "/ 60  # minutes")
        tides.write_text(edited)
        yield "conflict", "turnkeeper session undo ID", place.shown("session", "undo", "--yes", place.session)
        assert tides.read_text() == edited, "the user's edit is kept"
        tides.write_text(edited.replace("  # minutes", ""))
        yield "redo", "turnkeeper session redo ID", place.shown("session", "redo", "--yes", place.session)


class _Place:
    """A scratch copy of the sample project, with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.project, self._home = folder / "tides", folder / "home"
        shutil.copytree(ROOT / "sample", self.project, ignore=shutil.ignore_patterns("__pycache__"))
        self._home.mkdir()
        who = ["-c", "user.name=You", "-c", "user.email=you@example.org"]
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "Begin"]):
            subprocess.run(["git", *words], cwd=self.project, env=self._environ, check=True)

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.turnkeeper("session", "list").splitlines()[-1].split()[0]

    @property
    def _environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return {**kept, "HOME": str(self._home), "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}

    def turnkeeper(self, *words: str) -> str:
        """Run a command, and give what it prints in a pipe."""
        command = [sys.executable, "-m", "turnkeeper.cli.main", *words]
        done = subprocess.run(command, cwd=self.project, env=self._environ, capture_output=True, text=True, check=True)
        return done.stdout

    def shown(self, *words: str) -> list[str]:
        """The lines that a command shows on a terminal. A conflict is an exit code of 1."""
        command = [sys.executable, "-m", "turnkeeper.cli.main", *words]
        output, code = on_terminal(command, self.project, self._environ)
        assert code in (0, 1), output
        emulator = TerminalEmulator(WIDTH)
        emulator.feed(output)
        return [line for line in emulator.painted() if line.strip()]


if __name__ == "__main__":
    sys.exit(main())
