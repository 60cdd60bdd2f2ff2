"""Cluster: the processes that share a store, the sessions they run, and those that wait for a worker."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from turnkeeper.core.labels import HostLabels, why_no_host
from turnkeeper.core.lease import is_forgotten
from turnkeeper.model.cluster import ClusterReport, HostReport, HostState, LeaseReport, QueueReport, WaitReport
from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.model.value import UNREADABLE
from turnkeeper.run.host import Host
from turnkeeper.run.job_wakes import new_wakes
from turnkeeper.run.leases import read_heartbeat
from turnkeeper.run.ownership import SHARED
from turnkeeper.store.damaged import DamagedDocument
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import process

SILENT_MS: Final = 60_000
"""A worker whose last heartbeat is older is not expected to take any session."""
WAITING_MAX: Final = 20


async def report(store: Store) -> ClusterReport:
    """The processes on a store, as of now."""
    now = store.mint.now()
    beats = await _heartbeats(store, now)
    leases: list[LeaseReport] = []
    for key, _ in await store.engine.scan(("busy",)):
        with suppress(NotFound, *UNREADABLE):
            if (owner := (await store.queries.state(key[-1])).owner) is not None:
                leases.append(LeaseReport(session_id=key[-1], owner=owner, process=process(owner)))
    return ClusterReport(
        hosts=tuple(_host(one, _process(store, one, now), now, leases) for one in beats),
        leases=tuple(leases),
        queue=await _queue(store, beats, {one.session_id for one in leases}),
    )


async def server_here(store: Store) -> str | None:
    """The address of a server on this store that runs on this machine; of the newest, if there are several."""
    beats = await _heartbeats(store, store.mint.now())
    here = [one for one in beats if one.address and process(one.owner) == "runs"]
    return max(here, key=lambda one: one.at).address if here else None


async def _heartbeats(store: Store, now: int) -> list[Heartbeat]:
    """The heartbeats of processes worth listing. Writers of heartbeats delete the others."""
    found: list[Heartbeat] = []
    for _, body in await store.engine.scan(("heartbeat",)):
        with suppress(*UNREADABLE):
            one = read_heartbeat(body)
            if not is_forgotten(one, now) or process(one.owner) == "runs":  # A server that rests tells nothing.
                found.append(one)
    return found


def _process(store: Store, one: Heartbeat, now: int) -> HostState:
    found = process(one.owner)
    # The others write no heartbeats while they run no session, and may live in silence.
    is_heard = one.role == "worker" or (one.role == "server" and store.engine.name in SHARED)
    is_silent = now - one.at > max(SILENT_MS, (one.owner.lease_s or 0) * 1000)
    return "gone" if found == "unseen" and is_heard and is_silent else found


def _host(one: Heartbeat, state: HostState, now: int, leases: Sequence[LeaseReport]) -> HostReport:
    return HostReport(
        owner=one.owner,
        role=one.role,
        process=state,
        address=one.address,
        # Not as the heartbeat says: the last one of a process that ended, or that rests, stays as it was.
        sessions=sum(lease.owner == one.owner for lease in leases),
        concurrency=one.concurrency,
        draining=one.draining,
        labels=one.labels,
        only_labels=one.only_labels,
        heartbeat_age_ms=max(now - one.at, 0),
    )


async def _queue(store: Store, beats: Sequence[Heartbeat], running: Collection[str]) -> QueueReport:
    """The sessions that wait for a worker. A running session does not, although its wake is not removed yet."""
    now = store.mint.now()
    wakes = await new_wakes(store, Host(store, HostLabels()).label_of).waiting()
    waiting = sorted((one.at, session_id) for session_id, one in wakes.items() if session_id not in running)
    workers = [
        one
        for one in beats
        if one.role == "worker" and not one.draining and process(one.owner) != "ended" and now - one.at < SILENT_MS
    ]
    reports: list[WaitReport] = []
    for at, session_id in waiting[:WAITING_MAX]:
        with suppress(NotFound, DamagedDocument):
            session = await store.queries.session(session_id)
            reason = _reason(session, workers)
            reports.append(
                WaitReport(session_id=session_id, label=session.label, wait_ms=max(now - at, 0), reason=reason)
            )
    return QueueReport(
        sessions=len(waiting),
        wakes=sum(wakes[session_id].wakes for _, session_id in waiting),
        oldest_ms=max(now - waiting[0][0], 0) if waiting else 0,
        waiting=tuple(reports),
    )


def _reason(session: Session, workers: Sequence[Heartbeat]) -> str:
    """Why no host takes a session."""
    able = [one for one in workers if _labels(one).runs(session.label)]
    if not able:
        return why_no_host(session.label, [_labels(one) for one in workers])
    lacking = [one for one in able if session.id in one.lacking]
    if len(lacking) == len(able):
        return f"no directory {session.directory} on {', '.join(sorted({one.owner.host for one in lacking}))}"
    return ""


def _labels(one: Heartbeat) -> HostLabels:
    return HostLabels(labels=one.labels, only=one.only_labels)
