"""The status of a session in a word, the same for every command that shows it."""

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from turnkeeper.model.status import Owner, Status

Word: TypeAlias = Literal["idle", "busy", "retry", "waits", "left open"]


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
