"""The storage engines, one file or package each. A new engine is a file here and an entry in ``engine_table.py``."""

import errno
import os
import stat
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path

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
    # The type checker does not know the type of a function imported by name; the contract suite opens each engine.
    opener: Callable[..., Awaitable[Engine]] = getattr(import_module(module), function)
    if not entry.place:
        if place:
            raise ValueError(f"a {name} store has no place, so {place!r} in {url!r} means nothing; write '{name}:'")
        return await opener()
    if not place:
        raise ValueError(f"{url!r} names no place; write '{name}:{entry.place}'")
    if not entry.is_on_disk:
        return await opener(url)
    if name == "sqlite" and place.startswith(":memory:"):
        raise ValueError(f"{url!r} would be a file of that name; for a store in memory write 'memory:'")
    path = Path(place).expanduser()
    _check_kind(url, path, is_directory=entry.place == "DIR")
    return await opener(path)


def _check_kind(url: str, path: Path, *, is_directory: bool) -> None:
    """Raise ValueError if what is at a path cannot be a store: an engine would report a disk that fails, or wait."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{url!r} cannot be a store: it is a loop of symbolic links; name another path") from error
        return  # It does not exist yet, or cannot be looked at, which the engine reports.
    except ValueError as error:
        raise ValueError(f"{url!r} cannot be a store: a path has no NUL character in it") from error
    if is_directory and not stat.S_ISDIR(mode):
        raise ValueError(f"{url!r} cannot be a store: it is not a directory; name a directory")
    if not is_directory and stat.S_ISDIR(mode):
        raise ValueError(f"{url!r} cannot be a store: it is a directory; name a file in it")
    if not is_directory and not stat.S_ISREG(mode):
        raise ValueError(f"{url!r} cannot be a store: it is not a regular file; name another path")
