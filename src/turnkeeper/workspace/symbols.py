"""The symbols of a file: what its language server says, or else what our own parsers find in it."""

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
"""How large a file is whose symbols are looked for. A larger one was not written by hand."""

FileSymbols: TypeAlias = Callable[[Path], Awaitable[tuple[Symbol, ...]]]
"""The symbols of a file; nothing if they are not known. Never fails; bounded in time."""
ConfinedSymbols: TypeAlias = Callable[[Path, Confine], Awaitable[tuple[Symbol, ...]]]
"""The symbols of a file, by a language server that is confined like this."""


async def no_symbols(path: Path) -> tuple[Symbol, ...]:
    """Nothing is known of any file."""
    return ()


async def own_symbols(path: Path) -> tuple[Symbol, ...]:
    """The symbols of a file without a language server."""
    return await to_thread.run_sync(parsed_file, path)


async def confined_symbols(path: Path, confine: Confine) -> tuple[Symbol, ...]:
    """No language server is configured."""
    return await own_symbols(path)


def source(path: Path, bytes_max: int = SOURCE_BYTES_MAX) -> str | None:
    """The text of a file; None if it cannot be read, is no text, or is too large."""
    try:
        return files.decoded(path, files.read_bytes(path, bytes_max)).text
    except (Invalid, OSError, ValueError):
        return None


def parsed_file(path: Path, bytes_max: int = SOURCE_BYTES_MAX) -> tuple[Symbol, ...]:
    """The symbols of a file without a language server. Nothing of a file that is too large."""
    text = source(path, bytes_max)
    return parsed(path.suffix, text) if text is not None else ()
