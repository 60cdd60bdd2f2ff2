"""Replay: the events of the second generation, told again from the log, from any number on."""

from collections.abc import AsyncIterator

from turnkeeper.core.changes import Change, PromptPut
from turnkeeper.core.entry import Recorded
from turnkeeper.core.projector import apply
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.server.v2.event import NextEvent, next_events
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
    """Tells one session's log entry by entry."""

    def __init__(self, store: Store, session: Session, view: SessionView | None) -> None:
        self._store, self._session, self._view = store, session, view

    @property
    def seq(self) -> int:
        """The last entry that was folded."""
        return self._view.seq if self._view is not None else 0

    @classmethod
    async def at(cls, store: Store, session_id: str, after: int) -> "Teller":
        """One that goes on behind a number. It looks back only as far as the turn that is open there began."""
        now = await store.journal.view(session_id)
        # The entry of the number itself may have been told in part, so it is told again and what is known left out.
        last = min(max(after // NUMBERS_PER_ENTRY - 1, 0), now.seq)
        found = await _since_turn(store, session_id, last)
        begin = found[0].seq - 1 if found else last
        # Of the session before, only the inbox and the open turn matter; the rest may be as it is now.
        teller = cls(store, now.session, now.but(seq=begin, turn=None, inbox=()) if begin else None)
        for recorded in found:
            await teller._fold(recorded)
        return teller

    async def tell(self, recorded: Recorded) -> list[NextEvent]:
        """What the next entry is told as, with its long texts."""
        changes = await self._fold(recorded)
        session = self._session
        reason = await reason_of(self._store.journal.read, session.id, recorded.seq, changes)
        told = next_events(recorded, changes, (session.id, session.directory, session.project_id), reason)
        return [await self._store.queries.whole(one) for one in told]

    async def _fold(self, recorded: Recorded) -> tuple[Change, ...]:
        if isinstance(recorded.event, e.PromptPromoted | e.PromptWithdrawn):
            await self._recall(recorded.event.message_id)
        self._view, changes = apply(self._view, recorded)
        return changes

    async def _recall(self, message_id: str) -> None:
        """Find a prompt that was admitted before the fold began."""
        view = self._view
        if view is None or any(one.message.id == message_id for one in view.inbox):
            return
        [stored] = await self._store.engine.get([keys.receipt(message_id)])
        if stored is None:
            raise NotFound(f"there is no session {self._session.id!r}")  # It is being removed.
        seq = documents.read_admission(stored).seq
        for recorded in await self._store.journal.read(self._session.id, after=seq - 1, limit=1):
            _, changes = apply(view.but(seq=seq - 1), recorded)
            prompts = [change.prompt for change in changes if isinstance(change, PromptPut)]
            self._view = view.but(inbox=(*view.inbox, *prompts))


async def _since_turn(store: Store, session_id: str, last: int) -> list[Recorded]:
    """The entries up to this one, from one before which no turn was open."""
    found: list[Recorded] = []
    end = last
    while end > 0:
        begin = max(end - PAGE, 0)
        found = [*await store.journal.read(session_id, after=begin, limit=end - begin), *found]
        for nth, one in enumerate(found):
            if isinstance(one.event, e.TurnStarted | e.TurnEnded) and begin:
                return found[nth if isinstance(one.event, e.TurnStarted) else nth + 1 :]
        end = begin
    return found
