"""The memory engine: keeps a store in this process only; the reference for the other engines."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence

from turnkeeper.store.engine import (
    NO_DOCUMENTS,
    NO_TEXTS,
    Key,
    LogConflict,
    StoreUnavailable,
    below,
    check_append,
    path,
)
from turnkeeper.store.engines.words import words


class MemoryEngine:
    """A store in memory. No method awaits, so each call is atomic."""

    name = "memory"

    def __init__(self) -> None:
        self._logs: dict[str, list[bytes]] = {}
        self._fences: dict[str, int] = {}
        self._documents: dict[str, bytes] = {}
        self._order: list[str] = []  # The sorted paths of the documents, for bisection.
        self._texts: dict[str, list[str]] = {}  # Oldest first: a text that is written again moves to the end.
        self._version = 0
        self._is_closed = False

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
        self._refuse_if_closed()
        path((log,))
        held = self._logs.get(log, [])
        is_last = last is None or held[-1:] == [last]
        check_append(log, after, fence, length=len(held), current=self._fences.get(log, 0), is_last=is_last)
        written = [(path(key), value) for key, value in documents.items()]
        indexed = [(path(key), text) for key, text in texts.items()]
        if entries:
            self._logs.setdefault(log, []).extend(entries)
        if fence is not None:
            self._fences[log] = fence
        self._write(written)
        for place, text in indexed:
            self._texts.pop(place, None)
            if text is not None:
                self._texts[place] = words(text)
        self._version += 1

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        """See Engine.put."""
        self._refuse_if_closed()
        self._write([(path(key), value) for key, value in documents.items()])
        self._version += 1

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        self._refuse_if_closed()
        return self._logs.get(log, [])[after : None if limit is None else after + limit]

    async def length(self, log: str) -> int:
        """See Engine.length."""
        self._refuse_if_closed()
        return len(self._logs.get(log, ()))

    async def fence(self, log: str) -> int:
        """See Engine.fence."""
        self._refuse_if_closed()
        return self._fences.get(log, 0)

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """See Engine.logs."""
        self._refuse_if_closed()
        return sorted(log for log in self._logs if log > after)[:limit]

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        self._refuse_if_closed()
        return [self._documents.get(path(key)) for key in keys]

    async def scan(
        self,
        prefix: Key,
        *,
        after: Key | None = None,
        before: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        """See Engine.scan."""
        self._refuse_if_closed()
        start, end = self._below(path(prefix))
        if after is not None:
            start = max(start, bisect_right(self._order, path(after)))
        if before is not None:
            end = min(end, bisect_left(self._order, path(before)))
        count = max(end - start, 0) if limit is None else min(limit, max(end - start, 0))
        places = self._order[end - count : end][::-1] if reverse else self._order[start : start + count]
        return [(tuple(place.split("/")), self._documents[place]) for place in places]

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """See Engine.gather."""
        return [await self.scan(prefix) for prefix in prefixes]

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """See Engine.search."""
        self._refuse_if_closed()
        low, high = below(path(prefix))
        wanted = words(query)
        found = [
            tuple(place.split("/"))
            for place, held in reversed(self._texts.items())
            if wanted and low < place < high
            if all(any(word.startswith(start) for word in held) for start in wanted)
        ]
        return found[:limit]

    async def remove(
        self,
        logs: Mapping[str, int],
        prefixes: Sequence[Key],
        *,
        orphans: Mapping[Key, Key] | None = None,
    ) -> None:
        """See Engine.remove."""
        self._refuse_if_closed()
        for log, known in logs.items():
            actual = len(self._logs.get(log, ()))
            if actual > known:
                raise LogConflict(log, known, actual)
        places = [path(prefix) for prefix in prefixes]
        watched = [(path(key), path(prefix)) for key, prefix in (orphans or {}).items()]
        for log in logs:
            self._logs.pop(log, None)
            self._fences.pop(log, None)
        for place in places:
            start, end = self._below(place)
            self._discard([place, *self._order[start:end]])
            low, high = below(place)
            self._discard([held for held in self._texts if low < held < high])
        empty = [key for key, prefix in watched if self._below(prefix)[0] == self._below(prefix)[1]]
        self._discard(empty)
        self._version += 1

    async def version(self) -> int:
        """See Engine.version."""
        self._refuse_if_closed()
        return self._version

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """See Engine.inspect."""
        self._refuse_if_closed()
        held = sum(map(len, self._documents.values())) + sum(sum(map(len, log)) for log in self._logs.values())
        return {"path": "", "bytes": held, "problems": []}

    async def aclose(self) -> None:
        """See Engine.aclose."""
        self._is_closed = True

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store was closed; open it again")

    def _write(self, documents: Sequence[tuple[str, bytes | None]]) -> None:
        for place, value in documents:
            known = place in self._documents
            if value is not None:
                self._documents[place] = value
                if not known:
                    insort(self._order, place)
            elif known:
                del self._documents[place]
                del self._order[bisect_left(self._order, place)]

    def _below(self, place: str) -> tuple[int, int]:
        """The range of the documents strictly below a path."""
        low, high = below(place)
        return bisect_left(self._order, low), bisect_left(self._order, high)

    def _discard(self, places: Sequence[str]) -> None:
        self._write([(place, None) for place in places])
        for place in places:
            self._texts.pop(place, None)


async def open_memory() -> MemoryEngine:
    """A new, empty store of its own."""
    return MemoryEngine()
