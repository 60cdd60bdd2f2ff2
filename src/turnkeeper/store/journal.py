"""The journal: the only way anything becomes true. It appends events, folds them, and tells the bus.

``append`` folds the events onto the session's view, commits entries and documents in one engine transaction, swaps
the view, then notifies. Another process may write to the same log: the engine refuses the later one, the journal
folds what is new and asks the caller's decision again.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

import anyio

from turnkeeper.core import blobs, entry
from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.core.limits import ENTRY_DEPTH_MAX, TAIL_POLL_S, TEXT_INDEXED_MAX, VIEWS_CACHED_MAX
from turnkeeper.core.notify import notify, spelt_out
from turnkeeper.core.projector import apply
from turnkeeper.core.storable import storable
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, SessionCreated
from turnkeeper.model.notification import Notification
from turnkeeper.model.refusal import Conflict, NotFound, Refusal
from turnkeeper.model.session import Session
from turnkeeper.model.value import encode
from turnkeeper.store import documents, keys
from turnkeeper.store.batch import Batch, Step
from turnkeeper.store.crash import crash_point
from turnkeeper.store.damaged import reading
from turnkeeper.store.documents import DocumentWrites
from turnkeeper.store.engine import Engine, Key, LogConflict

log = logging.getLogger(__name__)

ATTEMPTS_MAX = 100
"""How often a decision is taken again because other processes were first, before the caller hears of it."""


Deriver: TypeAlias = Callable[["Journal", Step], Awaitable[Sequence[Notification]]]
"""Makes further notifications of an event. It may read the log."""


class Clock(Protocol):
    """What the journal needs of the Mint."""

    def now(self) -> int:
        """Milliseconds since 1970."""
        ...


class _Slot:
    """One session in memory: its lock, and its view once loaded."""

    def __init__(self) -> None:
        self.lock = anyio.Lock(fast_acquire=True)
        self.view: SessionView | None = None
        self.head = ""
        self.last: bytes | None = None
        """The newest entry, if we had it in our hands: by it the engine tells whether the view is still the newest."""
        self.grown: anyio.Event | None = None  # Made by a tail that waits; most sessions have none.

    def drop(self) -> None:
        """Forget the view, and the hash with it: a session created anew under the same id has another chain."""
        self.view, self.head, self.last = None, "", None


class Journal:
    """Appends, folds and tells."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        publish: Callable[[Notification], None],
        is_heard: Callable[[], bool] = lambda: True,
    ) -> None:
        self._engine, self._clock, self._publish, self._is_heard = engine, clock, publish, is_heard
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._derivers: Counter[Deriver] = Counter()

    async def view(self, session_id: str) -> SessionView:
        """The session as it stands, with what other processes wrote. Raises NotFound."""
        slot = self._slot(session_id)
        async with slot.lock:
            return await self._current(slot, session_id)

    def held(self, session_id: str) -> SessionView | None:
        """The session as this process knows it, without a look at what others wrote; None if it is not in memory."""
        slot = self._slots.get(session_id)
        return slot.view if slot is not None else None

    async def create(self, session: Session, *events: Event, source: str | None = None) -> SessionView:
        """Begin a session's log, with further events in the same transaction. Raises Conflict if it exists.

        ``source`` is the session the events were copied from; they may refer to its blobs.
        """
        slot = self._slot(session.id)
        async with slot.lock:
            if slot.view is not None:
                await self._catch_up(slot, session.id)
            try:
                if slot.view is not None:
                    raise LogConflict(session.id, 0, slot.view.seq)
                return await self._commit(slot, session.id, [SessionCreated(session=session), *events], source=source)
            except LogConflict:
                raise Conflict(f"session {session.id!r} exists already") from None

    async def append(self, session_id: str, *events: Event, fence: int | None = None) -> SessionView:
        """Make events true, all or none, whatever the view is now."""
        slot = self._slot(session_id)
        async with slot.lock:
            view = slot.view or await self._current(slot, session_id)
            return await self._decide(slot, view, lambda _: events, fence)

    async def change(
        self, session_id: str, decide: Callable[[SessionView], Sequence[Event]], *, fence: int | None = None
    ) -> SessionView:
        """Make true what ``decide`` says of the newest view: an atomic read-modify-write. No events change nothing.

        ``decide`` must be pure: when another process was first, it is asked again.
        """
        slot = self._slot(session_id)
        async with slot.lock:
            if slot.view is not None and slot.last is not None and (events := _decided(decide, slot.view)):
                # Another process may have written since. Then the engine refuses them, and they are decided anew.
                return await self._decide(slot, slot.view, decide, fence, events)
            return await self._decide(slot, await self._current(slot, session_id), decide, fence)

    async def read(self, session_id: str, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Events from ``after + 1`` on."""
        entries = await self._engine.read(session_id, after=after, limit=limit)
        return [entry.read(one, seq)[0] for seq, one in enumerate(entries, after + 1)]

    async def tail(
        self, session_id: str, after: int = 0, *, poll_s: float = TAIL_POLL_S, page: int = 500
    ) -> AsyncIterator[Recorded]:
        """Events from ``after + 1`` on, then each new one as it comes, of this process and of others. Never ends."""
        slot = self._slot(session_id)
        while True:
            grown = slot.grown = slot.grown or anyio.Event()
            while events := await self.read(session_id, after=after, limit=page):
                for recorded in events:
                    after = recorded.seq
                    yield recorded
            # An append in this process sets the event; one in another process is found by looking again.
            with anyio.move_on_after(poll_s):
                await grown.wait()

    def forget(self, session_id: str) -> None:
        """Drop what is held of a session that was removed."""
        slot = self._slots.pop(session_id, None)
        if slot is not None:
            slot.drop()
            self._wake(slot)

    def add_deriver(self, derive: Deriver) -> None:
        """Publish what ``derive`` makes of each event, before the event's own notifications.

        A deriver that is added twice still runs once for each event, until it was removed as often.
        """
        self._derivers[derive] += 1

    def remove_deriver(self, derive: Deriver) -> None:
        """Undo one ``add_deriver``."""
        self._derivers -= Counter([derive])

    def _slot(self, session_id: str) -> _Slot:
        slot = self._slots.get(session_id)
        if slot is None:
            slot = self._slots[session_id] = _Slot()
            self._evict()
        else:
            self._slots.move_to_end(session_id)
        return slot

    def _evict(self) -> None:
        """Let go of the views used longest ago; a slot somebody holds stays, for its lock orders the writers."""
        if len(self._slots) <= VIEWS_CACHED_MAX:
            return
        *older, _ = self._slots  # The newest is about to be used.
        for session_id in older:
            if len(self._slots) <= VIEWS_CACHED_MAX:
                return
            statistics = self._slots[session_id].lock.statistics()
            if not statistics.locked and not statistics.tasks_waiting:
                del self._slots[session_id]

    async def _decide(
        self,
        slot: _Slot,
        view: SessionView,
        decide: Callable[[SessionView], Sequence[Event]],
        fence: int | None,
        decided: Sequence[Event] | None = None,
    ) -> SessionView:
        session_id = view.session.id
        for _ in range(ATTEMPTS_MAX):
            events, decided = decided or decide(view), None
            if not events:
                return view
            try:
                return await self._commit(slot, session_id, events, fence=fence)
            except LogConflict:
                # The log itself is asked: its documents may be behind it, if their writer was killed.
                if slot.view is not None:
                    await self._fold_news(slot, session_id, slot.view)
                view = await self._current(slot, session_id)
        raise Conflict(f"session {session_id!r} is being written by others without pause; try again")

    async def _current(self, slot: _Slot, session_id: str) -> SessionView:
        """The newest view, with every event passed told exactly once."""
        if slot.view is None:
            await self._load(slot, session_id)
        else:
            await self._catch_up(slot, session_id)
        if slot.view is None:
            raise NotFound(f"there is no session {session_id!r}")
        return slot.view

    async def _load(self, slot: _Slot, session_id: str) -> None:
        """Read the view from its documents, and bring both up to the log if a crash left them behind it."""
        with reading(("state", session_id)):
            loaded = await documents.load(self._engine, session_id)
        view, head = loaded if loaded is not None else (None, entry.genesis(session_id))
        behind = await self._engine.read(session_id, after=view.seq if view else 0)
        if behind:
            try:
                view, head = await self._repair(session_id, view, head, behind)
            except LogConflict:  # Another process goes on writing, and its documents with it.
                await self._load(slot, session_id)
                return
        elif view is not None and (length := await self._engine.length(session_id)) < view.seq:
            raise Damaged(length + 1, f"is missing from the log of {session_id}, which once had {view.seq}")
        slot.view, slot.head, slot.last = view, head, behind[-1] if behind else None

    async def _repair(
        self, session_id: str, view: SessionView | None, head: str, behind: list[bytes]
    ) -> tuple[SessionView, str]:
        """Fold entries that documents do not show yet, and write the documents."""
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
        texts = await self._plain(writes, {})
        await self._engine.append(session_id, view.seq, [], writes.documents, texts=texts)
        return view, head

    async def _catch_up(self, slot: _Slot, session_id: str) -> None:
        """Fold what other processes wrote. One look at the state document tells whether they did."""
        view = slot.view
        assert view is not None, "only a loaded slot is caught up"
        [stored] = await self._engine.get([keys.state(session_id)])
        if stored is None:  # Removed by another process.
            self.forget(session_id)
            slot.drop()
            return
        with reading(keys.state(session_id)):
            state = documents.read_state(stored)
        if state.seq != view.seq or state.head != slot.head:
            await self._fold_news(slot, session_id, view)

    async def _fold_news(self, slot: _Slot, session_id: str, view: SessionView) -> None:
        behind = await self._engine.read(session_id, after=view.seq)
        if not behind or not entry.follows(behind[0], slot.head):
            slot.drop()  # Removed and created anew by another process: nothing we know of it is true.
            await self._load(slot, session_id)
            return
        steps: list[Step] = []
        head = slot.head
        for recorded, link in entry.chain(session_id, behind, after=view.seq, prev=head):
            view, changes = apply(view, recorded)
            steps.append(Step(recorded, changes, view, link))
            head = link
        notifications = await self._spelt_out(await self._derived(steps), {})
        slot.view, slot.head, slot.last = view, head, behind[-1]
        self._tell(notifications)
        self._wake(slot)

    async def _commit(
        self,
        slot: _Slot,
        session_id: str,
        events: Sequence[Event],
        *,
        fence: int | None = None,
        source: str | None = None,
    ) -> SessionView:
        """One transaction: entries, documents, texts, blobs. Then the view is swapped and the bus told."""
        before = slot.view
        # What is folded is what was written, so the view in memory is the one that a reader will load.
        events, bodies = zip(*map(_storable, events), strict=True)
        known = await self._known_blobs(source or session_id, bodies) if blobs.is_marked(bodies) else None
        batch = Batch(session_id, before, slot.head or entry.genesis(session_id), self._clock.now(), known)
        for event, body in zip(events, bodies, strict=True):
            batch.add(event, body)
        assert batch.view is not None, "a batch holds at least one event"
        batch.writes.of_view(before, batch.view, batch.head)
        texts = await self._plain(batch.writes, batch.blobs)
        after = before.seq if before else 0
        crash_point("journal.before-append")
        # A caller cancelled from here on leaves the view behind the log, as another process's write would: the next
        # append is refused, folds what is new and tells the bus of it then.
        await self._engine.append(
            session_id, after, batch.entries, batch.writes.documents, texts=texts, fence=fence, last=slot.last
        )
        crash_point("journal.after-append")
        # Derived now and not before the append: a subscriber that came while it was written must not miss it.
        notifications = await self._derived(batch.steps)
        if notifications and (self._derivers or blobs.is_marked(filter(None, batch.writes.documents.values()))):
            notifications = await self._spelt_out(notifications, batch.blobs)
        slot.view, slot.head, slot.last = batch.view, batch.head, batch.entries[-1]
        self._tell(notifications)
        self._wake(slot)
        return batch.view

    async def _derived(self, steps: Sequence[Step]) -> list[Notification]:
        """The notifications of these events. None if there is no subscriber: a fork has thousands of events."""
        if not self._is_heard():
            return []
        found: list[Notification] = []
        for step in steps:
            for derive in tuple(self._derivers):
                found.extend(await self._derived_by(derive, step))
            found.extend(notify(step.after.session, step.recorded, step.changes, step.link))
        return found

    async def _derived_by(self, derive: Deriver, step: Step) -> Sequence[Notification]:
        try:
            return await derive(self, step)
        except Exception:
            # The event is durable: a deriver that fails must not tell the writer otherwise.
            log.exception("nothing was derived from event %s of %s", step.recorded.seq, step.after.session.id)
            return ()

    async def _spelt_out(self, notifications: list[Notification], lifted: dict[str, bytes]) -> list[Notification]:
        """Notifications as subscribers hear them: with the text itself, not with marks."""
        wanted = {name for one in notifications for name in blobs.references(encode(one))}
        if not wanted:
            return notifications
        known = await self._blobs(wanted, lifted)
        texts = {name: body.decode("utf-8", "surrogatepass") for name, body in known.items()}
        return [spelt_out(one, texts) for one in notifications]

    async def _blobs(self, wanted: set[str], lifted: dict[str, bytes]) -> dict[str, bytes]:
        """These blobs, of which some were just lifted; one that is missing is left out."""
        missing = sorted(wanted - lifted.keys())
        stored = await self._engine.get([keys.blob(name) for name in missing]) if missing else []
        found = {name: body for name, body in zip(missing, stored, strict=True) if body is not None}
        return {**found, **lifted}

    async def _known_blobs(self, session_id: str, bodies: Sequence[bytes]) -> set[str]:
        """Of the blobs these events name, those that the session has. The others are text that looks like a mark."""
        named = sorted({name for body in bodies for name in blobs.references(body)})
        if not named:
            return set()
        used = await self._engine.get([keys.blob_used(session_id, name) for name in named])
        return {name for name, found in zip(named, used, strict=True) if found is not None}

    async def _plain(self, writes: DocumentWrites, lifted: dict[str, bytes]) -> dict[Key, str | None]:
        """Texts with the blobs they stand for spelt out, so that search finds words and not hashes."""
        texts = writes.texts
        named = {name for text in texts.values() if text and blobs.MARK in text for name in blobs.mentioned(text)}
        # Only a mark that a document holds is one; the same characters inside other text are just text.
        wanted = named and named & {
            name for body in writes.documents.values() for name in blobs.references(body or b"")
        }
        if not wanted:
            return texts
        found = await self._blobs(wanted, lifted)
        # Cut again: a mark is short, and what it stands for may be megabytes.
        return {key: text and blobs.spell_out(text, found)[:TEXT_INDEXED_MAX] for key, text in texts.items()}

    def _tell(self, notifications: Sequence[Notification]) -> None:
        for notification in notifications:
            self._publish(notification)

    def _wake(self, slot: _Slot) -> None:
        if slot.grown is not None:
            slot.grown.set()
            slot.grown = None


def _storable(event: Event) -> tuple[Event, bytes]:
    """The event as it will be read again, and its JSON: nothing that could not be read again is ever appended."""
    return storable(event, type(event), f"the event {event.KIND}", ENTRY_DEPTH_MAX)


def _decided(decide: Callable[[SessionView], Sequence[Event]], view: SessionView) -> Sequence[Event]:
    """What follows from a view that may not be the newest; nothing, if it is refused, for that must be asked anew."""
    try:
        return decide(view)
    except Refusal:
        return ()
