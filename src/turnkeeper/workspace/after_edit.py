"""Interfaces of the work around an edit of a file: formatters, and the diagnostics of language servers."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.value import JsonObject, Value


class Diagnostic(Value):
    """One error of a language server. Lines and characters are counted from 1, as editors show them."""

    line: int
    character: int
    message: str
    whole: JsonObject = {}
    """The diagnostic as the server sent it, for clients."""


class FormatOutcome(Value):
    """The formatters that ran over a file, and the failures, as text."""

    ran: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


Confine: TypeAlias = Callable[[], Confinement | None]
"""Gives the confinement of the programs of a call; None for no confinement. It reads the disk and may raise OSError."""

Format: TypeAlias = Callable[[Path, Confine], Awaitable[FormatOutcome]]
"""Run the formatters for a file, which may change it. Never fails: a failure is part of the outcome."""

Prepare: TypeAlias = Callable[[Path, Confine], Awaitable[None]]
"""Announce a file that was read and may be edited soon. Never fails, and waits for no language server."""

Diagnose: TypeAlias = Callable[[Path, str | None, str, Confine], Awaitable[tuple[Diagnostic, ...]]]
"""The new errors of a file after a change from one text (None: no file) to another. Bounded in time."""


async def format_nothing(path: Path, confine: Confine) -> FormatOutcome:
    """The formatter of a place where none is configured."""
    return FormatOutcome()


async def prepare_nothing(path: Path, confine: Confine) -> None:
    """No language server is configured."""


async def diagnose_nothing(path: Path, before: str | None, after: str, confine: Confine) -> tuple[Diagnostic, ...]:
    """No language server is configured."""
    return ()
