"""Turnkeeper keeps every turn: a runtime, server and command line for durable AI-agent sessions.

async with turnkeeper.open("sqlite:sessions.db") as tk:
    session = await tk.create(title="Fix the parser")
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.model.version import __version__

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.mint import Mint
    from turnkeeper.run.runtime import Settings
    from turnkeeper.store.engine import Engine
    from turnkeeper.tools.custom import tool as tool

__all__ = ["__version__", "open", "tool"]


def open(
    store: "str | Engine | None" = None,
    *,
    directory: str | Path | None = None,
    mint: "Mint | None" = None,
    settings: "Settings | None" = None,
) -> "AbstractAsyncContextManager[Turnkeeper]":
    """Open a store of sessions: ``sqlite:PATH``, ``files:DIR`` or ``memory:``; by default the user's own.

    An engine of your own may be given instead; it is closed with the store.
    ``directory`` is where new sessions work (by default the current one). ``mint`` gives time and ids in tests.
    ``settings`` say how sessions are run: who is asked for permission, and through what providers are reached.
    """
    # Imported here: the command line asks for the version alone and must not pay for the rest.
    from turnkeeper.app import open_store

    return open_store(store, directory=directory, mint=mint, settings=settings)


def __getattr__(name: str) -> object:
    """The decorator for custom tools, loaded when it is asked for: only files with tools need it."""
    if name == "tool":
        from turnkeeper.tools.custom import tool

        return tool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
