"""Taking a session: a process becomes its owner, under a fence that is higher than any before."""

from collections.abc import Callable, Sequence
from functools import partial

import anyio

from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, StatusChanged
from turnkeeper.model.refusal import Busy
from turnkeeper.model.status import BUSY, Owner
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.store.crash import crash_point
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive


async def take_session(
    store: Store,
    session_id: str,
    owner: Owner,
    first: Callable[[SessionView], Sequence[Event]] = lambda view: (),
    *,
    at: str = "",
    may_take: Callable[[SessionView], bool] | None = None,
) -> FencedWriter:
    """Become the owner of a session, and append in the same moment what ``first`` decides.

    ``at`` names the crash points around it. ``may_take`` says whether the owner of a session may be replaced; by
    default only one whose process has ended. Raises Busy if it may not.
    """
    crash_point(f"run.before-{at}")
    for _ in range(ATTEMPTS_MAX):
        known = store.journal.cache.view(session_id) or await store.journal.view(session_id)
        decide = partial(_taken, owner, first, may_take or _is_left, known.seq)
        try:
            with anyio.CancelScope(shield=True):
                fence = await store.engine.fence(session_id) + 1
                view, decided = await store.journal.change(session_id, decide, fence=fence)
        except _FenceUnsure:
            await store.journal.view(session_id)
            continue
        crash_point(f"run.after-{at}")
        writer = FencedWriter(store, session_id, owner, fence)
        writer.note_written(decided, view)
        return writer
    raise Busy(f"session {session_id!r} changes its owner again and again; try again")


class _FenceUnsure(Exception):
    """The log has grown since before the fence was read, so another owner may have come and gone with the same one."""


def _taken(
    owner: Owner,
    first: Callable[[SessionView], Sequence[Event]],
    may_take: Callable[[SessionView], bool],
    known: int,
    view: SessionView,
) -> list[Event]:
    """The events that make ``owner`` the owner. ``known`` is the last event that was seen before the fence was read."""
    if view.owner is not None and view.owner != owner and not may_take(view):
        raise Busy(f"session {view.session.id!r} is being run by process {view.owner.pid} on {view.owner.host}")
    if view.seq > known:
        raise _FenceUnsure
    return [StatusChanged(status=BUSY, owner=owner), *first(view)]


def _is_left(view: SessionView) -> bool:
    return view.owner is None or not is_alive(view.owner)
