"""The storage engines, one file or package each. A new engine is a file here and an entry in ``engine_table.py``."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from turnkeeper.store.engine import Engine
from turnkeeper.store.engine_table import ENGINES, named_store, shown_store


async def open_engine(url: str) -> Engine:
    """Open the store of this name, as ``sqlite:PATH``; create it if it does not exist. Raises ValueError."""
    named = named_store(url)
    if named is None:
        known = ", ".join(f"{name}:" for name in ENGINES)
        raise ValueError(f"cannot tell which store {shown_store(url)!r} is; it must begin with one of {known}")
    name, entry, place = named
    module, _, function = entry.opener.partition(":")
    opener = getattr(import_module(module), function)
    if not entry.place:
        if place:
            raise ValueError(f"a {name} store has no place, so {place!r} in {url!r} means nothing; write '{name}:'")
        return await cast(Callable[[], Awaitable[Engine]], opener)()
    if not place:
        raise ValueError(f"{url!r} names no place; write '{name}:{entry.place}'")
    # The type checker does not know the type of a function imported by name; the contract suite opens each engine.
    if not entry.is_on_disk:
        return await cast(Callable[[str], Awaitable[Engine]], opener)(url)
    if name == "sqlite" and place.startswith(":memory:"):
        raise ValueError(f"{url!r} would be a file of that name; for a store in memory write 'memory:'")
    return await cast(Callable[[Path], Awaitable[Engine]], opener)(Path(place).expanduser())
