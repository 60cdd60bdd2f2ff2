"""Store: an open engine with the journal that writes to it and the queries that read from it."""

from pathlib import Path

import msgspec

from turnkeeper.mint import Mint
from turnkeeper.store.engine import Engine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries


class Store(msgspec.Struct, frozen=True):
    """The objects that every use case needs."""

    engine: Engine
    journal: Journal
    queries: Queries
    mint: Mint
    places: tuple[Path, ...] = ()
    """The files or folders in which the engine stores everything; none if it is in memory or elsewhere."""
    projects: set[str] = msgspec.field(default_factory=set)
    """Projects whose documents this process has seen; they are never removed."""
