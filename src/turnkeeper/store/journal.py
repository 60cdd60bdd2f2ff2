"""The journal: the only writer of events. It folds events, appends them, and publishes notifications.

``change`` folds the events onto the session's view, commits entries and documents in one engine transaction, replaces
the view, then publishes. If another process wrote to the log first, the engine refuses the append; the journal folds
the new entries and calls the caller's decision function again.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple, Protocol

import anyio

from turnkeeper.core import entry
from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.core.limits import ENTRY_DEPTH_MAX, TAIL_POLL_S, TAIL_WATCHED_POLL_S
from turnkeeper.core.projector import apply
from turnkeeper.core.storable import readable
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, SessionCreated
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.refusal import Conflict, NotFound, Refusal
from turnkeeper.model.session import Session
from turnkeeper.store import documents, keys
from turnkeeper.store.batch import Batch, Step
from turnkeeper.store.blob_lookup import known_blobs, plain_texts
from turnkeeper.store.crash import crash_point
from turnkeeper.store.damaged import reading
from turnkeeper.store.document_writes import DocumentWrites
from turnkeeper.store.engine import Engine, LogConflict, StaleFence, Watched
from turnkeeper.store.fanout import Fanout
from turnkeeper.store.publisher import Publisher
from turnkeeper.store.view_cache import Slot, ViewCache

ATTEMPTS_MAX = 100
"""Tries of an append that conflicts with other processes, before the caller gets Conflict."""


class Clock(Protocol):
    """The clock of the Mint."""

    def now(self) -> int:
        """Milliseconds since 1970."""
        ...


class Changed(NamedTuple):
    """The view after a change, and its events; empty if nothing changed."""

    view: SessionView
    events: Sequence[Event]


class Journal:
    """Folds, appends and publishes events."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        publish: Callable[[Notification], None],
        is_heard: Callable[[], bool] = lambda: True,
        publish_delta: Callable[[Delta], None] = lambda delta: None,
    ) -> None:
        self._engine, self._clock = engine, clock
        self.cache = ViewCache()
        self.fanout = Fanout(engine, publish, publish_delta, self.cache.view)
        self.publisher = Publisher(engine, self.read, self.fanout.publish, is_heard)
        self._is_watching = False

    async def view(self, session_id: str) -> SessionView:
        """The newest view, with the events of other processes. Raises NotFound."""
        slot = self.cache.slot(session_id)
        async with slot.lock:
            return await self._current(slot, session_id)

    async def create(self, session: Session, *events: Event, source: str | None = None) -> SessionView:
        """Begin a session's log, with further events in the same transaction. Raises Conflict if it exists.

        ``source`` is the session from which the events were copied; they may refer to its blobs.
        """
        slot = self.cache.slot(session.id)
        async with slot.lock:
            if slot.view is not None:
                await self._catch_up(slot, session.id)
            try:
                if slot.view is not None:
                    raise LogConflict(session.id, 0, slot.view.seq)
                return await self._commit(slot, session.id, [SessionCreated(session=session), *events], source=source)
            except LogConflict:
                raise Conflict(f"session {session.id!r} exists already") from None

    async def require_fence(self, session_id: str, fence: int | None) -> None:
        """Raise StaleFence if the log has a higher fence: what does not fit it was decided before it was taken over."""
        if fence is not None and (current := await self._engine.fence(session_id)) > fence:
            raise StaleFence(session_id, fence, current)

    async def append(self, session_id: str, *events: Event, fence: int | None = None) -> SessionView:
        """Append events atomically, independent of the view."""
        return (await self.change(session_id, lambda _: events, fence=fence)).view

    async def change(
        self, session_id: str, decide: Callable[[SessionView], Sequence[Event]], *, fence: int | None = None
    ) -> Changed:
        """Append the events that ``decide`` makes of the newest view: an atomic read-modify-write.

        ``decide`` must be pure: after a conflict with another process it is called again.
        """
        slot = self.cache.slot(session_id)
        async with slot.lock:
            events: Sequence[Event] = ()
            if slot.view is not None and slot.last is not None:
                # If another process has written since, the engine refuses the events, and ``decide`` is called again.
                events = _decided(decide, slot.view)
            for _ in range(ATTEMPTS_MAX):
                if not events:
                    view = await self._current(slot, session_id)
                    events = decide(view)
                    if not events:
                        return Changed(view, ())
                try:
                    return Changed(await self._commit(slot, session_id, events, fence=fence), events)
                except Damaged:
                    await self.require_fence(session_id, fence)
                    raise
                except LogConflict:
                    # Read from the log itself: its documents are older if their writer was killed.
                    if slot.view is not None:
                        await self._fold_news(slot, session_id, slot.view)
                    events = ()
        raise Conflict(f"session {session_id!r} is being written by others without pause; try again")

    async def read(self, session_id: str, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Events from ``after + 1`` on."""
        entries = await self._engine.read(session_id, after=after, limit=limit)
        return [entry.read(one, seq)[0] for seq, one in enumerate(entries, after + 1)]

    async def tail(
        self, session_id: str, after: int = 0, *, poll_s: float = TAIL_POLL_S, page: int = 500
    ) -> AsyncGenerator[Recorded, None]:
        """Events from ``after + 1`` on, then each new event of this and other processes.

        Ends only with the session: raises NotFound once it is removed.
        """
        length = 1
        if self._watch():
            poll_s = max(poll_s, TAIL_WATCHED_POLL_S)
        while True:
            grown = self.cache.slot(session_id).next_growth()
            has_news = False
            while events := await self.read(session_id, after=after, limit=page):
                has_news = True
                for recorded in events:
                    after = recorded.seq
                    yield recorded
            if not has_news:
                known, length = length, await self._engine.length(session_id)
                if length < known:
                    raise NotFound(f"session {session_id!r} was removed")
            # An append in this process sets the event; that of another process is told by the engine, or found here.
            with anyio.move_on_after(poll_s):
                await grown.wait()

    def _watch(self) -> bool:
        """Let the engine wake the tails of logs that other processes write; whether it can."""
        if not isinstance(self._engine, Watched):
            return False
        if not self._is_watching:
            self._is_watching = True
            self._engine.watch(self.cache.wake)
        return True

    async def _current(self, slot: Slot, session_id: str) -> SessionView:
        """The newest view; each new event of other processes is published once."""
        if slot.view is None:
            await self._load(slot, session_id)
        else:
            await self._catch_up(slot, session_id)
        if slot.view is None:
            raise NotFound(f"there is no session {session_id!r}")
        return slot.view

    async def _load(self, slot: Slot, session_id: str) -> None:
        """Load the view from its documents, and update both from the log if a crash left them outdated."""
        with reading(("state", session_id)):
            loaded = await documents.load(self._engine, session_id)
        view, head = loaded if loaded is not None else (None, entry.genesis(session_id))
        behind = await self._engine.read(session_id, after=view.seq if view else 0)
        if behind:
            try:
                view, head = await self._repair(session_id, view, head, behind)
            except LogConflict:  # Another process has written, also to the documents.
                await self._load(slot, session_id)
                return
        elif view is not None and (length := await self._engine.length(session_id)) < view.seq:
            raise Damaged(length + 1, f"is missing from the log of {session_id}, which once had {view.seq}")
        slot.set(view, head, behind[-1] if behind else None)

    async def _repair(
        self, session_id: str, view: SessionView | None, head: str, behind: list[bytes]
    ) -> tuple[SessionView, str]:
        """Fold entries that the documents do not include, and write the documents."""
        before, writes = view, DocumentWrites()
        seq = view.seq if view else 0
        for one, (recorded, link) in zip(behind, entry.chain(session_id, behind, after=seq, prev=head), strict=True):
            view, changes = apply(view, recorded)
            for change in changes:
                writes.of_change(session_id, recorded.seq, change)
            writes.of_blobs(session_id, one)
            head = link
        assert view is not None, "entries were folded"
        writes.of_view(before, view, head)
        texts = await plain_texts(self._engine, writes, {})
        await self._engine.append(session_id, view.seq, [], writes.documents, texts=texts)
        return view, head

    async def _catch_up(self, slot: Slot, session_id: str) -> None:
        """Fold the events of other processes, if the state document shows that there are any."""
        view = slot.view
        assert view is not None, "only a loaded slot is caught up"
        [stored] = await self._engine.get([keys.state(session_id)])
        if stored is None:  # Removed by another process.
            self.cache.forget(session_id)
            slot.drop()
            return
        with reading(keys.state(session_id)):
            state = documents.read_state(stored)
        if state.seq != view.seq or state.head != slot.head:
            await self._fold_news(slot, session_id, view)

    async def _fold_news(self, slot: Slot, session_id: str, view: SessionView) -> None:
        behind = await self._engine.read(session_id, after=view.seq)
        if not behind or not entry.follows(behind[0], slot.head):
            slot.drop()  # Another process removed the session and created it again.
            await self._load(slot, session_id)
            return
        steps: list[Step] = []
        head = slot.head
        for recorded, link in entry.chain(session_id, behind, after=view.seq, prev=head):
            view, changes = apply(view, recorded)
            steps.append(Step(recorded, changes, view, link))
            head = link
        notifications = await self.publisher.derived(steps, with_deltas=True)
        slot.set(view, head, behind[-1])
        self.publisher.publish(notifications)
        slot.wake()

    async def _commit(
        self,
        slot: Slot,
        session_id: str,
        events: Sequence[Event],
        *,
        fence: int | None = None,
        source: str | None = None,
    ) -> SessionView:
        """Commit entries, documents, texts and blobs in one transaction; then replace the view and publish."""
        before = slot.view
        # The decoded JSON is folded, so that the view in memory equals the view that a reader loads.
        events, bodies = zip(*map(_storable, events), strict=True)
        known = await known_blobs(self._engine, source or session_id, bodies)
        batch = Batch(session_id, before, slot.head or entry.genesis(session_id), self._clock.now(), known)
        for event, body in zip(events, bodies, strict=True):
            batch.add(event, body)
        assert batch.view is not None, "a batch holds at least one event"
        batch.writes.of_view(before, batch.view, batch.head)
        texts = await plain_texts(self._engine, batch.writes, batch.blobs)
        after = before.seq if before else 0
        crash_point("journal.before-append")
        # If the caller is cancelled from here on, the view is outdated, as after a write of another process: the next
        # append is refused, folds the new events and publishes them then.
        await self._engine.append(
            session_id, after, batch.entries, batch.writes.documents, texts=texts, fence=fence, last=slot.last
        )
        crash_point("journal.after-append")
        # Derived after the append, so that a subscriber that came during the append does not miss it.
        notifications = await self.publisher.derived(batch.steps, batch.blobs)
        slot.set(batch.view, batch.head, batch.entries[-1])
        self.publisher.publish(notifications)
        slot.wake()
        return batch.view


def _storable(event: Event) -> tuple[Event, bytes]:
    """The event as it will be read again, and its JSON. Raises Invalid if it could not be read again."""
    return readable(event, type(event), f"the event {event.KIND}", ENTRY_DEPTH_MAX)


def _decided(decide: Callable[[SessionView], Sequence[Event]], view: SessionView) -> Sequence[Event]:
    """The events for a view that may be outdated; empty if ``decide`` refuses, because it must see the newest view."""
    try:
        return decide(view)
    except Refusal:
        return ()
