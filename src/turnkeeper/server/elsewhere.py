"""Elsewhere: sessions that another process runs. Two servers may have opened one store."""

from typing import TYPE_CHECKING

import anyio

from turnkeeper.api import Turnkeeper
from turnkeeper.core.limits import TAIL_POLL_S
from turnkeeper.workspace.owner import is_alive

if TYPE_CHECKING:
    # Loaded with the first run: a server that only looks at sessions starts faster without.
    from turnkeeper.run.coordinator import Outcome


async def wait(turnkeeper: Turnkeeper, session_id: str) -> "Outcome":
    """Wait until a session rests, whichever process runs it.

    The process that runs a session also runs the prompts that others admit. If it dies, they are run here.
    """
    was_elsewhere = False
    while True:
        outcome = await turnkeeper.wait(session_id)
        was_elsewhere = was_elsewhere or outcome.is_busy
        owner = (await turnkeeper.store.queries.state(session_id)).owner
        if owner is None or (owner == turnkeeper.runtime.owner and session_id not in turnkeeper.running):
            return outcome.but(kind="rested", is_busy=False) if outcome.is_busy else outcome
        if is_alive(owner):
            was_elsewhere = True
            await anyio.sleep(TAIL_POLL_S)
        elif was_elsewhere:
            turnkeeper.runtime.wake(session_id)
        else:
            return outcome
