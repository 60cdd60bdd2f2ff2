"""The storage engines, one file each. A new engine is a file here and an entry of ENGINES in ``engine_table.py``."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from turnkeeper.store.engine import Engine
from turnkeeper.store.engine_table import ENGINES


async def open_engine(url: str) -> Engine:
    """Open the store of this name, as ``sqlite:PATH``; create it if it does not exist. Raises ValueError."""
    scheme, separator, place = url.partition(":")
    if scheme not in ENGINES or not separator:
        known = ", ".join(f"{name}:" for name in ENGINES)
        raise ValueError(f"cannot tell which store {url!r} is; it must begin with one of {known}")
    entry = ENGINES[scheme]
    module, _, function = entry.opener.partition(":")
    opener = getattr(import_module(module), function)
    if not entry.place:
        if place:
            raise ValueError(f"a {scheme} store has no place, so {place!r} in {url!r} means nothing; write '{scheme}:'")
        return await cast(Callable[[], Awaitable[Engine]], opener)()
    if not place:
        raise ValueError(f"{url!r} names no place; write '{scheme}:{entry.place}'")
    if scheme == "sqlite" and place.startswith(":memory:"):
        raise ValueError(f"{url!r} would be a file of that name; for a store in memory write 'memory:'")
    # The type checker does not know the type of a function imported by name; the contract suite opens each engine.
    return await cast(Callable[[Path], Awaitable[Engine]], opener)(Path(place).expanduser())
