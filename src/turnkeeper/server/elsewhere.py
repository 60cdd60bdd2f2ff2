"""Elsewhere: sessions that another process runs. Two servers may have opened one store."""

from typing import TYPE_CHECKING

from turnkeeper.api import Turnkeeper

if TYPE_CHECKING:
    # Loaded with the first run: a server that only looks at sessions starts faster without.
    from turnkeeper.run.coordinator import Outcome


async def wait(turnkeeper: Turnkeeper, session_id: str) -> "Outcome":
    """Wait until a session rests, whichever process runs it.

    The process that runs a session also runs the prompts that others admit. If it dies, they are run here.
    """
    while (outcome := await turnkeeper.wait(session_id)).kind == "abandoned":
        turnkeeper.runtime.wake(session_id)
    return outcome
