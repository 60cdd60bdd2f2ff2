"""Abort: close the turn that a dead process left open. Recorded data and waiting prompts stay."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from turnkeeper.core.child_tasks import background_tasks
from turnkeeper.model.event import ChildEnded
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import Idle
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.taking import take_session
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive, this_process


async def close(store: Store, session_id: str, stop: Callable[[str], Awaitable[bool]]) -> bool:
    """Close the open turn of a session, and ``stop`` the Child Sessions that work for it; whether there was one.

    Raises Busy while a living process runs the session, and what ``stop`` raises.
    """
    before = await store.queries.state(session_id)
    if before.turn is None and isinstance(before.status, Idle) and not before.children:
        return False
    writer = await take_session(store, session_id, this_process())
    try:
        await writer.close_lost_turn(await store.journal.view(session_id))
        # Those that run first: their processes would tell the session what came of them, and have it go on.
        await _end_tasks(store, writer, only_running=True)
        for task in before.children:
            with suppress(NotFound):  # It died before it made the session.
                await stop(task.session_id)
        await _end_tasks(store, writer, only_running=False)
    finally:
        await writer.release()
    return True


async def _end_tasks(store: Store, writer: FencedWriter, *, only_running: bool) -> None:
    """Record that results in the background are waited for no longer."""
    for task in background_tasks(await store.journal.view(writer.session_id)):
        if not only_running or await _is_running(store, task.session_id):
            await writer.append(ChildEnded(session_id=task.session_id))


async def _is_running(store: Store, session_id: str) -> bool:
    try:
        owner = (await store.queries.state(session_id)).owner
    except NotFound:
        return False
    return owner is not None and is_alive(owner)
