"""Reads messages with their parts: one, pages with cursors, and whole histories. Never waits for a writer."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

import msgspec

from turnkeeper.core.limits import STREAM_PAGE
from turnkeeper.model.message import Message
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.page import Page
from turnkeeper.model.parts import Part
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import Value
from turnkeeper.store import documents, keys
from turnkeeper.store.cursor import check_limit, cursor, place_of
from turnkeeper.store.damaged import UNREADABLE, DamagedDocument, DamagedNames, reading, skipping
from turnkeeper.store.documents import State
from turnkeeper.store.engine import Key
from turnkeeper.store.session_reader import SessionReader

WAITING_USUAL = 20
"""Limit of the first scan of an inbox: an engine is quicker with a bounded scan, and few inboxes have more."""
WALKED_MAX = 2000
"""Messages of a whole history that are read at once; then other tasks may run."""


class _MessagePlace(Value):
    """A place in a history."""

    seq: int


_name = msgspec.json.Decoder(str)
_placed = msgspec.json.Decoder(_MessagePlace)


class _Documents(NamedTuple):
    """The documents of one message."""

    key: Key
    info: bytes
    parts: list[tuple[Key, bytes]]
    """Sorted by key, not in message order; the keys of added text are below the key of the part."""

    def value(self) -> MessageWithParts:
        """The message. Raises DamagedDocument."""
        try:
            return MessageWithParts(info=documents.read_message(self.info), parts=tuple(documents.in_order(self.parts)))
        except UNREADABLE as error:
            damaged: DamagedNames = []
            self._readable(damaged)
            raise DamagedDocument(damaged[0] if damaged else "/".join(self.key), error) from error

    def values(self, damaged: DamagedNames | None) -> Iterator[MessageWithParts]:
        """The message. With a list for damaged names: its readable parts, or nothing if it is unreadable itself."""
        try:
            yield self.value()
        except DamagedDocument:
            if damaged is None:
                raise
            rest = self._readable(damaged)
            if rest is not None:
                yield rest.value()

    def _readable(self, damaged: DamagedNames) -> "_Documents | None":
        """The message without the parts that cannot be read; None if it cannot be read itself."""
        parts: list[tuple[Key, bytes]] = []
        for key, body in self.parts:
            with skipping(key, damaged):
                (documents.read_part if len(key) == 3 else documents.read_piece)(body)
                parts.append((key, body))
        with skipping(self.key, damaged):
            documents.read_message(self.info)
            return self._replace(parts=parts)
        return None


class MessageReader(SessionReader):
    """Queries for messages."""

    async def message(self, session_id: str, message_id: str) -> MessageWithParts:
        """One message with its parts. Raises NotFound."""
        found = await self._documents(session_id, [message_id])
        if not found:
            raise NotFound(f"there is no message {message_id!r} in session {session_id!r}")
        [whole] = await self._filled(found)
        return whole.value()

    async def info(self, session_id: str, message_id: str) -> Message:
        """One message without its parts. Raises NotFound."""
        key = keys.message(session_id, message_id)
        [stored] = await self._engine.get([key])
        if stored is None:
            raise NotFound(f"there is no message {message_id!r} in session {session_id!r}")
        [whole] = await self._with_blobs([stored])
        with reading(key):
            return documents.read_message(whole)

    async def newest(self, session_id: str) -> Message | None:
        """The newest message without its parts; None if there is none."""
        for name in _names(await self._engine.scan(keys.under("order", session_id), limit=1, reverse=True), None):
            return await self.info(session_id, name)
        return None

    async def part(self, message_id: str, part_id: str) -> Part:
        """One part. Raises NotFound."""
        key = keys.part(message_id, part_id)
        [stored], pieces = await self._engine.get([key]), await self._engine.scan(key)
        if stored is None:
            raise NotFound(f"there is no part {part_id!r} in message {message_id!r}")
        [whole] = await self._with_blobs([stored])
        with reading(key):
            [part] = documents.in_order([(key, whole), *pieces])
            return part

    async def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]:
        """A page of the history, oldest first: the newest messages, or those next to a cursor.

        Damaged documents are left out, and the page has their names.
        """
        limit = check_limit(limit)
        low = keys.order(session_id, place_of(after, _MessagePlace).seq) if after is not None else None
        high = keys.order(session_id, place_of(before, _MessagePlace).seq) if before is not None else None
        forward = after is not None and before is None
        found = await self._engine.scan(
            keys.under("order", session_id), after=low, before=high, limit=limit + 1, reverse=not forward
        )
        if not found:
            await self.state(session_id)
        kept = found[:limit] if forward else found[:limit][::-1]
        more_older = len(found) > limit if not forward else after is not None
        more_newer = len(found) > limit if forward else before is not None
        damaged: DamagedNames = []
        stored = await self._filled(await self._documents(session_id, _names(kept, damaged)), damaged)
        return Page(
            items=tuple([value for one in stored for value in one.values(damaged)]),
            older=_seq_cursor(kept[0]) if kept and more_older else None,
            newer=_seq_cursor(kept[-1]) if kept and more_newer else None,
            damaged=tuple(damaged),
        )

    async def waiting(self, session_id: str) -> list[MessageWithParts]:
        """The prompts in the inbox, in the order of admission."""
        found = await self._engine.scan(keys.under("inbox", session_id), limit=WAITING_USUAL)
        if len(found) == WAITING_USUAL:
            found = await self._engine.scan(keys.under("inbox", session_id))
        whole = await self._with_blobs([body for _, body in found])
        prompts = sorted(map(documents.read_admitted, whole), key=lambda prompt: prompt.seq)
        return [MessageWithParts(info=prompt.message, parts=prompt.parts) for prompt in prompts]

    async def stream(
        self, session_id: str, *, reverse: bool = True, damaged: DamagedNames | None = None
    ) -> AsyncIterator[MessageWithParts]:
        """Every message, newest first by default, read a few at a time.

        A damaged document raises DamagedDocument; with a list ``damaged`` for the names, it is left out.
        """
        place: Key | None = None
        while True:
            low, high = (None, place) if reverse else (place, None)
            found = await self._engine.scan(
                keys.under("order", session_id), after=low, before=high, limit=STREAM_PAGE, reverse=reverse
            )
            stored = await self._documents(session_id, _names(found, damaged))
            for one in await self._filled(stored, damaged):
                for message in one.values(damaged):
                    yield message
            if len(found) < STREAM_PAGE:
                return
            place = found[-1][0]

    async def walk(
        self, session_id: str, *, with_marks: bool = False, damaged: DamagedNames | None = None
    ) -> AsyncIterator[Iterator[MessageWithParts]]:
        """The whole history in order, read many messages at a time: quicker than ``stream`` for a whole history.

        ``with_marks`` keeps marks instead of blobs, for copies inside the store. A damaged document raises
        DamagedDocument; with a list ``damaged`` for the names, it is left out.
        """
        found = await self._engine.scan(keys.under("message", session_id))
        if not found:
            await self.state(session_id)
        placed = [(seq, key, body) for key, body in found for seq in _place_of_message(key, body, damaged)]
        placed.sort()
        for begin in range(0, len(placed), WALKED_MAX):
            stored = await self._joined([(key, body) for _, key, body in placed[begin : begin + WALKED_MAX]])
            whole = stored if with_marks else await self._filled(stored, damaged)
            yield (value for one in whole for value in one.values(damaged))

    async def _documents(self, session_id: str, names: Sequence[str]) -> list[_Documents]:
        """The documents of these messages; removed messages are left out."""
        wanted = [keys.message(session_id, name) for name in names]
        infos = await self._engine.get(wanted)
        return await self._joined([(key, info) for key, info in zip(wanted, infos, strict=True) if info is not None])

    async def _joined(self, infos: Sequence[tuple[Key, bytes]]) -> list[_Documents]:
        groups = await self._engine.gather([("part", key[2]) for key, _ in infos])
        return [_Documents(key, info, parts) for (key, info), parts in zip(infos, groups, strict=True)]

    async def _filled(self, found: list[_Documents], damaged: DamagedNames | None = None) -> list[_Documents]:
        """The documents with blobs in place of their marks."""
        bodies = [body for one in found for body in (one.info, *(part for _, part in one.parts))]
        whole = iter(await self._with_blobs(bodies, damaged))
        return [one._replace(info=next(whole), parts=[(key, next(whole)) for key, _ in one.parts]) for one in found]


def end_cursor(state: State) -> str | None:
    """The cursor after the newest message; None if there are no messages."""
    return place_cursor(state.seq + 1) if state.messages else None


def place_cursor(seq: int) -> str:
    """The cursor at a seq: ``before`` it, or ``after`` it."""
    return cursor(_MessagePlace(seq=seq))


def _seq_cursor(found: tuple[Key, bytes]) -> str:
    return place_cursor(int(found[0][-1]))


def _place_of_message(key: Key, body: bytes, damaged: DamagedNames | None) -> list[int]:
    """The seq of a message in a list; empty if the message cannot be read."""
    with skipping(key, damaged):
        return [_placed.decode(body).seq]
    return []


def _names(found: Sequence[tuple[Key, bytes]], damaged: DamagedNames | None) -> list[str]:
    """The message ids in documents of the index ``order``."""
    names: list[str] = []
    for key, body in found:
        with skipping(key, damaged):
            names.append(_name.decode(body))
    return names
