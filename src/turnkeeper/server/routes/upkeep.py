"""The server itself: its API document, its metrics and its log."""

import logging
from collections.abc import Mapping
from typing import Final, Literal

from turnkeeper.model.value import JsonObject, Value, encode
from turnkeeper.server import openapi, routes
from turnkeeper.server.metrics import Metrics
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.response import JSON, HttpResponse
from turnkeeper.server.route import route
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
    """The OpenAPI document of all routes, encoded once."""
    return encode(openapi.document(routes.load()))


async def doc(call: PlainRequest) -> HttpResponse:
    """This API as an OpenAPI document."""
    return HttpResponse(200, call.service.part(_document), (JSON,))


async def metrics(call: PlainRequest) -> HttpResponse:
    """Metrics of the server in Prometheus text format."""
    text = await call.service.part(Metrics).text()
    return HttpResponse(200, text.encode(), ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),))


async def write_log(call: HttpRequest[None, LogBody]) -> bool:
    """Write a line to the server's log. It is logged as JSON, so that a line break cannot forge a log line."""
    log.log(LEVELS[call.body.level], "%s", encode(call.body).decode()[:LINE_CHARS_MAX])
    return True


ROUTES = (
    route("POST", "/log", "app.log", write_log),
    route("GET", "/doc", "turnkeeper.doc", doc, answer=JsonObject),
    route("GET", "/metrics", "turnkeeper.metrics", metrics, answer=str, media="text/plain"),
)
