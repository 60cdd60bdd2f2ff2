"""Lives that end at a crash point, in a process of their own."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from turnkeeper.store.crash import EXIT_CODE
from turnkeeper.testing import loop_child

Crash = Callable[..., bool]
"""Lives a life that ends at a crash point; whether the point was reached."""


EVERY_WRITE = ("run.tool-begin", "journal.before-append", "journal.after-append")
"""Crash points that all writes of a life pass, and the start of each tool call. The points of single writes are next to
them, so a test of every hit needs these only."""


def on_engines(points: Sequence[str]) -> pytest.MarkDecorator:
    """Each point with one durable engine in turn; with the other in ``make soak``."""
    engines = ("sqlite", "files")
    return pytest.mark.parametrize(
        ("point", "engine"),
        [
            pytest.param(point, engine, marks=() if engine == engines[number % 2] else pytest.mark.soak)
            for number, point in enumerate(points)
            for engine in engines
        ],
    )


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


@contextmanager
def crashes() -> Iterator[Crash]:
    """A process that lives and dies as told."""
    command = [sys.executable, "-m", loop_child.__name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        orders, codes = process.stdin, process.stdout
        assert orders is not None
        assert codes is not None

        def crash(point: str, hit: int, url: str, directory: Path, life: str = "turns") -> bool:
            orders.write(f"{point}:{hit} {url} {directory} {life}\n")
            orders.flush()
            code = int(codes.readline())
            assert code in (0, EXIT_CODE)
            return code == EXIT_CODE

        yield crash
        orders.close()
