"""Heartbeat: a record that a runtime writes to the store at intervals, so that others know that it is alive."""

from turnkeeper.model.status import Owner
from turnkeeper.model.value import Value


class Heartbeat(Value):
    """The newest heartbeat of a runtime. The number rises; others compare it with the one they saw before."""

    owner: Owner
    beat: int
    at: int
    """The time of writing, by the clock of its host in milliseconds; for people, and to remove it a day later."""
    sessions: int = 0
    """The number of sessions that the runtime owned then."""
    role: str = ""
    """The kind of process: ``server`` or ``worker``; empty for a command."""
    address: str = ""
    """The address of a server on its host; empty for other processes."""
    concurrency: int | None = None
    """The number of sessions that a worker runs at a time."""
    draining: bool = False
    """Whether it takes no more sessions and ends when those it runs have come to rest."""
    labels: tuple[str, ...] = ()
    """The labels that the host declares."""
    only_labels: bool = False
    """Whether it runs no sessions without a label."""
    lacking: tuple[str, ...] = ()
    """Sessions that it was asked to run and whose directory it does not have."""
