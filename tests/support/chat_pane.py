"""A chat on a terminal that can be looked at: in tmux, in a small project of somebody who has configured nothing."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_store import command
from pane import Pane, pane
from workshop import Shop


def make_shop(folder: Path) -> Shop:
    """The project."""
    made = Shop(folder / "data", folder / "project", folder / "home")
    for one in made:
        one.mkdir()
    (made.project / "tides.py").write_text("def hours(minutes):\n    return minutes / 100\n")
    (made.project / "README.md").write_text("# Tides\n")
    return made


@contextmanager
def chat_pane(
    shop: Shop, *words: str, size: tuple[int, int] = (80, 40), program: Sequence[str] = (), **more: str
) -> Iterator[Pane]:
    """The program, or another one, in tmux; afterwards the terminal shows the exit code and stays."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    kept = {name: value for name, value in shop.environ(**more).items() if name not in ("COLUMNS", "LINES", "TERM")}
    term = more.get("TERM", "screen-256color")
    script = 'trap : INT; unset COLUMNS LINES; TERM="$1"; export TERM; shift; "$@"; echo "exit code $?"; exec cat'
    started = [*program, *words] if program else command(*words)
    with pane(["sh", "-c", script, "sh", term, *started], cwd=shop.project, environ=kept, size=size) as at:
        yield at
