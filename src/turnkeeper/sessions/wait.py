"""Wait until a session rests, also if another process runs it."""

import anyio

from turnkeeper.core.limits import TAIL_POLL_S
from turnkeeper.model.status import Owner
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.runtime import Runtime
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive


async def wait(store: Store, runtime: Runtime, session_id: str) -> Outcome:
    """The outcome of the run in this process, or ``rested``. Raises NotFound.

    ``abandoned`` means that the session has an owner, and that the owner does not run it any more.
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
                reason = (
                    f"process {state.owner.pid} on {state.owner.host} ran the session and does not any more; `run` "
                    "closes its turn, and with `resume=True` continues it"
                )
                return Outcome(kind="abandoned", reason=reason)
            seen = state.seq  # A run in this process may have begun and ended meanwhile: check again.
        await anyio.sleep(TAIL_POLL_S)


def is_abandoned(owner: Owner, here: Owner | None) -> bool:
    """Whether the owner of a session does not run it, if the owner ``here`` does not run it."""
    return owner == here or not is_alive(owner)
