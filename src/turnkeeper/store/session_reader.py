"""Reads sessions: one, its state, and lists with cursors. Never waits for a writer."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from sys import intern
from typing import Final, TypeAlias

import msgspec

from turnkeeper.model.page import Page
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value
from turnkeeper.store import documents, keys
from turnkeeper.store.cursor import check_limit, cursor, place_of
from turnkeeper.store.damaged import UNREADABLE, DamagedDocument, DamagedNames, reading, skipping
from turnkeeper.store.document_reader import DocumentReader, log_damaged
from turnkeeper.store.documents import Listing, State
from turnkeeper.store.engine import Engine, Key


class _ListPlace(Value):
    """A place in a list of sessions: after this id and time of activity."""

    updated: str
    id: str


class _Belonging(Value):
    """The project in a state document; other fields are not decoded."""

    project_id: str


_belongs = msgspec.json.Decoder(_Belonging)
_listing = msgspec.json.Decoder(Listing)

Filter: TypeAlias = Callable[[Listing], bool]
JUST_LISTED: Final[Mapping[str, Filter | None]] = {keys.LISTED: None}

PROJECTS_CACHED_MAX = 5000


class SessionReader(DocumentReader):
    """Queries for sessions."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._projects: dict[str, str] = {}
        """Cache of the project of each session. A session may have moved, so a miss is looked up again."""

    async def state(self, session_id: str) -> State:
        """The state document of a session. Raises NotFound."""
        [stored] = await self._engine.get([keys.state(session_id)])
        if stored is None:
            raise NotFound(f"there is no session {session_id!r}")
        with reading(keys.state(session_id)):
            return documents.read_state(stored)

    async def session(self, session_id: str) -> Session:
        """One session. Raises NotFound."""
        [stored] = await self._where_last([session_id])
        [whole] = await self._with_blobs([stored if stored is not None else await self._looked_up(session_id)])
        with reading(("session", session_id)):
            return documents.read_session(whole)

    async def _where_last(self, names: Sequence[str]) -> list[bytes | None]:
        """The documents of sessions under their cached projects; None if there is no project or no document."""
        # A session that moves leaves no document in its old project.
        known = [(name, self._projects[name]) for name in names if name in self._projects]
        found = await self._engine.get([keys.session(project, name) for name, project in known]) if known else ()
        by_name = {name: body for (name, _), body in zip(known, found, strict=True)}
        return [by_name.get(name) for name in names]

    async def _looked_up(self, session_id: str) -> bytes:
        state = await self.state(session_id)
        [stored] = await self._engine.get([keys.session(state.project_id, session_id)])
        if stored is None:  # The session was moved or removed between the two reads.
            if (await self.state(session_id)).project_id == state.project_id:
                raise DamagedDocument("/".join(keys.session(state.project_id, session_id)), "it is missing")
            return await self._looked_up(session_id)
        self._make_room()
        self._projects[session_id] = intern(state.project_id)
        return stored

    def _make_room(self) -> None:
        if len(self._projects) > PROJECTS_CACHED_MAX:
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
        """A page of sessions from some lists, newest activity first; each list may have a filter.

        Sessions with equal time of activity are ordered by id, which counts down with time. Damaged documents are left
        out, and the page has their names.
        """
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
        return Page(items=tuple(items), older=older, damaged=tuple(damaged))

    async def _newest(
        self, lists: Sequence[Key], since: int | None, place: _ListPlace | None, limit: int
    ) -> list[tuple[Key, bytes]]:
        """The newest keys of these lists together, after a place in any of them."""
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
        """The newest keys of one list after a place. Keys of one moment are in the order of their ids."""
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
                # The page ends inside a moment, and the reverse scan gave its last ids instead of its first.
                moment: Key = (*prefix, older[wanted][0][-2])
                found = [one for one in found if one[0][:-1] != moment]
                found += await self._engine.scan(moment, limit=limit - len(found))
        return found

    async def _sessions(self, names: Sequence[str], damaged: DamagedNames) -> list[Session]:
        """These sessions, without removed and damaged ones."""
        self._make_room()
        unknown = [name for name in names if name not in self._projects]
        states = await self._engine.get(list(map(keys.state, unknown))) if unknown else ()
        for name, state in zip(unknown, states, strict=True):
            if state is not None:
                with suppress(*UNREADABLE):  # It is looked up below, and reported as damaged then.
                    self._projects[name] = intern(_belongs.decode(state).project_id)
        there: dict[str, bytes] = {}
        for name, found in zip(names, await self._where_last(names), strict=True):
            with suppress(NotFound), skipping(("session", name), damaged):
                there[name] = found if found is not None else await self._looked_up(name)
        items: list[Session] = []
        for name, body in zip(there, await self._with_blobs(list(there.values()), damaged), strict=True):
            with skipping(("session", name), damaged):
                items.append(documents.read_session(body))
        return items

    async def children(self, session_id: str, *, recursive: bool = False) -> list[Session]:
        """The Child Sessions of a session, newest activity first; with all descendants if ``recursive``."""
        found: list[Session] = []
        pending, seen = [session_id], {session_id}
        while pending:
            parent, after = pending.pop(0), None
            while True:
                page = await self.sessions(keys.below(parent), lists={keys.UNLISTED: None}, after=after)
                log_damaged(page.damaged)
                # An imported session may be its own ancestor.
                new = [child for child in page.items if child.id not in seen]
                seen |= {child.id for child in new}
                found += new
                if recursive:
                    pending += [child.id for child in new]
                if (after := page.older) is None:
                    break
        return found


def _list_place(key: Key) -> _ListPlace:
    return _ListPlace(updated=key[-2], id=key[-1])


def _by_moment(older: list[tuple[Key, bytes]]) -> list[tuple[Key, bytes]]:
    """Keys from the newest moment to the oldest, and inside a moment by id."""
    return [one for _, same in groupby(older, key=lambda one: one[0][-2]) for one in reversed(list(same))]
