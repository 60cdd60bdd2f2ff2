"""The calls of an SQL engine that write: each checks its keys, becomes a job, and waits until the writer did it."""

from collections.abc import Collection, Mapping, Sequence

from turnkeeper.store.engine import NO_DOCUMENTS, NO_TEXTS, Key, path, paths
from turnkeeper.store.engines.jobs import Append, Removal
from turnkeeper.store.engines.writer import Writer


class QueuedWrites:
    """The methods of Engine that write."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def append(
        self,
        log: str,
        after: int,
        entries: Sequence[bytes],
        documents: Mapping[Key, bytes | None] = NO_DOCUMENTS,
        *,
        texts: Mapping[Key, str | None] = NO_TEXTS,
        fence: int | None = None,
        last: bytes | None = None,
    ) -> None:
        """See Engine.append."""
        self._paths([(log,)])
        written = list(zip(self._paths(documents), documents.values(), strict=True))
        indexed = list(zip(self._paths(texts), texts.values(), strict=True)) if texts else []
        await self._writer.submit(Append(log, after, entries, written, indexed, fence, last))

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        """See Engine.put."""
        written = list(zip(self._paths(documents), documents.values(), strict=True))
        await self._writer.submit(Append(None, 0, (), written, (), None, None))

    async def remove(
        self,
        logs: Mapping[str, int],
        prefixes: Sequence[Key],
        *,
        orphans: Mapping[Key, Key] | None = None,
    ) -> None:
        """See Engine.remove."""
        watched = [(path(key), path(prefix)) for key, prefix in (orphans or {}).items()]
        await self._writer.submit(Removal(logs, [path(prefix) for prefix in prefixes], watched))

    def _paths(self, keys: Collection[Key]) -> list[str]:
        """The paths of keys that are to be written. Raises InvalidKey."""
        return paths(keys)
