"""Metrics: counts of requests, streams and sessions in Prometheus text format."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import anyio

from turnkeeper.core.limits import METRICS_S
from turnkeeper.server.service import Service
from turnkeeper.store.engine import StoreUnavailable

if TYPE_CHECKING:
    from turnkeeper.model.cluster import ClusterReport


class Metrics:
    """Counts requests; all other values are read when the metrics are requested."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[operation, status] += 1
        self._seconds[operation] += seconds

    async def text(self) -> str:
        """All of it; without what is in the store if that does not answer in time."""
        tk, stored = self._service.turnkeeper, tuple[_Metric, ...]()
        with suppress(TimeoutError, StoreUnavailable), anyio.fail_after(METRICS_S):
            pending = len(await tk.permissions()) + len(await tk.questions())
            stored = tuple(_stored(pending, await tk.cluster()))
        return "\n".join(self._lines(stored)) + "\n"

    def _lines(self, stored: Sequence["_Metric"]) -> Iterator[str]:
        yield from _head("turnkeeper_requests_total", "counter", "Requests answered, by operation and status.")
        for (operation, status), count in sorted(self._requests.items()):
            yield f'turnkeeper_requests_total{{operation="{operation}",status="{status}"}} {count}'
        yield from _head("turnkeeper_request_seconds_total", "counter", "Seconds until responses began, by operation.")
        for operation, seconds in sorted(self._seconds.items()):
            yield f'turnkeeper_request_seconds_total{{operation="{operation}"}} {seconds:.6f}'
        answers: _Metric = (
            "turnkeeper_store_answers",
            "gauge",
            "Whether the store answered now: 1 or 0.",
            bool(stored),
        )
        for name, kind, about, value in (*self._now(), answers, *stored):
            yield from _head(name, kind, about)
            yield f"{name} {value:d}"

    def _now(self) -> Iterator["_Metric"]:
        from turnkeeper.server.streams.hub import Hub  # Imported late: a health check needs no streams.

        turnkeeper, bus = self._service.turnkeeper, self._service.turnkeeper.bus
        yield "turnkeeper_sessions_running", "gauge", "Sessions that this process runs.", len(turnkeeper.running)
        for hub in self._service.made(Hub):
            yield "turnkeeper_streams", "gauge", "Open event streams.", hub.subscribers
            yield (
                "turnkeeper_frames_total",
                "counter",
                "Events sent to streams, after joining deltas.",
                hub.counts.frames,
            )
            yield "turnkeeper_flushes_total", "counter", "Flushes of queued events to streams.", hub.counts.flushes
            yield (
                "turnkeeper_streams_dropped_total",
                "counter",
                "Streams dropped because their client was slow.",
                hub.counts.dropped,
            )
        yield "turnkeeper_subscribers", "gauge", "Subscribers of notifications.", bus.subscribers
        yield "turnkeeper_notifications_dropped_total", "counter", "Deltas that slow subscribers missed.", bus.dropped
        yield "turnkeeper_overflows_total", "counter", "Subscribers dropped because they fell behind.", bus.overflows
        live = turnkeeper.store.journal.fanout.counts
        yield "turnkeeper_live_sent_total", "counter", "Messages with deltas sent to other processes.", live.sent
        yield "turnkeeper_live_heard_total", "counter", "Messages with deltas heard from other processes.", live.heard
        yield "turnkeeper_live_dropped_total", "counter", "Deltas not sent because too many waited.", live.dropped


_Metric: TypeAlias = tuple[str, str, str, int]


def _stored(pending: int, cluster: "ClusterReport") -> Iterator[_Metric]:
    """The metrics of the store, which all processes on it share."""
    queue = cluster.queue
    yield "turnkeeper_asks_pending", "gauge", "Permission requests and questions without a reply.", pending
    over = sum(host.is_over for host in cluster.hosts)
    yield "turnkeeper_hosts", "gauge", "Processes that share the store, without those below.", len(cluster.hosts) - over
    yield "turnkeeper_hosts_ended", "gauge", "Processes that died or fell silent in the last day.", over
    yield "turnkeeper_leases", "gauge", "Sessions that some process runs.", len(cluster.leases)
    yield "turnkeeper_wakes_waiting", "gauge", "Sessions that wait for a worker.", queue.sessions
    yield (
        "turnkeeper_wakes_without_host",
        "gauge",
        "Of the oldest 20 of them, those that no host can run.",
        sum(bool(one.reason) for one in queue.waiting),
    )
    yield "turnkeeper_wake_lag_ms", "gauge", "Milliseconds that the oldest of them has waited.", queue.oldest_ms


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
