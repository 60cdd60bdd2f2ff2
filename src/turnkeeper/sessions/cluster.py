"""Cluster: who shares a store, who runs which session, and what waits for a worker."""

from contextlib import suppress

from turnkeeper.core.lease import is_forgotten
from turnkeeper.model.cluster import ClusterReport, HostReport, LeaseReport, QueueReport
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import UNREADABLE
from turnkeeper.run.leases import read_heartbeat
from turnkeeper.run.wakes import StoredWakes
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import process


async def report(store: Store) -> ClusterReport:
    """The processes on a store, as of now."""
    now = store.mint.now()
    hosts: list[HostReport] = []
    for _, body in await store.engine.scan(("heartbeat",)):
        with suppress(*UNREADABLE):
            one = read_heartbeat(body)
            if is_forgotten(one, now):
                continue  # Whoever writes heartbeats deletes it.
            hosts.append(
                HostReport(
                    owner=one.owner,
                    role=one.role,
                    process=process(one.owner),
                    sessions=one.sessions,
                    concurrency=one.concurrency,
                    heartbeat_age_ms=max(now - one.at, 0),
                )
            )
    leases: list[LeaseReport] = []
    for key, _ in await store.engine.scan(("busy",)):
        with suppress(NotFound, *UNREADABLE):
            if (owner := (await store.queries.state(key[-1])).owner) is not None:
                leases.append(LeaseReport(session_id=key[-1], owner=owner, process=process(owner)))
    return ClusterReport(hosts=tuple(hosts), leases=tuple(leases), queue=await queue(store))


async def queue(store: Store) -> QueueReport:
    """What waits for a worker."""
    waiting = await StoredWakes(store.engine, store.mint).waiting()
    asked = [one.at for one in waiting.values()]
    return QueueReport(
        sessions=len(waiting),
        wakes=sum(len(one.keys) for one in waiting.values()),
        oldest_ms=max(store.mint.now() - min(asked), 0) if asked else 0,
    )
