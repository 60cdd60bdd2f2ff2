"""Abort: close the turn that a dead process left open. Recorded data and waiting prompts stay."""

from contextlib import suppress

from turnkeeper.core.child_tasks import background_tasks
from turnkeeper.model.event import ChildEnded
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import Idle
from turnkeeper.run.taking import take_pen
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import this_process


async def close(store: Store, session_id: str) -> bool:
    """Close the open turn of a session, and those of the Child Sessions that work for it; whether there was one.

    Raises Busy while a living process runs one of them.
    """
    before = await store.queries.state(session_id)
    if before.turn is None and isinstance(before.status, Idle) and not before.children:
        return False
    pen = await take_pen(store, session_id, this_process())
    await pen.close_lost_turn(await store.journal.view(session_id))
    for task in before.children:
        with suppress(NotFound):  # It died before it made the session.
            await close(store, task.session_id)
    for task in background_tasks(await store.journal.view(session_id)):
        await pen.append(ChildEnded(session_id=task.session_id))
    await pen.lay_down()
    return True
