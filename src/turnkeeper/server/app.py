"""The ASGI application: a request in, decoded by its route; what the handler returns out."""

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
from turnkeeper.model.value import encode
from turnkeeper.server import errors
from turnkeeper.server.answer import JSON, NOTHING, HttpResponse, Pairs
from turnkeeper.server.asgi import Application, AsgiMessage, Receive, Scope, Send
from turnkeeper.server.call import HttpRequest
from turnkeeper.server.errors import Incomplete, Malformed, TooLarge, TooSlow
from turnkeeper.server.gate import AccessGate
from turnkeeper.server.metrics import Metrics
from turnkeeper.server.names import fault
from turnkeeper.server.route import AnyRoute
from turnkeeper.server.routes import health
from turnkeeper.server.service import Service
from turnkeeper.server.table import REST, Table
from turnkeeper.store.engine import InvalidKey

access = logging.getLogger("turnkeeper.access")

UNKNOWN: Final = "unknown"
"""The operation of what is not served, and of what was stopped at the gate."""

LONE: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!u[dD][89abAB]..)\\u[dD][c-fC-F])", re.DOTALL
)
"""Half a character in JSON: an escaped surrogate without the other one. The decoder calls it truncated input."""

HALF: Final = "the body holds half a character, a lone surrogate such as \\ud800; send whole ones"


class App:
    """Serves a table of routes, which is loaded when a request comes that asks for more than the server's health.

    It holds no lifespan: who starts it opens the store before and closes it after.
    """

    def __init__(self, service: Service, routes: Callable[[], Iterable[AnyRoute]]) -> None:
        self._service, self._routes, self._gate = service, routes, AccessGate(service.options)
        self._table, self._is_loaded = Table(health.ROUTES), False
        self._metrics = service.part(Metrics)
        self._decoders: dict[str, msgspec.json.Decoder[object]] = {}

    def load(self) -> None:
        """Load the whole table, if it is not."""
        if not self._is_loaded:
            self._table, self._is_loaded = Table(self._routes()), True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of ASGI's."""
        if scope["type"] != "http":
            return
        began = perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        common = self._gate.headers(headers.get("origin"))
        answer: HttpResponse | Application | None = self._gate.stopped(scope, headers)
        operation = UNKNOWN
        if answer is None:
            operation, answer = await self._answer(scope, receive, headers)
        if isinstance(answer, HttpResponse):
            self._note(scope, operation, answer.status, began)
            await answer.send(send, common)
        else:
            self._note(scope, operation, 200, began)
            await answer(scope, receive, _adding(common, send))

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
            said = await route.handler(await self._call(route, params, scope, headers, receive))
            return route.operation, said if callable(said) else _whole(route, said)
        except Refusal as error:
            return route.operation, errors.refused(error, params, is_second=is_second)
        except InvalidKey as error:  # An empty id, or one that no key can hold.
            return route.operation, errors.refused(Invalid(str(error)), params, is_second=is_second)
        except Exception as error:  # The top of a request: a bug ends it and nothing else.
            return route.operation, errors.failed(error, is_second=is_second)

    async def _call(
        self, route: AnyRoute, params: Mapping[str, str], scope: Scope, headers: Mapping[str, str], receive: Receive
    ) -> HttpRequest[object, object]:
        _check(params, route)
        words = _words(scope["query_string"])
        return HttpRequest(
            service=self._service,
            scope=scope,
            headers=headers,
            words=words,
            params=params,
            query=_query(route, words),
            body=await self._body(route, headers, receive),
        )

    async def _body(self, route: AnyRoute, headers: Mapping[str, str], receive: Receive) -> object:
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
            raise Malformed(HALF if LONE.search(raw) else str(error), "Payload") from error

    async def _read(self, receive: Receive, announced: str) -> bytes:
        options = self._service.options
        body = _Body(options.body_bytes_max)
        body.check(int(announced) if announced.isdecimal() else 0)
        with anyio.move_on_after(options.body_timeout_s):
            while not body.take(await receive()):
                pass
            return body.whole
        raise TooSlow(f"the body did not come within {options.body_timeout_s:g} s; send it again")

    def _note(self, scope: Scope, operation: str, status: int, began: float) -> None:
        seconds = perf_counter() - began
        self._metrics.count(operation, status, seconds)
        if access.isEnabledFor(logging.INFO):
            said = {
                "method": scope["method"],
                "path": scope["path"],
                "operation": operation,
                "status": status,
                "ms": round(seconds * 1000, 1),
            }
            access.info("%s %s %s", scope["method"], scope["path"], status, extra=said)


class _Body:
    """A body, as far as it was received."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._size = bytes_max, 0
        self._pieces: list[bytes] = []

    def take(self, message: AsgiMessage) -> bool:
        """Add one more piece; whether it was the last."""
        if message["type"] == "http.disconnect":
            raise Incomplete("the client disconnected before it had sent the whole body")
        piece: bytes = message.get("body", b"")
        self._size += len(piece)
        self.check(self._size)
        self._pieces.append(piece)
        return not message.get("more_body", False)

    def check(self, size: int) -> None:
        """Raise TooLarge for a body of so many bytes, whether they came or are announced."""
        if size > self._bytes_max:
            raise TooLarge(f"a body may have {self._bytes_max} bytes; send less")

    @property
    def whole(self) -> bytes:
        """All that came."""
        return b"".join(self._pieces)


@lru_cache(maxsize=256)
def _words(query: bytes) -> Mapping[str, str]:
    """What is asked for behind the path. Clients say the same with every request: where they work."""
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))


def _check(params: Mapping[str, str], route: AnyRoute) -> None:
    for name, value in params.items():
        if name != REST and (wrong := fault(name, value, route.operation)) is not None:
            raise Malformed(wrong, "Params")


def _adding(common: Pairs, send: Send) -> Send:
    """Sends a stream whose beginning has the headers of every answer."""

    async def sending(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *common]}
        await send(message)

    return sending


def _query(route: AnyRoute, words: Mapping[str, str]) -> object:
    if route.query is type(None):
        return None
    try:
        return msgspec.convert(words, route.query, strict=False)
    except msgspec.MsgspecError as error:
        raise Malformed(str(error), "Query") from error


def _whole(route: AnyRoute, said: object) -> HttpResponse:
    if isinstance(said, HttpResponse):
        return said
    return NOTHING if route.status == 204 else HttpResponse(route.status, encode(said), (JSON,))
