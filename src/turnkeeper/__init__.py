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
    """Open a store of sessions: ``sqlite:PATH``, ``files:DIR`` or ``memory:``; by default that of the user.

    An Engine can be given instead, which is closed with the store. ``directory`` is the directory of new sessions, by
    default the current one. ``mint`` replaces the clock and the ids in tests. ``settings`` configure the runtime, for
    example its permission requests and the transport to providers.
    """
    # Imported here, because the command line imports this module only for the version.
    from turnkeeper.app import open_store

    return open_store(store, directory=directory, mint=mint, settings=settings)


def __getattr__(name: str) -> object:
    """The decorator for custom tools, loaded when it is asked for: only files with tools need it."""
    if name == "tool":
        from turnkeeper.tools.custom import tool

        return tool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
