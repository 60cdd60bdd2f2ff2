"""Cluster: which processes share a store, which sessions they run, and what waits for a worker."""

from typing import Literal

from turnkeeper.model.status import Owner
from turnkeeper.model.value import Value


class HostReport(Value, omit_defaults=False):
    """A runtime that has written a heartbeat and not taken its leave."""

    owner: Owner
    role: str
    process: Literal["runs", "ended", "unseen"]
    """What is seen of it from here. One on another machine is unseen."""
    sessions: int
    """How many sessions it owned at its newest heartbeat; how many still name it, if it has ended."""
    address: str = ""
    """Where a server is reached on its host; empty for others."""
    concurrency: int | None = None
    """How many a worker runs at a time."""
    draining: bool = False
    """Whether it takes no more sessions and ends when those it runs have come to rest, as of its newest heartbeat."""
    labels: tuple[str, ...] = ()
    """The labels that it declares."""
    only_labels: bool = False
    """Whether it runs no sessions without a label."""
    heartbeat_age_ms: int
    """Since its newest heartbeat, if the clocks of both hosts agree."""


class LeaseReport(Value):
    """A session that has an owner."""

    session_id: str
    owner: Owner
    process: Literal["runs", "ended", "unseen"]


class WaitReport(Value, omit_defaults=False):
    """A session that waits for a worker."""

    session_id: str
    label: str | None = None
    """The label that a host must have to run it."""
    wait_ms: int
    """Since it was asked for."""
    reason: str = ""
    """Why no host takes it; empty if workers that may are busy, or about to."""


class QueueReport(Value, omit_defaults=False):
    """Runs that servers have asked workers for and that have not started yet."""

    sessions: int = 0
    wakes: int = 0
    oldest_ms: int = 0
    """The lag: since the oldest of them was asked for."""
    waiting: tuple[WaitReport, ...] = ()
    """Those that wait longest, at most 20."""


class ClusterReport(Value):
    """The processes on one store."""

    hosts: tuple[HostReport, ...]
    leases: tuple[LeaseReport, ...]
    queue: QueueReport
