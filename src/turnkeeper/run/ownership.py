"""Ownership: who this runtime is in the log, and what keeps the sessions it owns."""

from collections.abc import Awaitable, Callable
from itertools import count

from anyio.abc import TaskGroup

from turnkeeper.core.lease import MANY_HOSTS, ONE_HOST
from turnkeeper.run.host import Host
from turnkeeper.run.lease_keeper import LeaseKeeper
from turnkeeper.run.leases import Leases
from turnkeeper.run.settings import Settings
from turnkeeper.run.stop_requests import StopRequests
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import this_process

SHARED = ("postgres",)
"""The engines whose stores several machines share."""

_numbers = count(1)  # Tells the runtimes of this process apart; two of them may have opened one store.


def new_lease_keeper(
    store: Store,
    group: TaskGroup,
    settings: Settings,
    *,
    stop: Callable[[str], Awaitable[object]],
    interrupt: Callable[[str], Awaitable[object]],
    wake: Callable[[str], None],
) -> LeaseKeeper:
    """For a new runtime. ``stop`` ends a run as the end of the process does, ``interrupt`` as the user."""
    terms = settings.lease or (MANY_HOSTS if store.engine.name in SHARED else ONE_HOST)
    owner = this_process().but(runtime=str(next(_numbers)), lease_s=terms.lease_s)
    leases = Leases(store.engine, owner, terms, settings.pace)
    requests = StopRequests(store.engine, interrupt, group, settings.pace)
    host = Host(
        store,
        settings.labels,
        needs_directory=settings.needs_directory,
        delegates=settings.delegates or not settings.runs,
        now=settings.pace.now,
    )
    return LeaseKeeper(store, leases, group, stop=stop, wake=wake, while_owning=requests.heed, host=host)
