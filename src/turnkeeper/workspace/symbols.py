"""The symbols of a file, from its language server or else from our own parsers."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from anyio import to_thread

from turnkeeper.model.refusal import Invalid
from turnkeeper.text.symbols import Symbol
from turnkeeper.text.symbols import symbols as parsed
from turnkeeper.workspace import files
from turnkeeper.workspace.after_edit import Confine

SOURCE_BYTES_MAX: Final = 2 * 1024 * 1024
"""Maximum size of a file that is parsed for symbols. A larger one was not written by hand."""

FileSymbols: TypeAlias = Callable[[Path], Awaitable[tuple[Symbol, ...]]]
"""The symbols of a file; empty if they are not known. Never fails; bounded in time."""
ConfinedSymbols: TypeAlias = Callable[[Path, Confine], Awaitable[tuple[Symbol, ...]]]
"""The symbols of a file; a language server runs in this confinement."""


async def no_symbols(path: Path) -> tuple[Symbol, ...]:
    """No symbols, for any file."""
    return ()


async def own_symbols(path: Path) -> tuple[Symbol, ...]:
    """The symbols of a file without a language server."""
    return await to_thread.run_sync(parsed_file, path)


async def confined_symbols(path: Path, confine: Confine) -> tuple[Symbol, ...]:
    """The symbols of a file where no language server is configured."""
    return await own_symbols(path)


def source(path: Path, bytes_max: int = SOURCE_BYTES_MAX) -> str | None:
    """The text of a file; None if it cannot be read, is no text, or is too large."""
    try:
        return files.decoded(path, files.read_bytes(path, bytes_max)).text
    except (Invalid, OSError, ValueError):
        return None


def parsed_file(path: Path, bytes_max: int = SOURCE_BYTES_MAX) -> tuple[Symbol, ...]:
    """The symbols of a file without a language server; empty if it cannot be read or is too large."""
    text = source(path, bytes_max)
    return parsed(path.suffix, text) if text is not None else ()
