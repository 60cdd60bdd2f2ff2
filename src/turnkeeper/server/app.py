"""The ASGI application: a request in, decoded by its route; what the handler returns out."""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl

import anyio
import msgspec

from turnkeeper.model.refusal import Refusal
from turnkeeper.model.value import encode
from turnkeeper.server import errors
from turnkeeper.server.answer import JSON, NOTHING, Answer
from turnkeeper.server.asgi import Message, Receive, Scope, Send
from turnkeeper.server.call import Call
from turnkeeper.server.errors import Malformed, TooLarge, TooSlow
from turnkeeper.server.route import AnyRoute
from turnkeeper.server.service import Service
from turnkeeper.server.table import Table


class App:
    """Serves a table of routes. It holds no lifespan: who starts it opens the store before and closes it after."""

    def __init__(self, service: Service, routes: Iterable[AnyRoute]) -> None:
        self._service, self._table = service, Table(routes)
        self._decoders: dict[str, msgspec.json.Decoder[object]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of ASGI's."""
        if scope["type"] != "http":
            return
        method, path = scope["method"], scope["path"]
        is_second = path.startswith("/api/")
        found = self._table.find(method, path)
        if found is None:
            await errors.unknown(method, path, is_second=is_second).send(send)
            return
        route, params = found
        try:
            said = await route.handler(await self._call(route, params, scope, receive))
            answer = said if callable(said) else _whole(route, said)
        except Refusal as error:
            answer = errors.refused(error, params, is_second=is_second)
        except Exception as error:  # The top of a request: a bug ends it and nothing else.
            answer = errors.defect(error, is_second=is_second)
        if isinstance(answer, Answer):
            await answer.send(send)
        else:
            await answer(scope, receive, send)

    async def _call(
        self, route: AnyRoute, params: Mapping[str, str], scope: Scope, receive: Receive
    ) -> Call[object, object]:
        words = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        return Call(
            service=self._service,
            scope=scope,
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
            words=words,
            params=params,
            query=_query(route, words),
            body=await self._body(route, receive),
        )

    async def _body(self, route: AnyRoute, receive: Receive) -> object:
        if route.body is type(None):
            return None
        raw = await self._read(receive)
        decoder = self._decoders.get(route.operation)
        if decoder is None:
            decoder = self._decoders[route.operation] = msgspec.json.Decoder(route.body)
        try:
            return decoder.decode(raw or b"{}")
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise Malformed(str(error), "Payload") from error

    async def _read(self, receive: Receive) -> bytes:
        options = self._service.options
        pieces: list[bytes] = []
        size, more = 0, True
        with anyio.move_on_after(options.body_timeout_s):
            while more:
                message: Message = await receive()
                piece: bytes = message.get("body", b"")
                size, more = size + len(piece), message.get("more_body", False)
                if size > options.body_bytes_max:
                    raise TooLarge(f"a body may have {options.body_bytes_max} bytes; send less")
                pieces.append(piece)
        if more:
            raise TooSlow(f"the body did not come within {options.body_timeout_s:g} s; send it again")
        return b"".join(pieces)


def _query(route: AnyRoute, words: Mapping[str, str]) -> object:
    if route.query is type(None):
        return None
    try:
        return msgspec.convert(words, route.query, strict=False)
    except msgspec.MsgspecError as error:
        raise Malformed(str(error), "Query") from error


def _whole(route: AnyRoute, said: object) -> Answer:
    if isinstance(said, Answer):
        return said
    return NOTHING if route.status == 204 else Answer(route.status, encode(said), (JSON,))
