"""All queries of a store. They read documents only, and never wait for a writer."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from turnkeeper.core.limits import LEDGER_PAGE
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.session import FileDiff
from turnkeeper.model.share import HostedShare
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value
from turnkeeper.store import documents, keys
from turnkeeper.store.cursor import check_limit
from turnkeeper.store.damaged import UNREADABLE, reading
from turnkeeper.store.documents import SessionAsks
from turnkeeper.store.engine import Key
from turnkeeper.store.message_reader import MessageReader

V = TypeVar("V")
D = TypeVar("D")

_diffs = msgspec.json.Decoder(tuple[FileDiff, ...])


class SearchHit(Value):
    """A search hit: the title of a session, or a part of a message."""

    session_id: str
    message_id: str | None = None
    part_id: str | None = None


class Queries(MessageReader):
    """All queries of a store: sessions, messages, task lists, ledger, diffs and search."""

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """The task list."""
        return await self._one(keys.todo(session_id), documents.read_todos, ())

    async def asks(self, session_id: str | None = None) -> list[SessionAsks]:
        """The requests to the user that are open, by session; of one session or of all."""
        if session_id is None:
            found = await self._engine.scan(("ask",))
        else:
            [stored] = await self._engine.get([keys.asks(session_id)])
            found = [(keys.asks(session_id), stored)] if stored is not None else []
        asks: list[SessionAsks] = []
        for (key, _), body in zip(found, await self._with_blobs([body for _, body in found]), strict=True):
            with reading(key):
                asks.append(documents.read_asks(body))
        return asks

    async def answered(self) -> dict[str, frozenset[str]]:
        """By session, the requests that are answered and whose calls have not gone on.

        What cannot be read is left out: ``doctor`` reports it.
        """
        found: dict[str, frozenset[str]] = {}
        for key, body in await self._engine.scan(("ask",)):
            with suppress(*UNREADABLE):
                asks = documents.read_asks(body).asks
                if unused := frozenset(one.request.id for one in asks if one.reply is not None and not one.is_applied):
                    found[key[-1]] = unused
        return found

    async def ledger(self, session_id: str | None = None) -> AsyncIterator[LedgerRow]:
        """The rows of the ledger, of one session or of all; by session, then in the order of recording."""
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
        """The file changes of a session."""
        return await self._one(keys.diff(session_id), _diffs.decode, ())

    async def hosted(self, session_id: str) -> HostedShare | None:
        """What is stored of the link to a session; None if it has none of ours."""
        return await self._one(keys.hosted(session_id), documents.read_hosted, None)

    async def remote_shares(self) -> list[str]:
        """The sessions that are shared on other hosts. Documents that cannot be read are left out."""
        found: list[str] = []
        for key, body in await self._engine.scan(("hosted",)):
            with suppress(*UNREADABLE):
                if documents.read_hosted(body).remote is not None:
                    found.append(key[-1])
        return found

    async def search(self, words: str, *, session_id: str | None = None, limit: int = 50) -> list[SearchHit]:
        """The hits for these words, newest first, in all sessions or in one. Raises Invalid for a limit below 1."""
        check_limit(limit)
        prefix: Key = keys.under("text", session_id) if session_id is not None else ("text",)
        return [_found(key) for key in await self._engine.search(words, prefix, limit=limit)]

    async def _one(self, key: Key, read: Callable[[bytes], V], otherwise: D) -> V | D:
        """The value of one document, or another if there is none."""
        [stored] = await self._engine.get([key])
        with reading(key):
            return read(*await self._with_blobs([stored])) if stored is not None else otherwise


def _found(key: Key) -> SearchHit:
    _, session_id, *place = key
    if len(place) == 2:
        return SearchHit(session_id=session_id, message_id=place[0], part_id=place[1])
    return SearchHit(session_id=session_id)
