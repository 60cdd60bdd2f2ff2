"""The storage engines, one file each. A new engine is a file here and a line in ENGINES."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from turnkeeper.store.engine import Engine

ENGINES: dict[str, str] = {
    "sqlite": "turnkeeper.store.sqlite_layout:open_sqlite",
    "files": "turnkeeper.store.engines.files:open_files",
    "memory": "turnkeeper.store.engines.memory:open_memory",
}
"""The name of an engine in ``--store``, and the function that opens it, imported on use."""


async def open_engine(url: str) -> Engine:
    """Open the store ``sqlite:PATH``, ``files:DIR`` or ``memory:``; create it if it does not exist."""
    scheme, separator, place = url.partition(":")
    if scheme not in ENGINES or not separator:
        known = ", ".join(f"{name}:" for name in ENGINES)
        raise ValueError(f"cannot tell which store {url!r} is; it must begin with one of {known}")
    module, _, function = ENGINES[scheme].partition(":")
    opener = getattr(import_module(module), function)
    if scheme == "memory":
        if place:
            raise ValueError(f"a memory store has no place, so {place!r} in {url!r} means nothing; write 'memory:'")
        return await cast(Callable[[], Awaitable[Engine]], opener)()
    if not place:
        raise ValueError(f"{url!r} names no place; write '{scheme}:PATH'")
    if scheme == "sqlite" and place.startswith(":memory:"):
        raise ValueError(f"{url!r} would be a file of that name; for a store in memory write 'memory:'")
    # The type checker does not know the type of a function imported by name; the contract suite opens each engine.
    return await cast(Callable[[Path], Awaitable[Engine]], opener)(Path(place).expanduser())
