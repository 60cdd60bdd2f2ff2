"""About the server itself: what it serves, and what it has done."""

from turnkeeper.model.value import JsonObject, encode
from turnkeeper.server import openapi, routes
from turnkeeper.server.answer import JSON, Answer
from turnkeeper.server.call import Plain
from turnkeeper.server.metrics import Metrics
from turnkeeper.server.route import Route
from turnkeeper.server.service import Service


def _document(service: Service) -> bytes:
    """The document of all routes; worked out once."""
    return encode(openapi.document(routes.load()))


async def doc(call: Plain) -> Answer:
    """What is served."""
    return Answer(200, call.service.part(_document), (JSON,))


async def metrics(call: Plain) -> Answer:
    """What the server has done so far."""
    text = call.service.part(Metrics).text()
    return Answer(200, text.encode(), ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),))


ROUTES = (
    Route(
        method="GET",
        path="/doc",
        operation="turnkeeper.doc",
        tier=0,
        summary="This API, as an OpenAPI document.",
        handler=doc,
        answer=JsonObject,
    ),
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
