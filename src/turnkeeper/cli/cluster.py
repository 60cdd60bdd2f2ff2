"""The command that shows which processes share a store."""

from typing import TYPE_CHECKING

from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer
from turnkeeper.cli.screen import Column, Screen, fields, plural, table

if TYPE_CHECKING:
    from turnkeeper.model.cluster import ClusterReport, HostReport, LeaseReport, WaitReport


async def status(*, options: Options) -> None:
    """Show the servers and workers of a store, the sessions they run, and what waits.

    Workers and servers are listed from their start, others once they have run a
    session for some seconds. Of sessions that wait it says why, such as "no host
    with label gpu". A worker that was told to end is "draining" until its sessions
    rest. With --json the answer is {"hosts",
    "leases", "queue"}; "process" is "unseen" for one of another machine, and
    "gone" if it has been silent for long. A process that died is listed for a
    day. The lag of the queue, "oldestMs", is how long the oldest request waits
    for a worker.

    For example:
      turnkeeper cluster status
      turnkeeper cluster status --json | jq .queue.oldestMs
    """
    options.require_store("cluster status")
    async with options.read() as tk:
        report = await tk.cluster()
    answer(options, report, lambda screen: _shown(screen, report))


def _shown(screen: Screen, report: "ClusterReport") -> str:
    queue = report.queue
    waits = f"{plural(queue.sessions, 'session')}, the oldest for {queue.oldest_ms / 1000:.1f} s"
    pieces = [fields(screen, [("Waiting", waits if queue.sessions else "nothing")])]
    if queue.waiting:
        pieces.append(_waiting(screen, queue.waiting))
    if report.hosts:
        pieces.append(_hosts(screen, report.hosts))
    if report.leases:
        pieces.append(_leases(screen, report.leases))
    return "\n\n".join(pieces)


def _waiting(screen: Screen, waiting: "tuple[WaitReport, ...]") -> str:
    return table(
        screen,
        Column("SESSION", [one.session_id for one in waiting], ("cyan",)),
        Column("LABEL", [one.label or "-" for one in waiting]),
        Column("WAITS", [f"{one.wait_ms / 1000:.1f} s" for one in waiting], ("dim",)),
        Column("REASON", [one.reason or "waits for a free worker" for one in waiting], ("yellow",)),
    )


def _hosts(screen: Screen, hosts: "tuple[HostReport, ...]") -> str:
    return table(
        screen,
        Column("HOST", [one.owner.host for one in hosts], ("cyan",)),
        Column("PROCESS", [str(one.owner.pid) for one in hosts]),
        Column("ROLE", [one.role or "command" for one in hosts]),
        Column("STATE", [_state(one) for one in hosts], ("yellow",)),
        Column("SESSIONS", [_sessions(one) for one in hosts]),
        Column("LABELS", [_labels(one) for one in hosts]),
        Column("HEARTBEAT", [f"{one.heartbeat_age_ms / 1000:.1f} s ago" for one in hosts], ("dim",)),
    )


def _state(host: "HostReport") -> str:
    """The state of a process, in words."""
    if host.draining and not host.is_over:
        return "draining"
    return "serves" if host.role == "server" and host.process == "runs" else host.process


def _sessions(host: "HostReport") -> str:
    return str(host.sessions) if host.concurrency is None else f"{host.sessions} of {host.concurrency}"


def _labels(host: "HostReport") -> str:
    return ", ".join(host.labels) + (" only" if host.only_labels else "") or "-"


def _leases(screen: Screen, leases: "tuple[LeaseReport, ...]") -> str:
    return table(
        screen,
        Column("SESSION", [one.session_id for one in leases], ("cyan",)),
        Column("RUN BY", [f"process {one.owner.pid} on {one.owner.host}" for one in leases]),
        Column("STATE", [one.process for one in leases], ("yellow",)),
        Column("LEASE", [f"{one.owner.lease_s:g} s" if one.owner.lease_s else "none" for one in leases], ("dim",)),
    )
