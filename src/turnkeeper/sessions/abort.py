"""Abort: close the turn that a dead process left open. Recorded data and waiting prompts stay."""

from turnkeeper.model.status import Idle
from turnkeeper.run.pen import take_pen
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import this_process


async def close(store: Store, session_id: str) -> bool:
    """Close the open turn of a session; whether there was one. Raises Busy while a living process runs it."""
    before = await store.queries.state(session_id)
    if before.turn is None and isinstance(before.status, Idle):
        return False
    pen = await take_pen(store, session_id, this_process())
    await pen.close_lost_turn(await store.journal.view(session_id))
    await pen.lay_down()
    return True
