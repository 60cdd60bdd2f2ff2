"""The calls of the files engine: a read runs in a reader thread, a write in the writer thread."""

import asyncio
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from turnkeeper.store.engine import (
    NO_DOCUMENTS,
    NO_TEXTS,
    Key,
    LogConflict,
    StoreUnavailable,
    check_append,
    path,
)
from turnkeeper.store.engines.files.disk import Disk
from turnkeeper.store.engines.files.documents import Listings
from turnkeeper.store.engines.files.inspect import facts
from turnkeeper.store.engines.files.names import relative
from turnkeeper.store.engines.files.record import Write
from turnkeeper.store.engines.files.tree import Tree, unavailable
from turnkeeper.store.engines.words import words

READERS_MAX = 8

T = TypeVar("T")


class FilesEngine:
    """A store in a directory. Open it with ``open_files``."""

    name = "files"

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.places = (Path(os.path.abspath(tree.directory)),)
        self._writer = ThreadPoolExecutor(1, "files-writer")
        self._readers = anyio.CapacityLimiter(READERS_MAX)
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
        logs = self.tree.logs
        logs.files(log)
        write = Write(
            _documents(documents),
            log,
            after,
            [bytes(entry) for entry in entries],
            fence,
            [(_place(key), None if text is None else " ".join(words(text))) for key, text in texts.items()],
        )

        def decide() -> Write:
            length = logs.length(log)
            is_last = last is None or length != after or logs.read(log, max(0, after - 1), 1) == [last]
            check_append(log, after, fence, length=length, current=logs.fence(log), is_last=is_last)
            logs.prepare(log)
            return write

        await self._write(decide)

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        """See Engine.put."""
        write = Write(_documents(documents))
        await self._write(lambda: write)

    async def update(self, key: Key, change: Callable[[bytes | None], bytes | None]) -> None:
        """Replace a document by what ``change`` makes of it, with no other writer in between.

        ``change`` runs in a worker thread, and nothing is written if it raises.
        """
        place = _place(key)
        await self._write(lambda: Write([(place, change(self.tree.documents.read(place)))]))

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        return await self._read(lambda _: self.tree.logs.read(log, after, limit))

    async def length(self, log: str) -> int:
        """See Engine.length."""
        return await self._read(lambda _: self.tree.logs.length(log))

    async def fence(self, log: str) -> int:
        """See Engine.fence."""
        return await self._read(lambda _: self.tree.logs.fence(log))

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """See Engine.logs."""

        def names(_: Listings) -> list[str]:
            held = self.tree.logs.names()
            start = bisect_right(held, after)
            return held[start : None if limit is None else start + limit]

        return await self._read(names)

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        places = [_place(key) for key in keys]
        return await self._read(lambda _: [self.tree.documents.read(place) for place in places])

    async def scan(
        self,
        prefix: Key,
        *,
        after: Key | None = None,
        before: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        """See Engine.scan. The first scan after a write lists the directory; later scans use the cached listing."""
        parent = _place(prefix)
        first, last = None if after is None else path(after), None if before is None else path(before)

        def found(listings: Listings) -> list[tuple[Key, bytes]]:
            return self._bodies(islice(listings.walk(parent, first, last, reverse=reverse), limit))

        return await self._read(found)

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """See Engine.gather."""
        parents = [_place(prefix) for prefix in prefixes]
        return await self._read(lambda listings: [self._bodies(listings.walk(parent)) for parent in parents])

    async def keys(self, prefix: Key) -> list[Key]:
        """The keys strictly below a prefix, in order, without reading their documents."""
        parent = _place(prefix)
        return [tuple(place.split("/")) for place in await self._read(lambda listings: list(listings.walk(parent)))]

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """See Engine.search."""
        below = path(prefix) + "/" if prefix else ""
        found = await self._read(lambda _: self.tree.words.search(words(query), below, limit))
        return [tuple(place.split("/")) for place in found]

    async def remove(
        self,
        logs: Mapping[str, int],
        prefixes: Sequence[Key],
        *,
        orphans: Mapping[Key, Key] | None = None,
    ) -> None:
        """See Engine.remove."""
        places = [_place(prefix) for prefix in prefixes]
        watched = [(_place(key), _place(prefix)) for key, prefix in (orphans or {}).items()]
        for log in logs:
            self.tree.logs.files(log)

        def decide() -> Write:
            for log, known in logs.items():
                actual = self.tree.logs.length(log)
                if actual > known:
                    raise LogConflict(log, known, actual)
            walk = self.tree.listings().walk
            gone = {place for prefix in places for place in (prefix, *walk(prefix)) if place}
            lonely = [key for key, prefix in watched if all(place in gone for place in walk(prefix))]
            return Write(
                [(place, None) for place in (*gone, *lonely)],
                texts=[(place, None) for place in lonely],
                removed_logs=list(logs),
                removed_texts=places,
            )

        await self._write(decide)

    async def version(self) -> int:
        """See Engine.version."""
        self._refuse_if_closed()
        try:
            return self.tree.version()
        except OSError as error:
            raise unavailable(error) from error

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """See Engine.inspect. Reads every file."""
        return await self._read(lambda _: facts(self.tree))

    async def aclose(self) -> None:
        """See Engine.aclose."""
        if not self._is_closed:
            self._is_closed = True
            last = self._writer.submit(lambda: None)
            self._writer.shutdown(wait=False)
            await asyncio.wrap_future(last)

    async def _write(self, decide: Callable[[], Write]) -> None:
        """Return once the write is durable. A cancelled write is made completely or not at all."""
        self._refuse_if_closed()
        done: Future[None] = Future()
        self._writer.submit(self.tree.write, decide, done)
        # Cancelling this wait cancels a write that has not begun.
        await asyncio.wrap_future(done)

    async def _read(self, question: Callable[[Listings], T]) -> T:
        self._refuse_if_closed()
        try:
            return await anyio.to_thread.run_sync(self.tree.read, question, limiter=self._readers)
        except OSError as error:
            raise unavailable(error) from error

    def _bodies(self, places: Iterable[str]) -> list[tuple[Key, bytes]]:
        bodies = ((place, self.tree.documents.read(place)) for place in places)
        return [(tuple(place.split("/")), body) for place, body in bodies if body is not None]

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store was closed; open it again")


async def open_files(directory: Path, *, disk: Disk | None = None) -> FilesEngine:
    """Open the store in a directory; create it if it does not exist, and finish an unfinished write."""
    tree = Tree(str(directory.absolute()), disk)
    try:
        await anyio.to_thread.run_sync(tree.open)
    except OSError as error:
        raise unavailable(error) from error
    return FilesEngine(tree)


def _documents(documents: Mapping[Key, bytes | None]) -> list[tuple[str, bytes | None]]:
    return [(_place(key), None if body is None else bytes(body)) for key, body in documents.items()]


def _place(key: Key) -> str:
    """The path of a key. Raises InvalidKey for a key that cannot be a file name."""
    place = path(key)
    relative(place)
    return place
