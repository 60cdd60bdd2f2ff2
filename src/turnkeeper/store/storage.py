"""The seeds' Storage: JSON values under keys in the files engine's tree, with its locks and its safety."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from turnkeeper.store.engine import EngineError, Key, path
from turnkeeper.store.engines.files import FilesEngine, open_files

Json = Any
"""A JSON value: whatever msgspec can write as JSON, and what it reads back. Any: its shape is the caller's affair."""


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
        """Store a value, over what was there."""
        await self._engine.put({key: msgspec.json.encode(content)})

    async def read(self, key: Key) -> Json:
        """The value under a key. Raises NotFound."""
        (body,) = await self._engine.get([key])
        return _value(key, body)

    async def update(self, key: Key, change: Callable[[Json], Json]) -> Json:
        """Replace a value by what ``change`` makes of it, with no other writer in between, and return it.

        ``change`` runs in a worker thread. If it returns None, what it did to the value it was given is stored. If it
        raises, nothing is. Raises NotFound.
        """
        stored: list[Json] = []

        def replace(body: bytes | None) -> bytes:
            value = _value(key, body)
            changed = change(value)
            stored.append(value if changed is None else changed)
            return msgspec.json.encode(stored[0])

        await self._engine.update(key, replace)
        return stored[-1]

    async def remove(self, key: Key) -> None:
        """Take away what is stored under a key, if anything is."""
        await self._engine.put({key: None})

    async def list(self, prefix: Key) -> list[Key]:
        """The keys strictly below a prefix, in order."""
        return await self._engine.keys(prefix)

    async def aclose(self) -> None:
        """Let go of the store."""
        await self._engine.aclose()


async def open_storage(directory: Path) -> Storage:
    """Open the tree in a directory; make it if it does not exist. ``interop.opencode_v0`` migrates an old one."""
    return Storage(await open_files(directory))


def _value(key: Key, body: bytes | None) -> Json:
    if body is None:
        raise StorageNotFound(key)
    return msgspec.json.decode(body)
