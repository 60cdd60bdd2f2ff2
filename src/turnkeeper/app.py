"""The composition root: opens a store and gives the Python interface to it. The only place that builds things."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from turnkeeper.api import Turnkeeper
from turnkeeper.bus import Bus
from turnkeeper.mint import Mint
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.refusal import Invalid
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine
from turnkeeper.store.engines import open_engine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.workspace import paths

if TYPE_CHECKING:
    from turnkeeper.run.runtime import Settings


@asynccontextmanager
async def open_store(
    store: str | Engine | None = None,
    *,
    directory: str | Path | None = None,
    mint: Mint | None = None,
    settings: "Settings | Callable[[], Settings] | None" = None,
) -> AsyncIterator[Turnkeeper]:
    """Open a store (``sqlite:PATH``, ``files:DIR`` or ``memory:``; by default SQLite in the data directory).

    An engine of your own may be given instead; it is closed with the store. Settings that are a function are made when
    the first session is run.
    """
    async with look(store, directory=directory, mint=mint, settings=settings) as turnkeeper:
        raised: Exception | None = None
        async with anyio.create_task_group() as group:
            turnkeeper.group = group
            try:
                yield turnkeeper
            except Exception as error:
                raised = error  # Raised again outside: the group would wrap it, and callers catch what was raised.
            finally:
                await turnkeeper.stop()
                group.cancel_scope.cancel()
        if raised is not None:
            raise raised


@asynccontextmanager
async def look(
    store: str | Engine | None = None,
    *,
    directory: str | Path | None = None,
    mint: Mint | None = None,
    settings: "Settings | Callable[[], Settings] | None" = None,
) -> AsyncIterator[Turnkeeper]:
    """The same for those who run nothing: commands that look at sessions or change them start faster without."""
    engine = store if isinstance(store, Engine) else await _opened(store)
    bus: Bus[Notification | Delta] = Bus()
    mint = mint or Mint()
    try:
        opened = Store(engine, Journal(engine, mint, bus.publish, lambda: bus.subscribers > 0), Queries(engine), mint)
        if engine.name == "files":
            await _adopt(opened)
        yield Turnkeeper(opened, bus, Path(directory or Path.cwd()), settings)
    finally:
        bus.close()
        await engine.aclose()


async def _opened(store: str | None) -> Engine:
    """The engine of a store that is named. Raises Invalid for a name that leads to none."""
    if not isinstance(store, str | None):
        raise Invalid(f"a store is named by text such as 'sqlite:PATH', not by {store!r:.80}")
    try:
        return await open_engine(default_store() if store is None else store)
    except ValueError as error:
        raise Invalid(str(error)) from error


async def _adopt(store: Store) -> None:
    """Make a tree that opencode wrote our own: migrate it, and give its sessions logs, for they have documents only.

    The mark is set last: an adoption that failed or was killed goes on with the next opening.
    """
    [done] = await store.engine.get([keys.ADOPTED])
    if done is not None:
        return
    from turnkeeper.interop.opencode_v0.migrate import migrate

    directory = Path(str((await store.engine.inspect())["path"]))
    report = await migrate(directory)
    if await store.engine.scan(("session",), limit=1):
        from turnkeeper.interop.opencode import import_opencode

        await import_opencode(store, directory)
    if not report.failures:
        await store.engine.put({keys.ADOPTED: keys.ADOPTED_MARK})


def default_store() -> str:
    """Where sessions are kept when nobody says otherwise."""
    return f"sqlite:{paths.data(os.environ) / 'turnkeeper.db'}"


__all__ = ["Turnkeeper", "default_store", "look", "open_store"]
