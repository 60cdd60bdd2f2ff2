"""The seam to durable truth: an engine keeps bytes in logs and under keys, and has never heard of a session.

Every engine keeps these promises (``turnkeeper.testing.engine_contract`` checks them):

- ``append`` is all or nothing, and once it has returned, the write survives a kill and a power cut.
- Readers see an append whole or not at all, and never wait for a writer.
- Keys are ordered by the UTF-8 bytes of their segments joined with ``/``.
- Several processes may use one store at the same time.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

Key: TypeAlias = tuple[str, ...]
"""The place of a document, e.g. ``("part", message_id, part_id)``. No segment is empty or holds ``/`` or NUL."""

NO_DOCUMENTS: Mapping[Key, bytes | None] = {}
NO_TEXTS: Mapping[Key, str | None] = {}


class EngineError(Exception):
    """Something an engine refuses or cannot do. Nothing of the refused call was written."""


class InvalidKey(EngineError, ValueError):
    """A key or the name of a log that cannot be one: empty, with ``/`` or NUL, not text, or too long for the engine."""


class LogConflict(EngineError):
    """Another writer was first: the log is not as long as the caller believed."""

    def __init__(self, log: str, expected: int, actual: int) -> None:
        has = f"has {actual} entries, not {expected}" if actual != expected else "was begun anew"
        super().__init__(f"log {log!r} {has}; read what is new and decide again")
        self.log, self.expected, self.actual = log, expected, actual


class StaleFence(EngineError):
    """The caller was replaced as the owner of this log and must stop."""

    def __init__(self, log: str, given: int, current: int) -> None:
        super().__init__(f"log {log!r} is owned under fence {current}; {given} is stale, stop writing")
        self.log, self.given, self.current = log, given, current


class StoreUnavailable(EngineError):
    """The disk or the file said no (full, read-only, locked, damaged). The store is as it was before the call."""


class StoreFull(StoreUnavailable):
    """The disk has no room for the write."""


class StoreDamaged(StoreUnavailable):
    """What is on the disk cannot be read as a store; other parts of the store may still be sound."""


@runtime_checkable
class Engine(Protocol):
    """Where bytes are kept."""

    name: str
    """How ``--store`` spells this engine's kind: ``sqlite``, ``files``, ``memory``."""

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
        """Add entries to a log, write documents (``None`` removes) and index texts, all or nothing.

        Raises LogConflict if the log is not exactly ``after`` long. A ``fence`` lower than the one the log was last
        written with raises StaleFence; a higher one replaces it; ``None`` neither checks nor changes it.

        ``last``, if given, must be the newest entry, else LogConflict: a log that was removed and begun anew may be
        just as long.
        """
        ...

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        """Write documents that belong to no log, all or nothing."""
        ...

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """The entries of a log from number ``after + 1`` on. An unknown log is empty.

        An entry that is lost, between others that are not, is empty bytes.
        """
        ...

    async def length(self, log: str) -> int:
        """How many entries a log has."""
        ...

    async def fence(self, log: str) -> int:
        """The fence the log was last written with; 0 if none."""
        ...

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Names of logs in order, from the first one behind ``after``."""
        ...

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The documents under these keys, in the same order, as of one moment."""
        ...

    async def scan(
        self,
        prefix: Key,
        *,
        after: Key | None = None,
        before: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        """Documents strictly below ``prefix`` and strictly between ``after`` and ``before``, in key order.

        ``("a",)`` does not hold ``("ab", "c")``. ``reverse`` walks from the end. ``()`` is the whole store.
        Cost depends on what is returned, never on what the store holds.
        """
        ...

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """The documents strictly below each prefix, in key order, all as of one moment."""
        ...

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """Keys below ``prefix`` whose text holds a word beginning with each word of the query; newest text first.

        Words are runs of letters and digits, compared without case. A query without words finds nothing.
        """
        ...

    async def remove(
        self,
        logs: Mapping[str, int],
        prefixes: Sequence[Key],
        *,
        orphans: Mapping[Key, Key] | None = None,
    ) -> None:
        """Remove logs, and every document and text at or below the prefixes, all or nothing.

        ``logs`` gives each log's length as the caller knows it; LogConflict if one has grown since, for then the
        caller cannot know all that belongs to it.

        ``orphans`` maps a key to a prefix: the key goes too, if after the removal nothing is left below that prefix.
        """
        ...

    async def version(self) -> int:
        """A number that changes whenever any process has written to the store. Cheap enough to poll."""
        ...

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """Facts for ``doctor``: ``path``, ``bytes`` on disk, build versions, and ``problems`` found in the medium."""
        ...

    async def aclose(self) -> None:
        """Wait for accepted appends, then let go of the store."""
        ...


def path(key: Key) -> str:
    """A key as one string; the order of these strings is the order of keys. Raises InvalidKey."""
    try:
        joined = "/".join(key)
    except TypeError as error:
        raise InvalidKey(f"a key segment is text: {key!r:.200}") from error
    # Whole-string tests, and those first that most keys pass.
    is_whole = joined.count("/") == len(key) - 1 and "\x00" not in joined and "" not in key
    if is_whole and joined.isascii():
        return joined
    if key and not (is_whole and _is_text(joined)):
        raise InvalidKey(f"a key segment may not be empty or hold '/', NUL or half a character: {key!r:.200}")
    return joined


def is_key(key: Key) -> bool:
    """Whether a document can stand under this key; the key of a damaged row may be none."""
    try:
        return bool(path(key)) and "\ufffd" not in "".join(key)
    except ValueError:
        return False


def paths(keys: Collection[Key]) -> list[str]:
    """The paths of many keys, which are looked at as if they were one long key: a fork writes thousands."""
    try:
        joined = list(map("/".join, keys))
    except TypeError:
        return list(map(path, keys))
    whole = "/".join(joined)
    is_whole = whole.count("/") == sum(map(len, keys)) - 1 and "//" not in f"/{whole}/" and "\x00" not in whole
    return joined if is_whole and whole.isascii() else list(map(path, keys))


def _is_text(joined: str) -> bool:
    """Whether a string can be written as UTF-8."""
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return True
