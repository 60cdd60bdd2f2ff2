"""Stop a session that another process runs: ask its owner, and wait until that one has settled everything."""

from collections.abc import Awaitable, Callable

import anyio

from turnkeeper.core.limits import STOP_ELSEWHERE_S, TAIL_POLL_S
from turnkeeper.core.view import ViewState
from turnkeeper.model.event import StatusChanged
from turnkeeper.model.refusal import Busy
from turnkeeper.model.status import Owner
from turnkeeper.run.stop_requests import request_stop
from turnkeeper.store import keys
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive


async def stop_elsewhere(
    store: Store, session_id: str, here: Owner | None, stop_here: Callable[[str], Awaitable[bool]]
) -> bool:
    """Stop a session in another process; returns whether one ran it and has stopped it. Raises Busy at the timeout.

    A process that takes the session over meanwhile and continues it is asked next; this one, by ``stop_here``. An owner
    without a lease is of a version that reads no stop requests.
    """
    state = await store.queries.state(session_id)
    owner = state.owner
    if owner is None or owner == here or owner.lease_s == 0 or not is_alive(owner):
        return False
    await request_stop(store.engine, session_id)
    next_owner = await _next_owner(store, session_id, state, owner)
    if next_owner == owner:
        await store.engine.put({keys.stop_request(session_id): None})
        if not is_alive(owner):
            return False
        raise Busy(
            f"process {owner.pid} on {owner.host} was asked to stop session {session_id!r} and has not done so within "
            f"{STOP_ELSEWHERE_S:.0f} s; if it hangs, end it, and stop the session again"
        )
    if next_owner is not None:
        await (stop_here(session_id) if next_owner == here else stop_elsewhere(store, session_id, here, stop_here))
    return True


async def _next_owner(store: Store, session_id: str, before: ViewState, owner: Owner) -> Owner | None:
    """Wait until the owner has stopped the session. Returns the process that continues it; None if it rests.

    Returns the owner itself if it has not stopped in time, or has died.
    """
    with anyio.move_on_after(STOP_ELSEWHERE_S):
        is_running = True
        while is_running:
            # The process first: one that has ended since has released the session before, if it did at all.
            is_running = is_alive(owner)
            now = await store.queries.state(session_id)
            if now.owner != owner:
                return None if await _has_rested(store, session_id, before.seq) else now.owner
            if is_running:
                await anyio.sleep(TAIL_POLL_S)
    return owner


async def _has_rested(store: Store, session_id: str, after: int) -> bool:
    """Whether a session was released since an event. If not, its new owner took over the run that is to be stopped."""
    news = await store.journal.read(session_id, after=after)
    return any(isinstance(one.event, StatusChanged) and one.event.owner is None for one in news)
