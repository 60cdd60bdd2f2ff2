"""Copy a whole store to another one, of any engine: logs are copied and verified, everything else is derived anew.

A log is copied in pages, each verified by the hash chain before it is written. Then the target folds what it has read
back, which verifies the chain again and writes documents and search texts. A copy that was cut off is continued: the
length of each log in the target says how far it came.
"""

from collections.abc import AsyncIterator, Callable
from typing import Final

from turnkeeper.core import blobs, entry
from turnkeeper.core.entry import Damaged
from turnkeeper.core.limits import LOG_PAGE
from turnkeeper.model.refusal import Conflict
from turnkeeper.model.value import Value, encode
from turnkeeper.sessions.listing import every_id
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, Key
from turnkeeper.store.store import Store

MARK: Final[Key] = ("meta", "copy")
"""In the target while a copy is under way: the store that is copied."""
DERIVED: Final = frozenset({*keys.OWN, "session", "part", "blob", "blobuser", "recent", "fork", "receipt"})
"""Kinds of documents that follow from the logs, or are copied with them."""
DOCUMENTS_AT_ONCE: Final = 200
BLOBS_AT_ONCE: Final = 16
PASSES_MAX: Final = 3
_OF_ONE_STORE: Final = frozenset({MARK, keys.ADOPTED})
"""Documents that say something about one store, and nothing about its copy."""
_LAST_SEGMENT: Final = "\U0010ffff"


class CopyProblem(Value):
    """A session that was not copied, and why."""

    session_id: str
    message: str


class Copied(Value):
    """What a copy has done. ``continued`` sessions were partly or wholly there from an earlier try."""

    sessions: int
    events: int
    blobs: int
    continued: int
    problems: tuple[CopyProblem, ...] = ()


async def copy_store(
    source: Store, target: Store, *, name: str, progress: Callable[[int, int], None] | None = None
) -> Copied:
    """Copy all sessions and projects. ``name`` is what people call the source; it has no password.

    Raises Conflict if the target holds anything that is not a copy of this source, begun earlier, or if the source is
    being written. ``progress`` is called with the number of copied sessions and of all.
    """
    copying = _Copying(source, target)
    await _begin(source.engine, target.engine, name)
    for _ in range(PASSES_MAX):
        names = [one for one in await every_id(source.engine) if not await copying.is_copied(one)]
        if not names:
            break
        for done, session_id in enumerate(names, start=1):
            await copying.session(session_id)
            if progress is not None:
                progress(done, len(names))
    else:
        raise Conflict(f"{name!r} is written while it is copied; stop what writes, and run the same command again")
    await copying.other_documents()
    await target.engine.put({MARK: None})
    return copying.result()


async def _begin(source: Engine, target: Engine, name: str) -> None:
    """Refuse a target that holds anything else than the beginning of this copy, and mark it."""
    [mark] = await target.get([MARK])
    wanted = encode({"from": name})
    if mark is None:
        is_empty = not await target.logs(limit=1)
        is_empty = is_empty and all(key in _OF_ONE_STORE for key, _ in await target.scan((), limit=3))
        # One that was killed when it was whole has no mark any more, and who repeats the command cannot know.
        if not is_empty and not await _has_same_logs(source, target):
            raise Conflict("the target is not empty; copy to a new store, or import into this one")
        await target.put({MARK: wanted})
        return
    if mark != wanted:
        raise Conflict(f"the target holds the beginning of another copy ({mark.decode(errors='replace')}); empty it")
    known = set(await every_id(source))
    foreign = next((one for one in await every_id(target) if one not in known), None)
    if foreign is not None:
        raise Conflict(f"the target has session {foreign!r}, which {name!r} has not; empty the target, and begin anew")


async def _has_same_logs(source: Engine, target: Engine) -> bool:
    """Whether both stores have the same sessions, with logs of the same length and the same last entry."""
    names = sorted(await every_id(source))
    if not names or names != sorted(await every_id(target)):
        return False
    for name in names:
        length = await source.length(name)
        if length != await target.length(name):
            return False
        if await source.read(name, after=length - 1) != await target.read(name, after=length - 1):
            return False
    return True


class _Copying:
    def __init__(self, source: Store, target: Store) -> None:
        self._source, self._from, self._to, self._target = source, source.engine, target.engine, target
        self._lengths: dict[str, int] = {}
        self._blobs: set[str] = set()
        self._problems: dict[str, CopyProblem] = {}
        self._continued: set[str] = set()
        self._events = 0

    def result(self) -> Copied:
        return Copied(
            sessions=len(self._lengths.keys() - self._problems.keys()),
            events=self._events,
            blobs=len(self._blobs),
            continued=len(self._continued - self._problems.keys()),
            problems=tuple(self._problems.values()),
        )

    async def is_copied(self, session_id: str) -> bool:
        """Whether this run has copied all that the session has now."""
        return session_id in self._problems or self._lengths.get(session_id) == await self._from.length(session_id)

    async def session(self, session_id: str) -> None:
        """Copy what the target does not have of a session. A damaged one is reported and left out."""
        try:
            head = await self._log(session_id)
        except Damaged as error:
            self._problems[session_id] = CopyProblem(session_id=session_id, message=str(error))
            return
        # Reads the log back, verifies it and writes its documents. A view that an earlier pass left in memory would not
        # be brought up to date: entries were appended, and the documents by which the journal sees that were not.
        self._target.journal.cache.forget(session_id)
        view = await self._target.journal.view(session_id)
        length = await self._to.length(session_id)
        [last] = await self._to.read(session_id, after=length - 1)
        if view.seq != length or entry.digest(last) != head:
            raise Conflict(
                f"session {session_id!r} reads back from the target with another hash than it was written with"
            )
        if fence := await self._from.fence(session_id):
            await self._to.append(session_id, length, [], fence=fence)
        self._lengths[session_id] = length

    async def _log(self, session_id: str) -> str:
        """Copy the entries of a log that the target does not have; the hash of the last one."""
        have = await self._to.length(session_id)
        head = entry.genesis(session_id)
        if have:
            head = await self._continue(session_id, have)
        async for after, page in self._pages(session_id, have):
            for _, link in entry.chain(session_id, page, after=after, prev=head):
                head = link
            await self._to.append(session_id, after, page, await self._referred(page))
            self._events += len(page)
        return head

    async def _continue(self, session_id: str, have: int) -> str:
        [ours] = await self._from.read(session_id, after=have - 1, limit=1) or [b""]
        [theirs] = await self._to.read(session_id, after=have - 1, limit=1)
        if ours != theirs:
            raise Conflict(
                f"session {session_id!r} has another history in the target; empty the target, and begin anew"
            )
        if session_id not in self._lengths:
            self._continued.add(session_id)
        return entry.digest(theirs)

    async def _pages(self, session_id: str, after: int) -> AsyncIterator[tuple[int, list[bytes]]]:
        while page := await self._from.read(session_id, after=after, limit=LOG_PAGE):
            yield after, page
            after += len(page)

    async def _referred(self, page: list[bytes]) -> dict[Key, bytes | None]:
        """The blobs that entries refer to and that were not copied yet."""
        names = sorted({name for body in page for name in blobs.references(body)} - self._blobs)
        found: dict[Key, bytes | None] = {}
        for start in range(0, len(names), BLOBS_AT_ONCE):
            wanted = [keys.blob(name) for name in names[start : start + BLOBS_AT_ONCE]]
            stored = await self._from.get(wanted)
            found.update({key: body for key, body in zip(wanted, stored, strict=True) if body is not None})
        self._blobs.update(key[1] for key in found)
        return found

    async def other_documents(self) -> None:
        """Copy the documents that no log has, such as projects."""
        after: Key | None = None
        while page := await self._from.scan((), after=after, limit=DOCUMENTS_AT_ONCE):
            kind = page[0][0][0]
            if kind in DERIVED:
                after = (kind, _LAST_SEGMENT)  # Behind all documents of the kind.
                continue
            own = {key: body for key, body in page if key[0] == kind and key not in _OF_ONE_STORE}
            await self._to.put(dict(own))
            after = next(reversed([key for key, _ in page if key[0] == kind]))
