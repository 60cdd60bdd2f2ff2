"""The interface of storage engines: an engine stores bytes in logs and under keys, and knows nothing of sessions.

Every engine keeps these promises (``turnkeeper.testing.engine_contract`` checks them):

- ``append`` is atomic, and once it has returned, the write survives a kill and a power cut (not in memory).
- Readers see all of an append or nothing, and never wait for a writer.
- Keys are ordered by the UTF-8 bytes of their segments joined with ``/``.
- Several processes may use one store at the same time.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

Key: TypeAlias = tuple[str, ...]
"""The key of a document, such as ``("part", message_id, part_id)``. No segment is empty or has ``/`` or NUL."""

NO_DOCUMENTS: Mapping[Key, bytes | None] = {}
NO_TEXTS: Mapping[Key, str | None] = {}

_BEHIND_ALL_PATHS = "\U0010ffff" * 8


class EngineError(Exception):
    """A call that an engine refuses or cannot do. Nothing of it was written."""


class InvalidKey(EngineError, ValueError):
    """An invalid key or log name: empty, with ``/`` or NUL, not text, or too long for the engine."""


class LogConflict(EngineError):
    """Another writer was first: the log does not have the expected length."""

    def __init__(self, log: str, expected: int, actual: int) -> None:
        has = f"has {actual} entries, not {expected}" if actual != expected else "was begun anew"
        super().__init__(f"log {log!r} {has}; read what is new and decide again")
        self.log, self.expected, self.actual = log, expected, actual


class StaleFence(EngineError):
    """The caller was replaced as the owner of this log and must stop."""

    def __init__(self, log: str, given: int, current: int) -> None:
        super().__init__(
            f"another process took {log!r} over while this one was stopped or silent, so this one writes no more to it "
            f"(fence {given}, now {current})"
        )
        self.log, self.given, self.current = log, given, current


class StoreUnavailable(EngineError):
    """The disk or the file failed (full, read-only, locked, damaged). The call changed nothing."""


class StoreFull(StoreUnavailable):
    """The disk has no room for the write."""


class StoreDamaged(StoreUnavailable):
    """A part of the store is damaged; other parts may still be readable."""


@runtime_checkable
class Engine(Protocol):
    """Stores entries in logs, documents under keys, and texts for search."""

    name: str
    """The name of the engine in ``--store``: ``sqlite``, ``files``, ``postgres``, ``memory``."""

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
        """Append entries to a log, write documents (``None`` removes) and index texts, atomically.

        Raises LogConflict if the log is not exactly ``after`` long. A ``fence`` lower than the one the log was last
        written with raises StaleFence; a higher one replaces it; ``None`` neither checks nor changes it.

        ``last``, if given, must be the newest entry, else LogConflict: a log that was removed and created again may
        have the same length.
        """

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        """Write documents without entries, atomically."""

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """The entries of a log from number ``after + 1`` on. An unknown log is empty.

        A lost entry between readable ones is empty bytes.
        """

    async def length(self, log: str) -> int:
        """The number of entries of a log."""

    async def fence(self, log: str) -> int:
        """The fence the log was last written with; 0 if none."""

    async def logs(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Names of logs in order, after the name ``after``."""

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The documents under these keys, in their order, from one snapshot."""

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

        ``("ab", "c")`` is not below ``("a",)``. ``reverse`` walks from the end. ``()`` is the whole store.
        The cost depends on the documents returned, not on the size of the store.
        """

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        """The documents strictly below each prefix, in key order, from one snapshot."""

    async def search(self, query: str, prefix: Key, *, limit: int = 50) -> list[Key]:
        """Keys below ``prefix`` whose text has, for each word of the query, a word with this prefix; newest text first.

        Words are runs of letters and digits, compared without case. A query without words finds nothing.
        """

    async def remove(
        self,
        logs: Mapping[str, int],
        prefixes: Sequence[Key],
        *,
        orphans: Mapping[Key, Key] | None = None,
    ) -> None:
        """Remove logs, and every document and text at or below the prefixes, atomically.

        ``logs`` has the length of each log that the caller read; LogConflict if a log is longer, because the caller
        then does not know all its documents.

        ``orphans`` maps a key to a prefix: the key is removed too if nothing is left below its prefix.
        """

    async def version(self) -> int:
        """A number that changes whenever any process has written to the store. Cheap enough to poll."""

    async def inspect(self) -> dict[str, str | int | list[str]]:
        """Facts for ``doctor``: ``path``, ``bytes`` on disk, library versions, and ``problems`` of the files."""

    async def aclose(self) -> None:
        """Wait for accepted appends, then close the store."""


@runtime_checkable
class Watched(Protocol):
    """An optional ability of engines: to report the writes of other processes, which are found by polling otherwise."""

    def watch(self, heard: Callable[[Collection[str] | None], None]) -> Callable[[], None]:
        """Call ``heard`` on this event loop with the logs that other processes have written; with None for any log.

        Ends when the returned function is called, or with the engine. Reports may be lost, so poll as well.
        """


@runtime_checkable
class Messenger(Protocol):
    """An optional ability of engines: to carry transient messages between the processes that have the store open.

    A message is text without line breaks and NUL, of any meaning. Those of one process arrive in the order in which
    they were sent, each once or not at all; none is stored. No call waits.
    """

    message_bytes_max: int
    """How long a message may be, in UTF-8; a longer one is dropped."""

    def is_heard(self) -> bool:
        """Whether another process may hear messages. It is unsure for a moment after the first call, and says yes."""

    def send(self, messages: Sequence[str]) -> int:
        """Send messages to the other processes; the number of those that were dropped because too many wait."""

    def hear(self, heard: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call ``heard`` on this event loop with the messages of other processes. Ends as ``Watched.watch`` does."""


@runtime_checkable
class OnDisk(Protocol):
    """An optional ability of engines: to store in files or folders of this machine."""

    places: tuple[Path, ...]
    """The files and folders, with those that accompany an open file. Absolute."""


def check_append(log: str, after: int, fence: int | None, *, length: int, current: int, is_last: bool) -> None:
    """The guard of every append. Raises as Engine.append.

    ``length`` and ``current`` are those of the log now, and ``is_last`` is whether its newest entry is as expected.
    """
    if fence is not None and fence < current:
        raise StaleFence(log, fence, current)
    if length != after or not is_last:
        raise LogConflict(log, after, length)


def path(key: Key) -> str:
    """A key as one string; the order of these strings is the order of keys. Raises InvalidKey."""
    try:
        joined = "/".join(key)
    except TypeError as error:
        raise InvalidKey(f"a key segment is text: {key!r:.200}") from error
    # Tests of the whole string, which are fast for most keys.
    is_whole = joined.count("/") == len(key) - 1 and "\x00" not in joined and "" not in key
    if is_whole and joined.isascii():
        return joined
    if key and not (is_whole and _is_text(joined)):
        raise InvalidKey(f"a key segment may not be empty or hold '/', NUL or half a character: {key!r:.200}")
    return joined


def below(path: str) -> tuple[str, str]:
    """The exclusive bounds of the paths strictly below a path; "0" is the character after "/"."""
    return (path + "/", path + "0") if path else ("", _BEHIND_ALL_PATHS)


def is_key(key: Key) -> bool:
    """Whether a key is valid; the key of a damaged row may not be."""
    try:
        return bool(path(key)) and "\ufffd" not in "".join(key)
    except ValueError:
        return False


def paths(keys: Collection[Key]) -> list[str]:
    """The paths of many keys, checked as one long string: a fork writes thousands of keys."""
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
