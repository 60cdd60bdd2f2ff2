"""Writes for the owner of a session. Every append carries the owner's fence, so a replaced owner cannot write.

Writing is shielded: an interrupt comes before an append or after it, so the caller knows what is on record.

An event that is **held** is appended together with the next one: the end of a turn with the next ``TurnStarted``, or
with the session's rest. Decisions are made on ``view`` and ``Histories.follow``, which include the held events; all
other readers see them once they are durable. A caller that is about to wait for something calls ``flush`` first.
"""

from collections.abc import Callable, Sequence
from typing import Final

import anyio

from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.core.projector import apply
from turnkeeper.core.turn_ends import close_lost_turn, leave_turn
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, StatusChanged
from turnkeeper.model.status import IDLE, Owner, Status
from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StaleFence
from turnkeeper.store.store import Store

WRITTEN_MAX: Final = 256
"""How many of its newest events a writer keeps in memory; older ones are read from the log."""


class FencedWriter:
    """Writes to one session as its owner."""

    def __init__(self, store: Store, session_id: str, owner: Owner, fence: int) -> None:
        self._store, self.session_id, self._owner, self.fence = store, session_id, owner, fence
        self.on_release: Callable[[], None] = lambda: None
        """Called once the session is not owned any more, because it became idle or another process has taken it."""
        self._held: list[Event] = []
        self._held_points: list[str] = []
        self._written: list[Recorded] = []

    @property
    def held(self) -> Sequence[Event]:
        """The events that the next append brings."""
        return self._held

    async def append(self, *events: Event, at: str = "") -> SessionView:
        """Append the held events and then these. Raises StaleFence once another process owns the session.

        ``at`` names the crash points just before and just after it.
        """
        held_before = len(self._held)
        self.hold(*events, at=at)
        (held, self._held), (points, self._held_points) = (self._held, []), (self._held_points, [])
        try:
            with anyio.CancelScope(shield=True):
                view = await self._store.journal.append(self.session_id, *held, fence=self.fence)
        except BaseException:
            # What was held before is still true; it is tried again when the session is released.
            self._held[:0] = held[:held_before]
            raise
        self.note_written(held, view)
        for point in points:
            crash_point(f"run.after-{point}")
        return view

    def hold(self, *events: Event, at: str = "") -> None:
        """Let the next append bring these events. A process that dies before it leaves them undone, all of them."""
        crash_point(f"run.before-{at}")
        self._held_points.append(at)
        self._held.extend(events)

    def drop_held(self) -> list[Event]:
        """Stop holding what is held, and return it: it will not be appended."""
        held, self._held = self._held, []
        return held

    async def flush(self, at: str = "") -> None:
        """Append what is held, if anything is."""
        if self._held:
            await self.append(at=at)

    async def view(self) -> SessionView:
        """The session as this process knows it, with what is held. Raises StaleFence if that no longer fits."""
        journal = self._store.journal
        view = journal.cache.view(self.session_id) or await journal.view(self.session_id)
        try:
            for recorded in self.held_after(view.seq):
                view = apply(view, recorded).view
        except Damaged:
            await journal.require_fence(self.session_id, self.fence)
            raise
        return view

    def held_after(self, seq: int) -> list[Recorded]:
        """The held events as they will be recorded if the log ends with ``seq`` now."""
        now = self._store.mint.now()
        return [Recorded(place, now, event) for place, event in enumerate(self._held, seq + 1)]

    def events_after(self, seq: int) -> list[Recorded] | None:
        """The events of the log after ``seq``; None if the writer did not write all of them or has dropped some."""
        known = self._store.journal.cache.view(self.session_id)
        self._written = [one for one in self._written if one.seq > seq]
        return self._written if known is not None and len(self._written) == known.seq - seq else None

    def note_written(self, events: Sequence[Event], view: SessionView) -> None:
        """Keep events that were appended for ``events_after``. ``view`` is the session after them."""
        now = self._store.mint.now()
        self._written += [Recorded(seq, now, event) for seq, event in enumerate(events, view.seq - len(events) + 1)]
        del self._written[:-WRITTEN_MAX]

    async def leave_turn(self, view: SessionView) -> None:
        """Close what a dead process left open of a turn, but for calls that wait for the user; in one append."""
        if view.turn is not None:
            mint, billed = self._store.mint, await self._billed(view.turn.message.id)
            await self.append(*leave_turn(view, mint.now(), part_id=mint.part_id, billed=billed), at="leave")

    async def close_lost_turn(self, view: SessionView) -> None:
        """Close the turn that a dead process left open, in one append; nothing if there is none.

        Calls that wait for the user are settled as interrupted, too.
        """
        if view.turn is not None:
            billed = await self._billed(view.turn.message.id)
            await self.append(*close_lost_turn(view, self._store.mint.now(), billed=billed))

    async def _billed(self, message_id: str) -> list[float]:
        rows = [row async for row in self._store.queries.ledger(self.session_id)]
        return [row.cost for row in rows if row.message_id == message_id]

    async def status(self, status: Status) -> None:
        """Record what the session is doing now."""
        await self.append(StatusChanged(status=status, owner=self._owner))

    async def release(self, seq: int | None = None) -> bool:
        """Become idle, if others wrote nothing since ``seq``; whether that was so. None: in any case."""

        def decide(view: SessionView) -> list[Event]:
            if view.owner != self._owner or (seq is not None and view.seq + len(self._held) != seq):
                return []
            return [*self._held, StatusChanged(status=IDLE)]

        try:
            with anyio.CancelScope(shield=True):
                view = (await self._store.journal.change(self.session_id, decide, fence=self.fence)).view
        except StaleFence:
            self.on_release()
            raise
        if view.owner == self._owner:
            return False
        self.on_release()
        return True
