"""Examine the documents that need more than one session: leftovers, list entries, blobs and their users."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import TypeAlias

import msgspec

from turnkeeper.core import entry
from turnkeeper.model.value import Value
from turnkeeper.sessions.diagnosis import Problem, problem
from turnkeeper.sessions.doctor_session import ADVICE_FIX, ADVICE_LOG, named
from turnkeeper.store import documents, keys
from turnkeeper.store.damaged import UNREADABLE
from turnkeeper.store.engine import Engine, Key, LogConflict, StoreDamaged, is_key

PAGE = 500
BLOBS_AT_ONCE = 16

ScannedDocuments: TypeAlias = Sequence[tuple[Key, bytes]]
Owned: TypeAlias = tuple[Key, str]
"""The key of a document and the session it belongs to."""


class _Owned(Value):
    """The field of a part or a receipt that has its session."""

    session_id: str


_SEGMENTS = {"session": 3, "part": 3, "blobuser": 3}
"""The least number of segments of the keys of a kind; for other kinds it is two."""

_owned = msgspec.json.Decoder(_Owned)


class Sweep:
    """A scan of all documents. ``known`` are the sessions with a log; those in ``sealed`` are not examined."""

    def __init__(self, engine: Engine, known: set[str], sealed: set[str | None], stray: set[Key], *, fix: bool) -> None:
        self._engine, self._fix = engine, fix
        self._known, self._sealed, self._stray = known, sealed, stray
        self._leftovers: dict[str | None, list[Key]] = {}
        self._surplus: dict[str, list[Key]] = {}
        self._misplaced: list[Key] = []
        self.problems: list[Problem] = []

    async def run(self, mentioned: Mapping[str, tuple[str, int]]) -> None:
        """Scan the documents. ``mentioned`` has the blobs of all logs, with a session and an event for each."""
        is_whole = all([await self._walked(walk) for walk in self._walks(mentioned)])
        self._report_misplaced()
        if not is_whole:
            return  # Documents without an owner may belong to sessions that could not be read.
        for session_id, found in self._leftovers.items():
            await self._leftover(session_id, found)
        for owner, found in self._surplus.items():
            await self._drop(owner, found)

    def _walks(self, mentioned: Mapping[str, tuple[str, int]]) -> Iterator[Awaitable[None]]:
        for kind in (*keys.ONE_EACH, *keys.MANY_EACH):  # The examination of each session has compared these.
            yield self._walk(kind, _none_wrong, lambda key, _: key[1])
        yield self._walk("session", self._unlisted, lambda key, _: key[2])
        yield self._walk("recent", self._unlisted, lambda key, _: key[-1])
        yield self._walk("fork", self._unlisted, lambda key, _: key[-1])
        yield self._walk("part", self._without_message, _PartOwners())
        yield self._walk("receipt", self._unreceipted, lambda _, body: owner_of(body))
        yield self._walk("blobuser", self._unused, lambda key, _: key[2])
        yield self._blobs(dict(mentioned))

    async def _walked(self, walk: Awaitable[None]) -> bool:
        """Whether a scan was complete. An unreadable page of the file is reported, and other scans continue."""
        try:
            await walk
        except StoreDamaged as error:
            self.problems.append(problem("medium", str(error), ADVICE_LOG))
            return False
        return True

    async def _walk(
        self,
        kind: str,
        wrong: Callable[[list[Owned]], Awaitable[list[Owned]]],
        owner: Callable[[Key, bytes], str | None],
    ) -> None:
        async for page in self._pages((kind,), PAGE):
            owned: list[Owned] = []
            for key, body in page:
                if not is_key(key) or len(key) < _SEGMENTS.get(kind, 2):
                    self._misplaced.append(key)
                    continue
                session_id = owner(key, body)
                if session_id is None or not await self._has_log(session_id):
                    self._leftovers.setdefault(session_id, []).append(key)
                elif session_id not in self._sealed and key not in self._stray:
                    owned.append((key, session_id))
            # Checked twice, because a session may change between the scan and the check.
            suspects = await self._still_there(await wrong(owned))
            for key, session_id in await wrong(suspects):
                self._surplus.setdefault(session_id, []).append(key)

    def _report_misplaced(self) -> None:
        if self._misplaced:
            message = f"documents stand under keys that are none: {named(self._misplaced)}"
            self.problems.append(problem("medium", message, ADVICE_LOG))

    async def _still_there(self, suspects: list[Owned]) -> list[Owned]:
        bodies = await self._engine.get([key for key, _ in suspects]) if suspects else []
        return [one for one, body in zip(suspects, bodies, strict=True) if body is not None]

    async def _pages(self, prefix: Key, limit: int) -> AsyncIterator[ScannedDocuments]:
        after: Key | None = None
        while page := await self._engine.scan(prefix, after=after, limit=limit):
            yield page
            after = page[-1][0]

    async def _has_log(self, session_id: str) -> bool:
        if session_id not in self._known and await self._engine.length(session_id):
            self._known.add(session_id)  # It was created during the examination.
        return session_id in self._known

    async def _unlisted(self, found: list[Owned]) -> list[Owned]:
        """Session documents and list entries under keys that their session does not have any more."""
        names = sorted({session_id for _, session_id in found})
        states = await self._engine.get([keys.state(name) for name in names])
        places = [
            keys.session(state.project_id, name)
            for name, one in zip(names, states, strict=True)
            if (state := documents.state_or_none(one)) is not None
        ]
        right: set[Key] = set(places)
        for one in await self._engine.get(places):
            if one is not None:
                with suppress(*UNREADABLE):  # The examination of its session reported it.
                    right.update(keys.places(documents.read_session(one)))
        return [one for one in found if one[0] not in right]

    async def _without_message(self, found: list[Owned]) -> list[Owned]:
        return await self._without(found, [keys.message(session_id, key[1]) for key, session_id in found])

    async def _unreceipted(self, found: list[Owned]) -> list[Owned]:
        """Receipts of prompts that the log does not have at that number."""
        bodies = await self._engine.get([key for key, _ in found]) if found else []
        wrong: list[Owned] = []
        for (key, session_id), body in zip(found, bodies, strict=True):
            seq = _place(body)
            said = await self._engine.read(session_id, after=seq - 1, limit=1) if seq else []
            if entry.admitted(said) != [key[1]]:
                wrong.append((key, session_id))
        return wrong

    async def _unused(self, found: list[Owned]) -> list[Owned]:
        return await self._without(found, [keys.blob_used(key[2], key[1]) for key, _ in found])

    async def _without(self, found: list[Owned], wanted: list[Key]) -> list[Owned]:
        """The documents for which the required other document does not exist."""
        present = await self._engine.get(wanted)
        return [one for one, body in zip(found, present, strict=True) if body is None]

    async def _leftover(self, session_id: str | None, suspects: list[Key]) -> None:
        """Report documents of a session without a log; without a session document they are removed by ``fix``."""
        bodies = await self._engine.get(suspects)
        found = [key for key, body in zip(suspects, bodies, strict=True) if body is not None]
        if not found:
            return  # The session was removed during the examination.
        if any(key[0] in ("state", "session") for key in found):
            message = f"the session has documents but no log: {named(found)}"
            self.problems.append(problem("lost log", message, ADVICE_LOG, session_id=session_id, seq=1))
            return
        fixed = False
        if self._fix:
            try:
                await self._engine.remove({session_id: 0} if session_id else {}, found)
                fixed = True
            except LogConflict:
                return  # It was created during the examination.
        self.problems.append(problem("surplus document", named(found), ADVICE_FIX, session_id=session_id, fixed=fixed))

    async def _drop(self, session_id: str, found: list[Key]) -> None:
        fixed = False
        if self._fix:
            length = await self._engine.length(session_id)
            try:
                await self._engine.append(session_id, length, [], dict.fromkeys(found))
                fixed = True
            except LogConflict:
                return  # The session is written; the next examination checks it again.
        self.problems.append(problem("surplus document", named(found), ADVICE_FIX, session_id=session_id, fixed=fixed))

    async def _blobs(self, mentioned: dict[str, tuple[str, int]]) -> None:
        """Check that each blob has the hash in its name and a user, and that each reference has its blob."""
        async for page in self._pages(("blob",), BLOBS_AT_ONCE):
            users = await self._engine.gather([("blobuser", key[1]) for key, _ in page])
            for (key, body), group in zip(page, users, strict=True):
                owner, place = mentioned.pop(key[1], (None, None))
                if sha256(body).hexdigest() != key[1]:
                    message = f"{key[1]} is not what its name says"
                    self.problems.append(problem("damaged blob", message, ADVICE_LOG, session_id=owner, seq=place))
                elif not group:
                    await self._drop_blob(key)
        for name, (owner, seq) in mentioned.items():
            [late] = await self._engine.get([keys.blob(name)])
            if late is None and await self._engine.length(owner):
                message = f"event {seq} refers to {name}"
                self.problems.append(problem("missing blob", message, ADVICE_LOG, session_id=owner, seq=seq))

    async def _drop_blob(self, key: Key) -> None:
        prefix = ("blobuser", key[1])
        if await self._engine.scan(prefix, limit=1):
            return  # A session has begun to use it.
        if self._fix:
            await self._engine.remove({}, [], orphans={key: prefix})
        self.problems.append(problem("unused blob", f"no session refers to {key[1]}", ADVICE_FIX, fixed=self._fix))


async def _none_wrong(_: list[Owned]) -> list[Owned]:
    return []


class _PartOwners:
    """The session of a part, and of a piece of a part, which follows its part in key order."""

    def __init__(self) -> None:
        self._message_id = ""
        self._owners: dict[str, str | None] = {}

    def __call__(self, key: Key, body: bytes) -> str | None:
        if key[1] != self._message_id:
            self._message_id, self._owners = key[1], {}
        if len(key) == 3:
            self._owners[key[2]] = owner_of(body)
        return self._owners.get(key[2])


def _place(body: bytes | None) -> int:
    """The event number in a receipt; 0 if it cannot be read."""
    try:
        return documents.read_admission(body).seq if body is not None else 0
    except UNREADABLE:
        return 0


def owner_of(body: bytes) -> str | None:
    """The session id of a stored part or receipt; None if it cannot be read."""
    try:
        return _owned.decode(body).session_id
    except UNREADABLE:
        return None
