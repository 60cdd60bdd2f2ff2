"""Lease: how long the owner of a session is believed to run it. All times are passed in.

An owner promises, in the log, a sign of life every ``Owner.lease_s`` seconds: an event of the session, or a higher
number in its heartbeat. Who wants the session measures the silence on its own clock, from the moment when it first saw
the newest sign. The clocks of two hosts are never compared, so one that is wrong does no harm; it must only run about
as fast as others.

The lease decides when a session may be taken. What keeps a replaced owner from writing is the fence.
"""

from typing import Literal, NamedTuple, TypeAlias

from turnkeeper.core.limits import HOST_KEPT_MS
from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.status import Owner
from turnkeeper.model.value import Value

Process: TypeAlias = Literal["runs", "ended", "unseen"]
"""The state of an owner's process, from the kernel. A process of another machine or container is unseen."""

Step: TypeAlias = Literal["wait", "renew", "reclaim", "stop"]
"""The next step of a host for its lease.

``reclaim``: it was paused for too long and does not know whether its sessions are still its own. It asks the store, by
an append under its fence to each of them. ``stop``: the store took no heartbeat in time, so its runs must end.
"""


class Terms(Value):
    """The times of a lease, in seconds. ``beat_s`` is less than half of ``lease_s - margin_s``."""

    beat_s: float
    """The time between two heartbeats, and between two looks at the sessions of others."""
    lease_s: float
    """The silence after which others may take the session."""
    margin_s: float
    """The time before the end of the lease at which an owner that cannot renew it stops its runs."""


ONE_HOST = Terms(beat_s=10, lease_s=60, margin_s=15)
"""For stores of one machine, where a dead process is seen at once, and a long pause is likely a stopped terminal."""


def terms_of(lease_s: float) -> Terms:
    """The times of a lease of this length: five heartbeats in it, and the end of the last third is for stopping."""
    return Terms(beat_s=lease_s / 5, lease_s=lease_s, margin_s=lease_s * 0.3)


MANY_HOSTS = terms_of(10)
"""For workers, and stores that several machines share."""


class Sign(NamedTuple):
    """A sign of life: an owner, the number of its newest heartbeat (0 before the first), and the session's last seq."""

    owner: Owner
    beat: int
    seq: int


class Silence(NamedTuple):
    """The newest sign of an owner: when it had been read for the first time, and when the last reading of it began.

    An answer of the store may take long on its way, so only the time between these two was silent for certain.
    """

    sign: Sign
    since: float
    until: float


class Tenure(NamedTuple):
    """A host's own lease: the time just before it was last renewed, and the time of a later try that failed."""

    renewed: float
    failed: float | None = None


def listen(known: Silence | None, sign: Sign, begun: float, now: float) -> Silence:
    """The silence of an owner after its newest sign was read, from ``begun`` until ``now``."""
    if known is not None and known.sign == sign:
        return known._replace(until=begun)
    return Silence(sign, since=now, until=now)


def has_ended(silence: Silence) -> bool:
    """Whether the lease has ended. An owner of an older version promised nothing, so it never does."""
    lease_s = silence.sign.owner.lease_s
    return lease_s > 0 and silence.until - silence.since >= lease_s


def may_take(owner: Owner | None, here: Owner, *, process: Process, silence: Silence | None, seq: int) -> bool:
    """Whether ``here`` may become the owner of a session whose last event is ``seq``.

    A dead process is replaced at once. A silence counts only if it reaches up to this very event.
    """
    if owner is None or owner == here or process == "ended":
        return True
    if silence is None or silence.sign.owner != owner or silence.sign.seq != seq:
        return False
    return has_ended(silence)


def is_forgotten(heartbeat: Heartbeat, now: int) -> bool:
    """Whether a heartbeat is so old, by the clocks of both hosts, that its process need not be listed any more.

    If a clock is wrong, the heartbeat of a living process may be deleted. It writes the next one soon, and until then
    counts as one that has not begun to beat: its sessions are not taken over any earlier for that.
    """
    return now - heartbeat.at > HOST_KEPT_MS


def stop_at(tenure: Tenure, terms: Terms) -> float:
    """The time when the runs of a host that has not renewed its lease must be stopped."""
    return tenure.renewed + terms.lease_s - terms.margin_s


def next_at(tenure: Tenure, terms: Terms) -> float:
    """The time of a host's next step for its lease."""
    due = (tenure.renewed if tenure.failed is None else tenure.failed) + terms.beat_s
    end = stop_at(tenure, terms)
    # After the end it goes on trying: the store may come back before anybody has taken the sessions.
    return min(due, end) if tenure.failed is None or tenure.failed < end else due


def next_step(tenure: Tenure, terms: Terms, now: float) -> Step:
    """The step of a host for its lease now."""
    if now < next_at(tenure, terms):
        return "wait"
    if now < stop_at(tenure, terms):
        return "renew"
    return "reclaim" if tenure.failed is None else "stop"
