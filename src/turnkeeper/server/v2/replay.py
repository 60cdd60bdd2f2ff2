"""Replay: the events of the second generation, told again from the log, from any number on."""

from collections.abc import AsyncIterator

from msgspec.structs import replace

from turnkeeper.core.entry import Recorded
from turnkeeper.model import event as e
from turnkeeper.server.v2.event import NextEvent, Past, Waiting, next_events
from turnkeeper.server.v2.framed import END, durable
from turnkeeper.server.v2.live import reason_of
from turnkeeper.server.v2.shape import NUMBERS_PER_ENTRY
from turnkeeper.store import documents, keys
from turnkeeper.store.store import Store

PAGE = 256
"""Entries that are read at once."""


async def tail(store: Store, session_id: str, after: int, *, ids: bool = False) -> AsyncIterator[bytes]:
    """Frames of the events behind a number, then of each new one. Never ends."""
    teller = await Teller.at(store, session_id, after)
    async for recorded in store.journal.tail(session_id, teller.seq):
        chunk = b""
        for event in await teller.tell(recorded):
            if event.number > after:
                line = f"id: {event.number}\n".encode() if ids else b""
                chunk += line + b"data: " + durable(event, is_local=True) + END
        if chunk:
            yield chunk


async def page(store: Store, session_id: str, after: int, limit: int) -> tuple[list[NextEvent], bool]:
    """At most so many events behind a number, and whether there are more."""
    teller = await Teller.at(store, session_id, after)
    found: list[NextEvent] = []
    while len(found) <= limit:
        entries = await store.journal.read(session_id, after=teller.seq, limit=PAGE)
        for recorded in entries:
            found.extend(one for one in await teller.tell(recorded) if one.number > after)
        if len(entries) < PAGE:
            break
    return found[:limit], len(found) > limit


class Teller:
    """Tells one session's log entry by entry; ``seq`` is the last entry that it told."""

    def __init__(self, store: Store, session_id: str, where: tuple[str, str, str | None], seq: int) -> None:
        self._store, self._session_id, self._where = store, session_id, where
        self._past = Past()
        self.seq = seq

    @classmethod
    async def at(cls, store: Store, session_id: str, after: int) -> "Teller":
        """One that goes on behind a number. It looks back only as far as the turn that is open there began."""
        session = await store.queries.session(session_id)
        length = (await store.queries.state(session_id)).seq
        # The entry of the number itself may have been told in part, so it is told again and what is known left out.
        last = min(max(after // NUMBERS_PER_ENTRY - 1, 0), length)
        teller = cls(store, session_id, (session_id, session.directory, session.project_id), last)
        for recorded in await _since_turn(store, session_id, last):
            teller._past = teller._past.after(recorded)
        return teller

    async def tell(self, recorded: Recorded) -> list[NextEvent]:
        """What the next entry is told as, with its long texts."""
        event = recorded.event
        if isinstance(event, e.PromptPromoted) and event.message_id not in self._past.inbox:
            await self._recall(event.message_id)
        reason = await reason_of(self._store.journal, self._session_id, recorded.seq, event)
        told = next_events(self._past, recorded, self._where, reason)
        self._past = self._past.after(recorded)
        self.seq = recorded.seq
        return [await self._store.queries.whole(one) for one in told]

    async def _recall(self, message_id: str) -> None:
        """Find the prompt that was admitted before this teller began."""
        [stored] = await self._store.engine.get([keys.receipt(message_id)])
        if stored is None:  # The session is being removed.
            return
        seq = documents.read_admission(stored).seq
        for recorded in await self._store.journal.read(self._session_id, after=seq - 1, limit=1):
            if isinstance(recorded.event, e.PromptAdmitted):
                event = recorded.event
                waiting = Waiting(seq, event.message, event.parts, event.delivery)
                self._past = replace(self._past, inbox={**self._past.inbox, message_id: waiting})


async def _since_turn(store: Store, session_id: str, last: int) -> list[Recorded]:
    """The entries up to this one, from one at which no turn was open."""
    found: list[Recorded] = []
    end = last
    while end > 0:
        begin = max(end - PAGE, 0)
        found = [*await store.journal.read(session_id, after=begin, limit=end - begin), *found]
        if any(isinstance(one.event, e.TurnStarted | e.TurnEnded) for one in found):
            break
        end = begin
    return found
