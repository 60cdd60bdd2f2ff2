"""The pen: what a drain writes with. Every append carries the drain's fence, so a replaced owner cannot write.

Writing is shielded: an interrupt comes before an append or after it, so whoever wrote knows what is on record.

A fact that nobody need know before the next one is **held**: it rides with the next append. Who decides what comes next
looks at the session with what is held; who may have to wait for others writes it first.
"""

from collections.abc import Sequence
from typing import Final

import anyio

from turnkeeper.core.entry import Recorded
from turnkeeper.core.projector import apply
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, PromptPromoted, StatusChanged
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.refusal import Busy
from turnkeeper.model.status import BUSY, IDLE, Owner, Status
from turnkeeper.store.crash import crash_point
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive

WRITTEN_MAX: Final = 256
"""So many events are remembered for who follows the session; what is older is read from the log."""


class Pen:
    """Writes to one session as its owner."""

    def __init__(self, store: Store, session_id: str, owner: Owner, fence: int) -> None:
        self._store, self.session_id, self._owner, self._fence = store, session_id, owner, fence
        self._held: list[Event] = []
        self._points: list[str] = []
        self._written: list[Recorded] = []
        self._told, self._base = 0, 0
        """How many of the held ones somebody was told of, and behind which place in the log they were said to stand."""
        self.is_astray = False
        """Whether others wrote before what was told: it does not stand where it was said to."""

    async def append(self, *events: Event, at: str = "") -> SessionView:
        """Make events true, and what is held before them. Raises StaleFence once another process owns the session.

        ``at`` names the crash points just before and just after it.
        """
        waited = len(self._held)
        self.hold(*events, at=at)
        (held, self._held), (points, self._points) = (self._held, []), (self._points, [])
        try:
            with anyio.CancelScope(shield=True):
                view = await self._store.journal.append(self.session_id, *held, fence=self._fence)
        except BaseException:
            # Those that waited are as true as before, and tried again when the pen is laid down.
            self._held[:0] = held[:waited]
            raise
        self.wrote(held, view)
        for point in points:
            crash_point(f"run.after-{point}")
        return view

    def hold(self, *events: Event, at: str = "") -> None:
        """Let events ride with the next append. A death before it leaves what a death just before this one leaves."""
        if at:
            crash_point(f"run.before-{at}")
            self._points.append(at)
        self._held.extend(events)

    async def flush(self) -> None:
        """Make true what is held."""
        if self._held:
            await self.append()

    async def view(self) -> SessionView:
        """The session as this process knows it, with what is held."""
        journal, now = self._store.journal, self._store.mint.now()
        view = journal.cache.view(self.session_id) or await journal.view(self.session_id)
        for event in self._held:
            view = apply(view, Recorded(view.seq + 1, now, event)).view
        return view

    def news(self, after: int) -> list[Recorded] | None:
        """What stands behind this place in the log, and what is held; None if others wrote there, too."""
        known = self._store.journal.cache.view(self.session_id)
        self._written = [one for one in self._written if one.seq > after]
        if known is None or len(self._written) != known.seq - after + self._told:
            return None
        fresh = enumerate(self._held[self._told :], known.seq + self._told + 1)
        now = self._store.mint.now()
        self._told, self._base = len(self._held), known.seq
        return [*self._written, *(Recorded(seq, now, event) for seq, event in fresh)]

    def wrote(self, events: Sequence[Event], view: SessionView) -> None:
        """Note what was written, and the session after it."""
        before = view.seq - len(events)
        self.is_astray = self.is_astray or (self._told > 0 and before != self._base)
        self._told = 0
        now = self._store.mint.now()
        self._written += [Recorded(seq, now, event) for seq, event in enumerate(events, before + 1)]
        del self._written[:-WRITTEN_MAX]

    async def billed(self, message_id: str) -> list[LedgerRow]:
        """The rows of the ledger for the attempts at one turn."""
        return [row async for row in self._store.queries.ledger(self.session_id) if row.message_id == message_id]

    async def status(self, status: Status) -> None:
        """Tell what the session is doing now."""
        await self.append(StatusChanged(status=status, owner=self._owner))

    async def lay_down(self, seq: int | None = None) -> bool:
        """Become idle, if others wrote nothing since ``seq``; whether that was so. None: in any case."""

        def decide(view: SessionView) -> list[Event]:
            if view.owner != self._owner or (seq is not None and view.seq + len(self._held) != seq):
                return []
            return [*self._held, StatusChanged(status=IDLE)]

        with anyio.CancelScope(shield=True):
            view = (await self._store.journal.change(self.session_id, decide, fence=self._fence)).view
        return view.owner != self._owner


async def take_pen(store: Store, session_id: str, owner: Owner, promote: Sequence[str] = ()) -> Pen:
    """Become the owner of a session, and make these prompts part of its history in the same moment.

    Raises Busy while another living process owns it.
    """

    def decide(view: SessionView) -> list[Event]:
        if view.owner is not None and view.owner != owner and is_alive(view.owner):
            raise Busy(f"session {session_id!r} is being run by process {view.owner.pid} on {view.owner.host}")
        waiting = {prompt.message.id for prompt in view.inbox} if view.turn is None else set()
        promoted = [PromptPromoted(message_id=message_id) for message_id in promote if message_id in waiting]
        return [StatusChanged(status=BUSY, owner=owner), *promoted]

    # The fence is read before the decision: who raises it first wins, the other is refused by the engine.
    if promote:
        crash_point("run.before-promote")
    with anyio.CancelScope(shield=True):
        fence = await store.engine.fence(session_id) + 1
        view, decided = await store.journal.change(session_id, decide, fence=fence)
    if promote:
        crash_point("run.after-promote")
    pen = Pen(store, session_id, owner, fence)
    pen.wrote(decided, view)
    return pen
