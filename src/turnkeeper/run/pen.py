"""The pen: what a drain writes with. Every append carries the drain's fence, so a replaced owner cannot write.

Writing is shielded: an interrupt comes before an append or after it, so whoever wrote knows what is on record.
"""

from collections.abc import Sequence

import anyio

from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, PromptPromoted, StatusChanged
from turnkeeper.model.refusal import Busy
from turnkeeper.model.status import BUSY, IDLE, Owner, Status
from turnkeeper.store.crash import crash_point
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive


class Pen:
    """Writes to one session as its owner."""

    def __init__(self, store: Store, session_id: str, owner: Owner, fence: int) -> None:
        self._store, self.session_id, self._owner, self._fence = store, session_id, owner, fence

    async def append(self, *events: Event, at: str = "") -> SessionView:
        """Make events true. Raises StaleFence once another process owns the session.

        ``at`` names the crash points just before and just after it.
        """
        if at:
            crash_point(f"run.before-{at}")
        with anyio.CancelScope(shield=True):
            view = await self._store.journal.append(self.session_id, *events, fence=self._fence)
        if at:
            crash_point(f"run.after-{at}")
        return view

    async def status(self, status: Status) -> None:
        """Tell what the session is doing now."""
        await self.append(StatusChanged(status=status, owner=self._owner))

    async def lay_down(self, seq: int | None = None) -> bool:
        """Become idle, if nothing was written since ``seq``; whether that was so. None: in any case."""

        def decide(view: SessionView) -> list[Event]:
            if view.owner != self._owner or (seq is not None and view.seq != seq):
                return []
            return [StatusChanged(status=IDLE)]

        with anyio.CancelScope(shield=True):
            view = await self._store.journal.change(self.session_id, decide, fence=self._fence)
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
        await store.journal.change(session_id, decide, fence=fence)
    if promote:
        crash_point("run.after-promote")
    return Pen(store, session_id, owner, fence)
