"""The seeds' Storage interface on top of the files engine: JSON values under keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from turnkeeper.store.engine import EngineError, Key, path
from turnkeeper.store.engines.files import FilesEngine, open_files

Json = Any
"""Any value that msgspec can encode as JSON. ``Any``, because callers define its shape."""


class StorageNotFound(EngineError):
    """Nothing is stored under this key."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"resource not found: {path(key)}")
        self.key = key


class Storage:
    """Write, read, update, remove and list JSON values. Open it with ``open_storage``."""

    def __init__(self, engine: FilesEngine) -> None:
        self._engine = engine

    async def write(self, key: Key, content: Json) -> None:
        """Store a value, replacing the old one."""
        await self._engine.put({key: msgspec.json.encode(content)})

    async def read(self, key: Key) -> Json:
        """The value under a key. Raises StorageNotFound."""
        (body,) = await self._engine.get([key])
        return _value(key, body)

    async def update(self, key: Key, change: Callable[[Json], Json]) -> Json:
        """Replace a value by the result of ``change``, atomically, and return it. Raises StorageNotFound.

        ``change`` runs in a worker thread. If it returns None, it has changed its argument in place. If it raises,
        nothing is stored.
        """
        stored: list[Json] = []

        def replace(body: bytes | None) -> bytes:
            value = _value(key, body)
            changed = change(value)
            stored.append(value if changed is None else changed)
            return msgspec.json.encode(stored[0])

        await self._engine.update(key, replace)
        return stored[0]

    async def remove(self, key: Key) -> None:
        """Remove the value under a key, if there is one."""
        await self._engine.put({key: None})

    async def list(self, prefix: Key) -> list[Key]:
        """The keys strictly below a prefix, in order."""
        return await self._engine.keys(prefix)

    async def aclose(self) -> None:
        """Close the store."""
        await self._engine.aclose()


async def open_storage(directory: Path) -> Storage:
    """Open the tree in a directory; create it if it does not exist. ``interop.opencode_v0`` migrates an old tree."""
    return Storage(await open_files(directory))


def _value(key: Key, body: bytes | None) -> Json:
    if body is None:
        raise StorageNotFound(key)
    return msgspec.json.decode(body)
