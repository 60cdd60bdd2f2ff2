"""Heartbeat: what a runtime that runs sessions writes to the store at intervals, so that others know it is there."""

from turnkeeper.model.status import Owner
from turnkeeper.model.value import Value


class Heartbeat(Value):
    """The newest heartbeat of a runtime. The number rises; others compare it with the one they saw before."""

    owner: Owner
    beat: int
    at: int
    """When it was written, by the clock of its host in milliseconds; for people, and to forget it a day later."""
    sessions: int = 0
    """How many sessions it owned then."""
    role: str = ""
    """What the process is for: ``server`` or ``worker``; empty for a command."""
    address: str = ""
    """Where a server is reached on its host; empty for others."""
    concurrency: int | None = None
    """How many sessions a worker runs at a time."""
    draining: bool = False
    """Whether it takes no more sessions and ends when those it runs have come to rest."""
    labels: tuple[str, ...] = ()
    """The labels that the host declares."""
    only_labels: bool = False
    """Whether it runs no sessions without a label."""
    lacking: tuple[str, ...] = ()
    """Sessions that it was asked to run and whose directory it does not have."""
