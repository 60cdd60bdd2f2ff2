"""A progress bar on standard error, if that is a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 0.4
"""Shorter work shows no progress bar."""


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """A function to call with (done, total) or (done, total, what) whenever there is progress."""
    bar = _Bar(title) if sys.stderr.isatty() else None
    try:
        yield bar.move if bar is not None else lambda *_: None
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """The seconds that something takes whose end cannot be foreseen, such as an answer of a model."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=28, pulse_style="blue"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(title, total=None)
        yield


class _Bar:
    """A bar that appears when the work takes long. rich is imported then."""

    def __init__(self, title: str) -> None:
        self._title, self._start = title, time.monotonic()
        self._shown: tuple[Progress, TaskID] | None = None

    def move(self, done: int, total: int, what: str = "") -> None:
        if self._shown is None:
            if time.monotonic() - self._start < PATIENCE_S:
                return
            self._shown = self._show()
        shown, task = self._shown
        shown.update(task, completed=done, total=total or None, what=what)

    def stop(self) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def _show(self) -> "tuple[Progress, TaskID]":
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=28, complete_style="blue", finished_style="blue"),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[what]}", markup=True),
        )
        # Removed at the end: the answer has the result.
        shown = Progress(*columns, console=Console(stderr=True), transient=True)
        shown.start()
        return shown, shown.add_task(self._title, total=None, what="")
