"""Wait until a session rests, whichever process runs it."""

import anyio

from turnkeeper.core.limits import TAIL_POLL_S
from turnkeeper.model.status import Owner
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.runtime import Runtime
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive


async def wait(store: Store, runtime: Runtime, session_id: str) -> Outcome:
    """How the run here ended, or ``rested``. Raises NotFound.

    ``abandoned`` means that the session is busy in the log and no process runs it any more.
    """
    await store.queries.state(session_id)
    seen: int | None = None
    while True:
        outcome = await runtime.wait(session_id)
        if outcome.kind != "rested" and not outcome.is_busy:
            return outcome
        state = await store.queries.state(session_id)
        if state.owner is None:
            return outcome.but(kind="rested", is_busy=False) if outcome.is_busy else outcome
        if session_id not in runtime.active and is_abandoned(state.owner, runtime.owner):
            if state.seq == seen:
                return Outcome(kind="abandoned", reason=_words(state.owner))
            seen = state.seq  # A run here may have begun and ended while this was read: look once more.
        await anyio.sleep(TAIL_POLL_S)


def is_abandoned(owner: Owner, here: Owner | None) -> bool:
    """Whether the owner of a session, that is not run ``here``, runs it no more."""
    return owner == here or not is_alive(owner)


def _words(owner: Owner) -> str:
    return (
        f"process {owner.pid} on {owner.host} ran the session and does so no more; `run` closes what it left open, "
        "and with `resume=True` goes on"
    )
