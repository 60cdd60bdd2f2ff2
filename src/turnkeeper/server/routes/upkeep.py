"""About the server itself: its metrics."""

from turnkeeper.server.answer import Answer
from turnkeeper.server.call import Plain
from turnkeeper.server.metrics import Metrics
from turnkeeper.server.route import Route


async def metrics(call: Plain) -> Answer:
    """What the server has done so far."""
    text = call.service.part(Metrics).text()
    return Answer(200, text.encode(), ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),))


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        operation="turnkeeper.metrics",
        tier=0,
        summary="What the server has done so far, as Prometheus reads it.",
        handler=metrics,
        answer=str,
        media="text/plain",
    ),
)
