"""Which process runs a session, and the status of a session in a word, for every command that shows it."""

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.model.status import Owner, Status

Word: TypeAlias = Literal["idle", "busy", "retry", "waits", "left open"]


async def running_owner(tk: "Turnkeeper", session_id: str) -> "Owner | None":
    """The process that runs a session now; None if there is none, or if it is gone."""
    from turnkeeper.workspace.owner import is_alive

    owner = (await tk.store.queries.state(session_id)).owner
    return owner if owner is not None and is_alive(owner) else None


def status_word(status: "Status", owner: "Owner | None", *, is_asking: bool, is_served: bool) -> Word:
    """The word for a status: that of a session whose process is gone is not the one that its log has.

    ``is_asking``: a call waits for the user. ``is_served``: a server gave the status, and closes the turns of dead
    processes itself.
    """
    from turnkeeper.model.status import Idle, Retrying
    from turnkeeper.workspace.owner import is_alive

    if is_asking:
        return "waits"
    if isinstance(status, Idle):
        return "idle"
    if not is_served and (owner is None or not is_alive(owner)):
        return "left open"
    return "retry" if isinstance(status, Retrying) else "busy"
