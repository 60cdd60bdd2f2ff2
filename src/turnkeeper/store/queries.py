"""The read side: sessions, lists, messages and their parts, from documents alone. Never waits for a writer."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import groupby
from sys import intern
from typing import Final, TypeAlias, TypeVar

import msgspec

from turnkeeper.core import blobs
from turnkeeper.core.limits import LEDGER_PAGE, STREAM_PAGE
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.parts import Part
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value, encode
from turnkeeper.store import documents, keys
from turnkeeper.store.damaged import UNREADABLE, DamagedDocument, DamagedNames, reading, skipping
from turnkeeper.store.documents import Listing, State
from turnkeeper.store.engine import Engine, Key
from turnkeeper.store.page import Page, check_limit, cursor, place_of
from turnkeeper.store.written import MessageWithParts, Written

log = logging.getLogger(__name__)

__all__ = ["Found", "MessageWithParts", "Queries"]

V = TypeVar("V", bound=Value)


class Found(Value):
    """Where a search found its words: a session's title, or a part of a message."""

    session_id: str
    message_id: str | None = None
    part_id: str | None = None


class _ListPlace(Value):
    """A place in a list of sessions: behind this session as it stood then. Activity since then does not move it."""

    updated: str
    id: str


class _MessagePlace(Value):
    """A place in a history."""

    seq: int


class _Belonging(Value):
    """The project of a session, of all that its state document says."""

    project_id: str


_belongs = msgspec.json.Decoder(_Belonging)
_listing = msgspec.json.Decoder(Listing)
_name = msgspec.json.Decoder(str)
_placed = msgspec.json.Decoder(_MessagePlace)
_diffs = msgspec.json.Decoder(tuple[FileDiff, ...])

Filter: TypeAlias = Callable[[Listing], bool]
JUST_LISTED: Final[Mapping[str, Filter | None]] = {keys.LISTED: None}

PROJECTS_KEPT = 5000
"""Of so many sessions the project is known without a look."""
FEW = 20
"""Where there are hardly ever more, so many are read first: an engine is quicker with what is bounded."""
WALKED_MAX = 2000
"""So many messages of a whole history are read together; then others have a turn."""


class Queries:
    """Everything that can be asked of a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._projects: dict[str, str] = {}  # Where sessions were found last: it may have changed, and is looked at.

    async def state(self, session_id: str) -> State:
        """Where a session's log stands. Raises NotFound."""
        stored = await self.written_state(session_id)
        with reading(keys.state(session_id)):
            return documents.read_state(stored)

    async def written_state(self, session_id: str) -> bytes:
        """The same as it is written: another one whenever something happened. Raises NotFound."""
        [stored] = await self._engine.get([keys.state(session_id)])
        if stored is None:
            raise NotFound(f"there is no session {session_id!r}")
        return stored

    async def session(self, session_id: str) -> Session:
        """One session. Raises NotFound."""
        stored = await self.written_session(session_id)
        with reading(("session", session_id)):
            return documents.read_session(stored)

    async def written_session(self, session_id: str) -> bytes:
        """The same as it is written. Raises NotFound."""
        [stored] = await self._where_last([session_id])
        if stored is None:
            stored = await self._looked_up(session_id)
        return await self._spelt(stored)

    async def _where_last(self, names: Sequence[str]) -> list[bytes | None]:
        """The documents of sessions where they were found last; None for one that never was, or is not there now."""
        # A session that moves leaves no document behind, so what is found is the session.
        known = [(name, self._projects[name]) for name in names if name in self._projects]
        found = await self._engine.get([keys.session(project, name) for name, project in known]) if known else ()
        by_name = {name: body for (name, _), body in zip(known, found, strict=True)}
        return [by_name.get(name) for name in names]

    async def _looked_up(self, session_id: str) -> bytes:
        state = await self.state(session_id)
        [stored] = await self._engine.get([keys.session(state.project_id, session_id)])
        if stored is None:  # It moved to another project, or went, between the two reads.
            if (await self.state(session_id)).project_id == state.project_id:
                raise DamagedDocument("/".join(keys.session(state.project_id, session_id)), "it is missing")
            return await self._looked_up(session_id)
        self._make_room()
        self._projects[session_id] = intern(state.project_id)
        return stored

    def _make_room(self) -> None:
        if len(self._projects) > PROJECTS_KEPT:
            self._projects.clear()

    async def sessions(
        self,
        scope: Key = keys.STORE,
        *,
        lists: Mapping[str, Filter | None] = JUST_LISTED,
        since: int | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[Session]:
        """A page of sessions from some lists, newest activity first; each list may be filtered by what it says.

        Sessions with the same time of activity come newest first, too: their ids count down.
        """
        found, older, damaged = await self._page(scope, lists, since, limit, after)
        items: list[Session] = []
        for name, body in found:
            with skipping(("session", name), damaged):
                items.append(documents.read_session(body))
        return Page(items=tuple(items), older=older, damaged=tuple(damaged))

    async def written_sessions(
        self,
        scope: Key = keys.STORE,
        *,
        lists: Mapping[str, Filter | None] = JUST_LISTED,
        since: int | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[bytes]:
        """A page of sessions as they are written. A document that is no JSON is left out and named."""
        found, older, damaged = await self._page(scope, lists, since, limit, after)
        return Page(items=tuple(body for _, body in found), older=older, damaged=tuple(damaged))

    async def _page(
        self, scope: Key, lists: Mapping[str, Filter | None], since: int | None, limit: int, after: str | None
    ) -> tuple[list[tuple[str, bytes]], str | None, DamagedNames]:
        """The documents of a page by their sessions' ids, the cursor to the next page, and what was left out."""
        limit = check_limit(limit)
        damaged: DamagedNames = []
        place = place_of(after, _ListPlace) if after is not None else None
        names: list[Key] = []
        while len(names) <= limit:
            step = max(64, limit + 1)
            found = await self._newest([keys.recent(scope, one) for one in lists], since, place, step)
            for key, body in found:
                keep = lists[key[-3]]
                with skipping(key, damaged):
                    if keep is None or keep(_listing.decode(body)):
                        names.append(key)
            if len(found) < step:
                break
            place = _list_place(found[-1][0])
        items = await self._sessions([key[-1] for key in names[:limit]], damaged)
        older = cursor(_list_place(names[limit - 1])) if len(names) > limit else None
        return items, older, damaged

    async def _newest(
        self, lists: Sequence[Key], since: int | None, place: _ListPlace | None, limit: int
    ) -> list[tuple[Key, bytes]]:
        """The newest entries of these lists together, behind a place that may be in any of them."""
        found: list[tuple[Key, bytes]] = []
        for prefix in lists:
            found += await self._newest_of(prefix, since, place, limit)
        if len(lists) > 1:
            found.sort(key=lambda one: one[0][-1])
            found.sort(key=lambda one: one[0][-2], reverse=True)
        return found[:limit]

    async def _newest_of(
        self, prefix: Key, since: int | None, place: _ListPlace | None, limit: int
    ) -> list[tuple[Key, bytes]]:
        """The newest entries of one list behind a place. Its keys count up, so ids of one moment are turned round."""
        found: list[tuple[Key, bytes]] = []
        floor: Key | None = (*prefix, keys.stamp(since - 1), "~") if since else None
        end: Key | None = None
        if place is not None:
            end = (*prefix, place.updated)
            if floor is None or end > floor:
                found = await self._engine.scan(end, after=(*end, place.id), limit=limit)
        wanted = limit - len(found)
        if wanted > 0:
            older = await self._engine.scan(prefix, after=floor, before=end, limit=wanted + 1, reverse=True)
            found += _by_moment(older[:wanted])
            if len(older) > wanted and older[wanted][0][-2] == older[wanted - 1][0][-2]:
                # The page ends inside a moment, and the engine gave the end of it.
                moment: Key = (*prefix, older[wanted][0][-2])
                found = [one for one in found if one[0][:-1] != moment]
                found += await self._engine.scan(moment, limit=limit - len(found))
        return found

    async def _sessions(self, names: Sequence[str], damaged: DamagedNames) -> list[tuple[str, bytes]]:
        """The documents of these sessions by id."""
        self._make_room()
        unknown = [name for name in names if name not in self._projects]
        states = await self._engine.get(list(map(keys.state, unknown))) if unknown else ()
        for name, state in zip(unknown, states, strict=True):
            if state is not None:
                with suppress(*UNREADABLE):  # It is looked up below, and named then.
                    self._projects[name] = intern(_belongs.decode(state).project_id)
        found = await self._where_last(names)
        there: list[tuple[str, bytes]] = []
        for name, one in zip(names, found, strict=True):
            if (body := await self._if_there(name, one, damaged)) is not None:
                there.append((name, body))
        if not blobs.is_marked([body for _, body in there]):
            return there
        return [(name, await self._spelt(body, damaged)) for name, body in there]

    async def _if_there(self, session_id: str, found: bytes | None, damaged: DamagedNames) -> bytes | None:
        """The document of a session, unless it was removed in between or is no JSON."""
        with suppress(NotFound), skipping(("session", session_id), damaged):
            found = found if found is not None else await self._looked_up(session_id)
            _is_json(found)
            return found
        return None

    async def children(self, session_id: str, *, recursive: bool = False) -> list[Session]:
        """The Child Sessions of a session, newest activity first; with all their descendants if asked."""
        found: list[Session] = []
        pending = [session_id]
        while pending:
            parent, after = pending.pop(0), None
            while True:
                page = await self.sessions(keys.below(parent), lists={keys.UNLISTED: None}, after=after)
                _tell(page.damaged)
                found.extend(page.items)
                if recursive:
                    pending.extend(child.id for child in page.items)
                if (after := page.older) is None:
                    break
        return found

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """The task list."""
        [stored] = await self._engine.get([keys.todo(session_id)])
        with reading(keys.todo(session_id)):
            return documents.read_todos(await self._spelt(stored)) if stored is not None else ()

    async def ledger(self, session_id: str | None = None) -> AsyncIterator[LedgerRow]:
        """The rows of the ledger, of one session or of all; by session, then in the order they were recorded."""
        prefix: Key = keys.under("ledger", session_id) if session_id is not None else ("ledger",)
        place: Key | None = None
        while True:
            found = await self._engine.scan(prefix, after=place, limit=LEDGER_PAGE)
            for key, body in found:
                with reading(key):
                    row = documents.read_ledger_row(body)
                yield row
            if len(found) < LEDGER_PAGE:
                return
            place = found[-1][0]

    async def diffs(self, session_id: str) -> tuple[FileDiff, ...]:
        """What the session changed on disk."""
        [stored] = await self._engine.get([keys.diff(session_id)])
        with reading(keys.diff(session_id)):
            return _diffs.decode(await self._spelt(stored)) if stored is not None else ()

    async def message(self, session_id: str, message_id: str) -> MessageWithParts:
        """One message with its parts. Raises NotFound."""
        return (await self.written_message(session_id, message_id)).value()

    async def written_message(self, session_id: str, message_id: str) -> Written:
        """The same as it is written. Raises NotFound."""
        found = await self._written(session_id, [message_id])
        if not found:
            raise NotFound(f"there is no message {message_id!r} in session {session_id!r}")
        [whole] = await self._all_spelt(found)
        return whole

    async def part(self, message_id: str, part_id: str) -> Part:
        """One part. Raises NotFound."""
        key = keys.part(message_id, part_id)
        [stored], pieces = await self._engine.get([key]), await self._engine.scan(key)
        if stored is None:
            raise NotFound(f"there is no part {part_id!r} in message {message_id!r}")
        with reading(key):
            [part] = documents.in_order([(key, await self._spelt(stored)), *pieces])
            return part

    async def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]:
        """A page of the history in the order it happened: the newest ones, or those next to a cursor.

        What cannot be read is left out, and named in the page.
        """
        page = await self.written(session_id, limit=check_limit(limit), before=before, after=after)
        damaged = list(page.damaged)
        items = tuple(value for one in page.items for value in one.values(damaged))
        return Page(items=items, older=page.older, newer=page.newer, damaged=tuple(damaged))

    async def written(
        self, session_id: str, *, limit: int, before: str | None = None, after: str | None = None
    ) -> Page[Written]:
        """The same as it is written, and of any length."""
        low = keys.order(session_id, place_of(after, _MessagePlace).seq) if after is not None else None
        high = keys.order(session_id, place_of(before, _MessagePlace).seq) if before is not None else None
        forward = after is not None and before is None
        found = await self._engine.scan(
            keys.under("order", session_id), after=low, before=high, limit=limit + 1, reverse=not forward
        )
        if not found:
            await self.state(session_id)
        kept = found[:limit] if forward else found[:limit][::-1]
        damaged: DamagedNames = []
        items = await self._written(session_id, _names(kept, damaged))
        more_older = len(found) > limit if not forward else after is not None
        more_newer = len(found) > limit if forward else before is not None
        if found and not kept:  # None are wanted, but for the way to the older ones.
            return Page(items=(), older=cursor(_MessagePlace(seq=_seq(found[0]) + 1)))
        return Page(
            items=tuple(await self._all_spelt(items, damaged)),
            older=_seq_cursor(kept[0]) if kept and more_older else None,
            newer=_seq_cursor(kept[-1]) if kept and more_newer else None,
            damaged=tuple(damaged),
        )

    async def written_whole(self, session_id: str) -> AsyncIterator[list[Written]]:
        """The whole history as it is written, many at a time: a walk is cheaper than to ask for each message."""
        damaged: DamagedNames = []
        async for found in self._walk(session_id, damaged):
            yield await self._all_spelt(found, damaged)
        _tell(damaged)

    async def _walk(self, session_id: str, damaged: DamagedNames | None = None) -> AsyncIterator[list[Written]]:
        found = await self._engine.scan(keys.under("message", session_id))
        if not found:
            await self.state(session_id)
        placed = [(seq, key, body) for key, body in found for seq in _place_of_message(key, body, damaged)]
        placed.sort()
        for begin in range(0, len(placed), WALKED_MAX):
            yield await self._joined([(key, body) for _, key, body in placed[begin : begin + WALKED_MAX]])

    async def waiting(self, session_id: str) -> list[MessageWithParts]:
        """Prompts that are admitted and not yet part of the history, in the order they came."""
        found = await self._engine.scan(keys.under("inbox", session_id), limit=FEW)
        if len(found) == FEW:
            found = await self._engine.scan(keys.under("inbox", session_id))
        whole = [await self._spelt(body) for _, body in found]
        prompts = sorted(map(documents.read_admitted, whole), key=lambda prompt: prompt.seq)
        return [MessageWithParts(info=prompt.message, parts=prompt.parts) for prompt in prompts]

    async def stream(
        self, session_id: str, *, reverse: bool = True, damaged: DamagedNames | None = None
    ) -> AsyncIterator[MessageWithParts]:
        """Every message, newest first unless asked otherwise, a few at a time: a history is never loaded whole.

        A document that cannot be read raises DamagedDocument; with a list for their names, it is left out.
        """
        async for found in self._pages(session_id, STREAM_PAGE, reverse=reverse, damaged=damaged):
            for one in await self._all_spelt(found, damaged):
                for message in one.values(damaged):
                    yield message

    async def stored(self, session_id: str) -> AsyncIterator[Iterator[MessageWithParts]]:
        """The history as the store has it, marks in the place of blobs, many at a time: for copies inside the store."""
        async for found in self._walk(session_id):
            yield (one.value() for one in found)

    async def _pages(
        self, session_id: str, size: int, *, reverse: bool, damaged: DamagedNames | None
    ) -> AsyncIterator[list[Written]]:
        place: Key | None = None
        while True:
            low, high = (None, place) if reverse else (place, None)
            found = await self._engine.scan(
                keys.under("order", session_id), after=low, before=high, limit=size, reverse=reverse
            )
            yield await self._written(session_id, _names(found, damaged))
            if len(found) < size:
                return
            place = found[-1][0]

    async def search(self, words: str, *, session_id: str | None = None, limit: int = 50) -> list[Found]:
        """Where these words were said, newest first, in all sessions or in one."""
        prefix: Key = keys.under("text", session_id) if session_id is not None else ("text",)
        return [_found(key) for key in await self._engine.search(words, prefix, limit=limit)]

    async def _written(self, session_id: str, names: Sequence[str]) -> list[Written]:
        """The documents of these messages; one that went in between is left out."""
        wanted = [keys.message(session_id, name) for name in names]
        infos = await self._engine.get(wanted)
        return await self._joined([(key, info) for key, info in zip(wanted, infos, strict=True) if info is not None])

    async def _joined(self, infos: Sequence[tuple[Key, bytes]]) -> list[Written]:
        groups = await self._engine.gather([("part", key[2]) for key, _ in infos])
        return [Written(info, parts, key) for (key, info), parts in zip(infos, groups, strict=True)]

    async def whole(self, value: V) -> V:
        """A value taken from a view, with its blobs read back into it."""
        names = blobs.references(encode(value))
        texts = {name: body.decode("utf-8", "replace") for name, body in (await self._blobs(names)).items()}
        return blobs.lower(value, texts) if texts else value

    async def _spelt(self, stored: bytes, damaged: DamagedNames | None = None) -> bytes:
        """A document with its blobs in the place of their marks."""
        names = blobs.references(stored)
        return blobs.spelt(stored, await self._blobs(names, damaged)) if names else stored

    async def _all_spelt(self, found: list[Written], damaged: DamagedNames | None = None) -> list[Written]:
        if not blobs.is_marked([body for one in found for body in one.bodies()]):
            return found
        names = {name for one in found for body in one.bodies() for name in blobs.references(body)}
        texts = await self._blobs(names, damaged)
        return [one.spelt(texts) for one in found] if texts else found

    async def _blobs(self, names: Iterable[str], damaged: DamagedNames | None = None) -> dict[str, bytes]:
        """Blobs by name, if they are what their names say. One that is missing went with its session, or is damaged."""
        wanted = sorted(names)
        found = await self._engine.get([keys.blob(name) for name in wanted]) if wanted else ()
        for name, body in zip(wanted, found, strict=True):
            if body is None and damaged is not None:
                damaged.append("/".join(keys.blob(name)))
            elif body is not None and sha256(body).hexdigest() != name:
                with skipping(keys.blob(name), damaged):
                    raise DamagedDocument("/".join(keys.blob(name)), "it was altered")
        return {name: body for name, body in zip(wanted, found, strict=True) if body is not None}


def _list_place(key: Key) -> _ListPlace:
    return _ListPlace(updated=key[-2], id=key[-1])


def _by_moment(older: list[tuple[Key, bytes]]) -> list[tuple[Key, bytes]]:
    """Entries from the newest moment to the oldest, and inside a moment by id."""
    return [one for _, same in groupby(older, key=lambda one: one[0][-2]) for one in reversed(list(same))]


def _seq_cursor(found: tuple[Key, bytes]) -> str:
    return cursor(_MessagePlace(seq=_seq(found)))


def _seq(found: tuple[Key, bytes]) -> int:
    return int(found[0][-1])


def _place_of_message(key: Key, body: bytes, damaged: DamagedNames | None) -> list[int]:
    """The place of a message in the history; nothing if it cannot be read."""
    with skipping(key, damaged):
        return [_placed.decode(body).seq]
    return []


def _names(found: Sequence[tuple[Key, bytes]], damaged: DamagedNames | None) -> list[str]:
    """The messages that entries of the order name."""
    names: list[str] = []
    for key, body in found:
        with skipping(key, damaged):
            names.append(_name.decode(body))
    return names


def _is_json(body: bytes) -> None:
    """Raise what a decoder raises if this is no JSON."""
    msgspec.json.decode(body, type=msgspec.Raw)


def _tell(damaged: Iterable[str]) -> None:
    for name in damaged:
        log.warning("%s cannot be read and is left out; run `turnkeeper doctor`", name)


def _found(key: Key) -> Found:
    _, session_id, *place = key
    if len(place) == 2:
        return Found(session_id=session_id, message_id=place[0], part_id=place[1])
    return Found(session_id=session_id)
