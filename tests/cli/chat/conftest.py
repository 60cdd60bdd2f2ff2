"""A chat on a terminal that can be looked at, in a small project of somebody who has configured nothing."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from cli_store import command
from pane import Pane, pane
from workshop import Shop

Opens = Callable[..., AbstractContextManager[Pane]]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The project."""
    made = Shop(tmp_path / "data", tmp_path / "project", tmp_path / "home")
    for folder in made:
        folder.mkdir()
    (made.project / "tides.py").write_text("def hours(minutes):\n    return minutes / 100\n")
    (made.project / "README.md").write_text("# Tides\n")
    return made


@pytest.fixture
def opens(shop: Shop) -> Opens:
    """Opens a chat in tmux; afterwards the terminal shows the exit code and stays."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")

    @contextmanager
    def opened(*words: str, size: tuple[int, int] = (80, 40), **more: str) -> Iterator[Pane]:
        kept = {name: value for name, value in shop.environ(**more).items() if name not in ("COLUMNS", "LINES", "TERM")}
        term = more.get("TERM", "screen-256color")
        script = 'trap : INT; TERM="$1"; export TERM; shift; "$@"; echo "exit code $?"; exec cat'
        with pane(["sh", "-c", script, "sh", term, *command(*words)], cwd=shop.project, environ=kept, size=size) as at:
            yield at

    return opened
