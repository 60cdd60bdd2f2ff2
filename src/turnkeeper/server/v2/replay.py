"""Replay: events of the second generation, derived again from the log after any event number."""

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
"""Entries of the log that are read at once."""


async def tail(store: Store, session_id: str, after: int, *, ids: bool = False) -> AsyncIterator[bytes]:
    """Frames of the events after a number, then of each new event. The last one says that the session was removed."""
    try:
        replay = await LogReplay.at(store, session_id, after)
        async for recorded in store.journal.tail(session_id, replay.seq):
            chunk = b""
            for event in await replay.events(recorded):
                if event.number > after:
                    line = f"id: {event.number}\n".encode() if ids else b""
                    chunk += line + b"data: " + durable(event, is_local=True) + END
            if chunk:
                yield chunk
    except NotFound as error:
        # A comment, which clients of the protocol skip: there is no event for it, because it is not in the log.
        yield f": {error}".encode() + END


async def page(store: Store, session_id: str, after: int, limit: int) -> tuple[list[NextEvent], bool]:
    """At most ``limit`` events after a number, and whether there are more."""
    replay = await LogReplay.at(store, session_id, after)
    found: list[NextEvent] = []
    while len(found) <= limit:
        entries = await store.journal.read(session_id, after=replay.seq, limit=PAGE)
        for recorded in entries:
            found.extend(one for one in await replay.events(recorded) if one.number > after)
        if len(entries) < PAGE:
            break
    return found[:limit], len(found) > limit


class LogReplay:
    """Derives the events of a session's log, entry by entry."""

    def __init__(self, store: Store, session: Session, view: SessionView | None) -> None:
        self._store, self._session, self._view = store, session, view

    @property
    def seq(self) -> int:
        """The last entry that was folded."""
        return self._view.seq if self._view is not None else 0

    @classmethod
    async def at(cls, store: Store, session_id: str, after: int) -> "LogReplay":
        """A replay that continues after a number. It reads back to the start of the turn that is open there."""
        now = await store.journal.view(session_id)
        # The client may have only some events of this entry: derive them all, and skip those up to ``after``.
        last = min(max(after // NUMBERS_PER_ENTRY - 1, 0), now.seq)
        found = await _since_turn(store, session_id, last)
        begin = found[0].seq - 1 if found else last
        # Only the inbox and the open turn affect the events; all other fields may have their current values.
        replay = cls(store, now.session, now.but(seq=begin, turn=None, inbox=()) if begin else None)
        for recorded in found:
            await replay._fold(recorded)
        return replay

    async def events(self, recorded: Recorded) -> list[NextEvent]:
        """The events of the next entry, with long texts loaded."""
        changes = await self._fold(recorded)
        session = self._session
        reason = await reason_of(self._store.journal.read, session.id, recorded.seq, changes)
        events = next_events(recorded, changes, (session.id, session.directory, session.project_id), reason)
        return [await self._store.queries.whole(one) for one in events]

    async def _fold(self, recorded: Recorded) -> tuple[Change, ...]:
        if isinstance(recorded.event, e.PromptPromoted | e.PromptWithdrawn):
            await self._recall(recorded.event.message_id)
        self._view, changes = apply(self._view, recorded)
        return changes

    async def _recall(self, message_id: str) -> None:
        """Add a prompt to the inbox that was admitted before the fold began."""
        view = self._view
        if view is None or any(one.message.id == message_id for one in view.inbox):
            return
        [stored] = await self._store.engine.get([keys.receipt(message_id)])
        if stored is None:
            raise NotFound(f"there is no session {self._session.id!r}")  # The session is being removed.
        seq = documents.read_admission(stored).seq
        for recorded in await self._store.journal.read(self._session.id, after=seq - 1, limit=1):
            _, changes = apply(view.but(seq=seq - 1), recorded)
            prompts = [change.prompt for change in changes if isinstance(change, PromptPut)]
            self._view = view.but(inbox=(*view.inbox, *prompts))


async def _since_turn(store: Store, session_id: str, last: int) -> list[Recorded]:
    """The entries up to ``last``, from an entry before which no turn was open."""
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
