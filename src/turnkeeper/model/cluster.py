"""Cluster: the processes that share a store, the sessions that they run, and those that wait for a worker."""

from typing import Literal, TypeAlias

from turnkeeper.model.status import Owner
from turnkeeper.model.value import Value

HostState: TypeAlias = Literal["runs", "ended", "unseen", "gone"]


class HostReport(Value, omit_defaults=False):
    """A runtime that has a heartbeat in the store. It removes its heartbeat when it ends in order."""

    owner: Owner
    role: str
    process: HostState
    """The state of its process, as seen from here. A process on another machine is unseen, and gone once it has been
    silent for longer than its lease and a minute."""
    sessions: int
    """The number of sessions it owned at its newest heartbeat; if it has ended, those that still name it as owner."""
    address: str = ""
    """The address of a server on its host; empty for other processes."""
    concurrency: int | None = None
    """The number of sessions that a worker runs at a time."""
    draining: bool = False
    """Whether it takes no more sessions and ends when those it runs have come to rest, as of its newest heartbeat."""
    labels: tuple[str, ...] = ()
    """The labels that it declares."""
    only_labels: bool = False
    """Whether it runs no sessions without a label."""
    heartbeat_age_ms: int
    """The time since its newest heartbeat, if the clocks of both hosts agree."""

    @property
    def is_over(self) -> bool:
        """Whether the process ended without removing its heartbeat. It is listed for a day."""
        return self.process in ("ended", "gone")


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
    """The time since the run was requested."""
    reason: str = ""
    """The reason why no host may run it; empty if a worker may, which is busy or about to start it."""


class QueueReport(Value, omit_defaults=False):
    """Runs that servers have asked workers for and that have not started yet."""

    sessions: int = 0
    wakes: int = 0
    oldest_ms: int = 0
    """The lag: the time since the oldest request."""
    waiting: tuple[WaitReport, ...] = ()
    """The sessions that wait longest, at most 20."""


class ClusterReport(Value):
    """The processes on one store."""

    hosts: tuple[HostReport, ...]
    leases: tuple[LeaseReport, ...]
    queue: QueueReport
