"""The ASGI application: finds the route of a request, decodes the request, and encodes what the handler returns."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from time import perf_counter
from typing import Final
from urllib.parse import parse_qsl

import anyio
import msgspec

from turnkeeper.core.limits import BODY_ITEMS_MAX, JSON_DEPTH_MAX
from turnkeeper.core.storable import has_too_many, is_too_deep
from turnkeeper.model.refusal import Invalid, Refusal
from turnkeeper.server import errors
from turnkeeper.server.asgi import Application, AsgiMessage, Receive, Scope, Send
from turnkeeper.server.errors import Incomplete, Malformed, TooLarge, TooSlow
from turnkeeper.server.gate import AccessGate
from turnkeeper.server.metrics import Metrics
from turnkeeper.server.names import fault, masked
from turnkeeper.server.request import HttpRequest
from turnkeeper.server.response import HttpResponse, Pairs, json
from turnkeeper.server.route import Route
from turnkeeper.server.routes import health
from turnkeeper.server.service import Service
from turnkeeper.server.table import REST, Table
from turnkeeper.store.engine import InvalidKey

access = logging.getLogger("turnkeeper.access")

UNKNOWN: Final = "unknown"
"""The operation that is logged for a path without a route, and for a request that the access gate refused."""

LONE_SURROGATE: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!u[dD][89abAB]..)\\u[dD][c-fC-F])", re.DOTALL
)
"""A lone surrogate escape in JSON. The decoder reports it as truncated input, which would mislead the caller."""

LONE_SURROGATE_MESSAGE: Final = "the body holds half a character, a lone surrogate such as \\ud800; send whole ones"


class App:
    """Serves a table of routes. All routes but the health check are loaded with the first request that needs one.

    The ASGI lifespan is not handled: the caller opens the store before it serves and closes the store afterwards.
    """

    def __init__(self, service: Service, routes: Callable[[], Iterable[Route]]) -> None:
        self._service, self._routes, self._gate = service, routes, AccessGate(service.options)
        self._table, self._is_loaded = Table(health.ROUTES), False
        self._metrics = service.part(Metrics)
        self._decoders: dict[str, msgspec.json.Decoder[object]] = {}

    def load(self) -> None:
        """Load the whole table of routes, once."""
        if not self._is_loaded:
            self._table, self._is_loaded = Table(self._routes()), True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        if scope["type"] != "http":
            return
        began = perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        common = self._gate.headers(headers.get("origin"))
        response: HttpResponse | Application | None = self._gate.stopped(scope, headers)
        if response is None:
            response = await self._gate.stopped_peer(scope)
        operation = UNKNOWN
        if response is None:
            operation, response = await self._answer(scope, receive, headers)
        if isinstance(response, HttpResponse):
            self._note(scope, operation, response.status, began)
            await response.send(send, common)
        else:
            self._note(scope, operation, 200, began)
            await response(scope, receive, _with_headers(common, send))

    async def _answer(
        self, scope: Scope, receive: Receive, headers: Mapping[str, str]
    ) -> tuple[str, HttpResponse | Application]:
        method, path = scope["method"], scope["path"]
        is_second = path.startswith("/api/")
        found = self._table.find(method, path)
        if found is None and not self._is_loaded:
            self.load()
            found = self._table.find(method, path)
        if found is None:
            return UNKNOWN, errors.unknown(method, path, is_second=is_second)
        route, params = found
        try:
            result = await route.handler(await self._request(route, params, scope, headers, receive))
            return route.operation, result if callable(result) else _response(route, result)
        except Refusal as error:
            return route.operation, errors.refused(error, params, is_second=is_second)
        except InvalidKey as error:  # An empty id, or an id that no key can hold.
            return route.operation, errors.refused(Invalid(str(error)), params, is_second=is_second)
        except Exception as error:  # The top of a request: a bug ends it and nothing else.
            return route.operation, errors.failed(error, is_second=is_second)

    async def _request(
        self, route: Route, params: Mapping[str, str], scope: Scope, headers: Mapping[str, str], receive: Receive
    ) -> HttpRequest[object, object]:
        for name, value in params.items():
            if name != REST and (wrong := fault(name, value, route.operation)) is not None:
                raise Malformed(wrong, "Params")
        raw_query = _parse_query(scope["query_string"])
        return HttpRequest(
            service=self._service,
            scope=scope,
            headers=headers,
            raw_query=raw_query,
            params=params,
            query=_query(route, raw_query),
            body=await self._body(route, headers, receive),
        )

    async def _body(self, route: Route, headers: Mapping[str, str], receive: Receive) -> object:
        if route.body is type(None):
            return None
        raw = await self._read(receive, headers.get("content-length", ""))
        decoder = self._decoders.get(route.operation)
        if decoder is None:
            decoder = self._decoders[route.operation] = msgspec.json.Decoder(route.body)
        if is_too_deep(raw):
            raise Malformed(f"the body is nested more than {JSON_DEPTH_MAX} deep; flatten it", "Payload")
        if has_too_many(raw, BODY_ITEMS_MAX):
            raise Malformed(f"the body holds more than {BODY_ITEMS_MAX} items; send less at once", "Payload")
        try:
            return decoder.decode(raw or b"{}")
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise Malformed(LONE_SURROGATE_MESSAGE if LONE_SURROGATE.search(raw) else str(error), "Payload") from error

    async def _read(self, receive: Receive, announced: str) -> bytes:
        options = self._service.options
        too_large = TooLarge(f"a body may have {options.body_bytes_max} bytes; send less")
        if announced.isdecimal() and int(announced) > options.body_bytes_max:
            raise too_large
        body = bytearray()
        with anyio.move_on_after(options.body_timeout_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Incomplete("the client disconnected before it had sent the whole body")
                body += message.get("body", b"")
                if len(body) > options.body_bytes_max:
                    raise too_large
                if not message.get("more_body", False):
                    return bytes(body)
        raise TooSlow(f"the body did not come within {options.body_timeout_s:g} s; send it again")

    def _note(self, scope: Scope, operation: str, status: int, began: float) -> None:
        seconds = perf_counter() - began
        self._metrics.count(operation, status, seconds)
        if access.isEnabledFor(logging.INFO):
            path = masked(scope["path"])
            fields = {
                "method": scope["method"],
                "path": path,
                "operation": operation,
                "status": status,
                "ms": round(seconds * 1000, 1),
            }
            access.info("%s %s %s", scope["method"], path, status, extra=fields)


@lru_cache(maxsize=256)
def _parse_query(query: bytes) -> Mapping[str, str]:
    """The query as a mapping. Cached, because a client sends one query, its directory, with every request."""
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))


def _with_headers(common: Pairs, send: Send) -> Send:
    """A ``send`` that adds these headers to the start of a streamed response."""

    async def sending(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *common]}
        await send(message)

    return sending


def _query(route: Route, raw_query: Mapping[str, str]) -> object:
    if route.query is type(None):
        return None
    try:
        return msgspec.convert(raw_query, route.query, strict=False)
    except msgspec.MsgspecError as error:
        raise Malformed(str(error), "Query") from error


def _response(route: Route, result: object) -> HttpResponse:
    if isinstance(result, HttpResponse):
        return result
    return HttpResponse(204) if route.status == 204 else json(result, route.status)
