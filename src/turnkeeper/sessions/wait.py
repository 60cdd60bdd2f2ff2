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


async def wait_family(store: Store, runtime: Runtime, session_id: str) -> Outcome:
    """Wait as ``wait`` does, and for the Child Sessions that work for the session in the background.

    ``abandoned`` also means that a process ended before one of them did, or before its result was delivered.
    """
    outcome = Outcome(kind="rested")
    seen: dict[str, int] = {}
    while True:
        for one in (await wait(store, runtime, session_id), await runtime.wait_family(session_id)):
            if one.kind == "abandoned":
                return one
            outcome = one if one.reason or one.kind != "rested" else outcome
        left = {view.session.id: view.seq for view in await runtime.children.unreported_below(session_id)}
        if not left:
            return outcome
        for child_id, seq in left.items():
            child = await wait(store, runtime, child_id)
            if child.kind == "abandoned" or seen.get(child_id) == seq:
                reason = (
                    f"child session {child_id} was cut off with the process that ran it, and its result is still to "
                    f"come; resuming session {session_id} continues it"
                )
                return Outcome(kind="abandoned", reason=reason)
        seen = left  # Its process may be about to deliver the result: check again.
        await anyio.sleep(TAIL_POLL_S)


def is_abandoned(owner: Owner, here: Owner | None) -> bool:
    """Whether the owner of a session does not run it, if the owner ``here`` does not run it."""
    return owner == here or not is_alive(owner)
