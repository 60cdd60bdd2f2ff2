"""Stop a session that another process runs: ask its owner, and wait until that one has settled everything."""

import anyio

from turnkeeper.core.limits import STOP_ELSEWHERE_S, TAIL_POLL_S
from turnkeeper.model.refusal import Busy
from turnkeeper.model.status import Owner
from turnkeeper.run.stop_requests import request_stop
from turnkeeper.store import keys
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive


async def stop_elsewhere(store: Store, session_id: str, here: Owner | None) -> bool:
    """Whether another process ran the session and has stopped it. Raises Busy if it does not stop in time.

    An owner without a lease is of a version that looks for no requests.
    """
    owner = (await store.queries.state(session_id)).owner
    if owner is None or owner == here or owner.lease_s == 0 or not is_alive(owner):
        return False
    await request_stop(store.engine, session_id)
    with anyio.move_on_after(STOP_ELSEWHERE_S):
        is_running = True
        while is_running:
            # The process first: one that has ended since has released the session before, if it did at all.
            is_running = is_alive(owner)
            if (await store.queries.state(session_id)).owner != owner:
                return True
            if is_running:
                await anyio.sleep(TAIL_POLL_S)
    await store.engine.put({keys.stop_request(session_id): None})
    if not is_alive(owner):
        return False
    raise Busy(
        f"process {owner.pid} on {owner.host} was asked to stop session {session_id!r} and has not done so within "
        f"{STOP_ELSEWHERE_S:.0f} s; if it hangs, end it, and stop the session again"
    )
