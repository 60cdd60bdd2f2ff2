"""Metrics: what a server has done so far, in the text that Prometheus reads."""

from collections import Counter
from collections.abc import Iterator

from turnkeeper.server.service import Service


class Metrics:
    """Counts requests, and looks up the rest when asked."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()

    def count(self, operation: str, status: int, seconds: float) -> None:
        """One request was answered."""
        self._requests[operation, status] += 1
        self._seconds[operation] += seconds  # type: ignore[assignment] # A counter of seconds has fractions.

    async def text(self) -> str:
        """All of it."""
        tk = self._service.turnkeeper
        pending = len(await tk.permissions()) + len(await tk.questions())
        return "\n".join(self._lines(pending)) + "\n"

    def _lines(self, pending: int) -> Iterator[str]:
        yield from _head("turnkeeper_requests_total", "counter", "Requests answered, by operation and status.")
        for (operation, status), count in sorted(self._requests.items()):
            yield f'turnkeeper_requests_total{{operation="{operation}",status="{status}"}} {count}'
        yield from _head("turnkeeper_request_seconds_total", "counter", "Time until answers were begun, by operation.")
        for operation, seconds in sorted(self._seconds.items()):
            yield f'turnkeeper_request_seconds_total{{operation="{operation}"}} {seconds:.6f}'
        for name, kind, about, value in self._now(pending):
            yield from _head(name, kind, about)
            yield f"{name} {value}"

    def _now(self, pending: int) -> Iterator[tuple[str, str, str, int]]:
        from turnkeeper.server.streams.hub import Hub  # A server can be well without having told anybody anything.

        turnkeeper, bus = self._service.turnkeeper, self._service.turnkeeper.bus
        yield "turnkeeper_sessions_running", "gauge", "Sessions that are being run here.", len(turnkeeper.running)
        yield (
            "turnkeeper_asks_pending",
            "gauge",
            "Questions that wait for an answer.",
            pending,
        )
        for hub in self._service.made(Hub):
            yield "turnkeeper_streams", "gauge", "Event streams that are open.", hub.subscribers
            yield "turnkeeper_frames_total", "counter", "Events told to streams, deltas joined.", hub.tally.frames
            yield "turnkeeper_flushes_total", "counter", "Times that waiting events were sent.", hub.tally.flushes
            yield "turnkeeper_streams_dropped_total", "counter", "Streams let go for being slow.", hub.tally.dropped
        yield "turnkeeper_subscribers", "gauge", "Who is subscribed to what happens.", bus.subscribers
        yield "turnkeeper_notifications_dropped_total", "counter", "Deltas that slow subscribers missed.", bus.dropped
        yield "turnkeeper_overflows_total", "counter", "Subscribers let go because they fell behind.", bus.overflows


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
