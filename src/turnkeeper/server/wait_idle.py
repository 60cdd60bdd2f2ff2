"""Waiting for a session that any process may run: two servers may have opened one store."""

from typing import TYPE_CHECKING

from turnkeeper.api import Turnkeeper

if TYPE_CHECKING:
    # Not imported at run time: a server that only reads sessions starts faster without it.
    from turnkeeper.run.coordinator import Outcome


async def wait_idle(turnkeeper: Turnkeeper, session_id: str) -> "Outcome":
    """Wait until a session is idle, whichever process runs it.

    The owner of a session also runs prompts that other processes admit. If the owner dies, the session is run here.
    """
    while (outcome := await turnkeeper.wait(session_id)).kind == "abandoned":
        turnkeeper.runtime.wake(session_id)
    return outcome
