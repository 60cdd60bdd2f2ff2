"""The files engine: the JSON tree of the seeds, readable with any editor, shared by processes, and safe from a kill.

Appends that come together share one flush. Readers never wait for a flush: only for the moment in which finished files
are renamed into place.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
    StaleFence,
    StoreUnavailable,
    path,
)
from turnkeeper.store.engines.file_disk import Disk
from turnkeeper.store.engines.file_inspect import facts
from turnkeeper.store.engines.file_journal import Intent
from turnkeeper.store.engines.file_migrations import MigrationReport, migrate_tree
from turnkeeper.store.engines.file_names import log_name, relative
from turnkeeper.store.engines.file_tree import Known, Plan, Tree, unavailable
from turnkeeper.store.engines.file_writer import Writer
from turnkeeper.store.engines.words import words

READERS_MAX = 8

T = TypeVar("T")


class FilesEngine:
    """A store in a directory. Open it with ``open_files``."""

    name = "files"

    def __init__(self, tree: Tree, migration: MigrationReport) -> None:
        self.tree = tree
        self.migration = migration
        self._writer = Writer(tree)
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
        path((log,))
        log_name(log)
        intent = Intent(
            documents=_places(documents),
            log=log,
            after=after,
            entries=[bytes(entry) for entry in entries],
            fence=fence,
            texts=[(path(key), None if text is None else " ".join(words(text))) for key, text in texts.items()],
        )

        def decide(known: Known) -> Intent:
            logs = self.tree.logs
            length, current = known.get(log) or (logs.length(log), logs.fence(log))
            if fence is not None and fence < current:
                raise StaleFence(log, fence, current)
            # What this very group has written is known to be there.
            is_other = last is not None and log not in known and logs.read(log, max(0, after - 1), 1) != [last]
            if length != after or is_other:
                raise LogConflict(log, after, length)
            known[log] = (after + len(entries), current if fence is None else fence)
            return intent

        await self._commit(Plan(decide))

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        """See Engine.put."""
        intent = Intent(documents=_places(documents))
        await self._commit(Plan(lambda known: intent))

    async def update(self, key: Key, change: Callable[[bytes | None], bytes | None]) -> None:
        """Replace a document by what ``change`` makes of it, with no other writer in between.

        ``change`` runs in a worker thread, and nothing is written if it raises.
        """
        place = path(key)
        relative(place)

        def decide(known: Known) -> Intent:
            return Intent(documents=[(place, change(self.tree.documents.read(place)))])

        await self._commit(Plan(decide, is_alone=True))

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        return await self._read(lambda: self.tree.logs.read(log, after, limit))

    async def length(self, log: str) -> int:
        """See Engine.length."""
        return await self._read(lambda: self.tree.logs.length(log))

    async def fence(self, log: str) -> int:
        """See Engine.fence."""
        return await self._read(lambda: self.tree.logs.fence(log))

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """See Engine.logs."""

        def names() -> list[str]:
            held = self.tree.log_names()
            start = bisect_right(held, after)
            return held[start : None if limit is None else start + limit]

        return await self._read(names)

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        places = [path(key) for key in keys]
        return await self._read(lambda: [self.tree.documents.read(place) for place in places])

    async def scan(
        self,
        prefix: Key,
        *,
        after: Key | None = None,
        before: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        """See Engine.scan. The first scan of a directory lists it; later ones cost what they return."""
        parent = path(prefix)
        first, last = None if after is None else path(after), None if before is None else path(before)

        return await self._read(lambda: self._below(parent, first, last, limit=limit, reverse=reverse))

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """See Engine.gather."""
        parents = [path(prefix) for prefix in prefixes]
        return await self._read(lambda: [self._below(parent) for parent in parents])

    async def keys(self, prefix: Key) -> list[Key]:
        """The keys strictly below a prefix, in order, without reading what is under them."""
        parent = path(prefix)
        walk = partial(self.tree.documents.listings.walk, parent, None, None, reverse=False)
        return [tuple(place.split("/")) for place in await self._read(lambda: list(walk()))]

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """See Engine.search."""
        below = path(prefix) + "/" if prefix else ""
        found = await self._read(lambda: self.tree.words.search(words(query), below, limit))
        return [tuple(place.split("/")) for place in found]

    async def remove(
        self,
        logs: Mapping[str, int],
        prefixes: Sequence[Key],
        *,
        orphans: Mapping[Key, Key] | None = None,
    ) -> None:
        """See Engine.remove."""
        places = [path(prefix) for prefix in prefixes]
        watched = [(path(key), path(prefix)) for key, prefix in (orphans or {}).items()]
        await self._commit(Plan(lambda known: self._removal(logs, places, watched), is_alone=True))

    async def version(self) -> int:
        """See Engine.version."""
        self._refuse_if_closed()
        try:
            return self.tree.version()
        except OSError as error:
            raise unavailable(error) from error

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """See Engine.inspect. Reads every file."""
        found = await self._read(lambda: facts(self.tree))
        problems = found["problems"]
        assert isinstance(problems, list)
        problems += self.migration.failures
        return found

    async def aclose(self) -> None:
        """See Engine.aclose."""
        if not self._is_closed:
            self._is_closed = True
            await self._writer.aclose()

    async def _commit(self, plan: Plan) -> None:
        self._refuse_if_closed()
        await self._writer.write(plan)

    async def _read(self, question: Callable[[], T]) -> T:
        self._refuse_if_closed()

        def ask() -> T:
            with self.tree.reading():
                return question()

        try:
            return await anyio.to_thread.run_sync(ask, limiter=self._readers)
        except OSError as error:
            raise unavailable(error) from error

    def _below(
        self,
        parent: str,
        after: str | None = None,
        before: str | None = None,
        *,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        places = self.tree.documents.listings.walk(parent, after, before, reverse=reverse)
        bodies = ((place, self.tree.documents.read(place)) for place in islice(places, limit))
        return [(tuple(place.split("/")), body) for place, body in bodies if body is not None]

    def _removal(self, logs: Mapping[str, int], prefixes: Sequence[str], orphans: Sequence[tuple[str, str]]) -> Intent:
        for log, known in logs.items():
            actual = self.tree.logs.length(log)
            if actual > known:
                raise LogConflict(log, known, actual)
        walk = partial(self.tree.documents.listings.walk, after=None, before=None, reverse=False)
        gone = {place for prefix in prefixes for place in walk(prefix)}
        gone.update(prefix for prefix in prefixes if prefix)
        lonely = [key for key, prefix in orphans if all(place in gone for place in walk(prefix))]
        return Intent(
            documents=[(place, None) for place in (*gone, *lonely)],
            texts=[(place, None) for place in lonely],
            removed_logs=list(logs),
            removed_texts=list(prefixes),
        )

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store was closed; open it again")


async def open_files(directory: Path, *, disk: Disk | None = None) -> FilesEngine:
    """Open the store in a directory; make it if it is not there, repair what a kill left, migrate an old tree."""
    tree = Tree(str(directory.absolute()), disk)

    def prepare() -> MigrationReport:
        tree.open()
        return migrate_tree(tree)

    try:
        return FilesEngine(tree, await anyio.to_thread.run_sync(prepare))
    except OSError as error:
        raise unavailable(error) from error


def _places(documents: Mapping[Key, bytes | None]) -> list[tuple[str, bytes | None]]:
    places = [(path(key), None if body is None else bytes(body)) for key, body in documents.items()]
    for place, _ in places:
        relative(place)
    return places
