"""About the server itself: what it serves, what it has done, and its log."""

import logging
from collections.abc import Mapping
from typing import Final, Literal

from turnkeeper.model.value import JsonObject, Value, encode
from turnkeeper.server import openapi, routes
from turnkeeper.server.answer import JSON, HttpResponse
from turnkeeper.server.call import HttpRequest, PlainRequest
from turnkeeper.server.metrics import Metrics
from turnkeeper.server.route import Route
from turnkeeper.server.service import Service

log = logging.getLogger("turnkeeper.client")

LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

LINE_CHARS_MAX: Final = 4096


class LogBody(Value):
    """A line for the server's log."""

    service: str
    level: Literal["debug", "info", "warn", "error"]
    message: str
    extra: JsonObject | None = None


def _document(service: Service) -> bytes:
    """The document of all routes; worked out once."""
    return encode(openapi.document(routes.load()))


async def doc(call: PlainRequest) -> HttpResponse:
    """What is served."""
    return HttpResponse(200, call.service.part(_document), (JSON,))


async def metrics(call: PlainRequest) -> HttpResponse:
    """What the server has done so far."""
    text = await call.service.part(Metrics).text()
    return HttpResponse(200, text.encode(), ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),))


async def write_log(call: HttpRequest[None, LogBody]) -> bool:
    """Write a line of a client's to the server's log, as JSON, so that a line break in it begins no line."""
    log.log(LEVELS[call.body.level], "%s", encode(call.body).decode()[:LINE_CHARS_MAX])
    return True


ROUTES = (
    Route(
        method="POST",
        path="/log",
        operation="app.log",
        tier=2,
        summary="Write a line to the server's log.",
        handler=write_log,
        body=LogBody,
        answer=bool,
    ),
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
