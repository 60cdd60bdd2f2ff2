"""Messages, context and history of a session, second generation."""

from typing import Annotated

import msgspec

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import JsonObject, Value, encode
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.response import JSON, HttpResponse
from turnkeeper.server.route import route
from turnkeeper.server.v2 import reading
from turnkeeper.server.v2.framed import durable
from turnkeeper.server.v2.message import ShownMessage
from turnkeeper.server.v2.reading import MessageCursor, MessagesPage, Order
from turnkeeper.server.v2.replay import page


class MessagesQuery(Value):
    """Which messages to return. A cursor also holds the order."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    order: Order | None = None
    cursor: str | None = None


class HistoryQuery(Value):
    """Which events to return: at most ``limit`` events with a higher number than ``after``."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50
    after: Annotated[int, msgspec.Meta(ge=0)] = 0


class OneMessage(Value):
    """One message."""

    data: ShownMessage


class Context(Value, omit_defaults=False):
    """The part of the history that the model is shown."""

    data: tuple[ShownMessage, ...]


async def context(call: PlainRequest) -> Context:
    """Messages since the newest summary, oldest first."""
    return Context(data=tuple(await reading.context(call.turnkeeper.store, call.session_id)))


async def messages(call: HttpRequest[MessagesQuery, None]) -> MessagesPage:
    """A page of messages, by default newest first."""
    given = call.query
    place = reading.decode_cursor(given.cursor, MessageCursor) if given.cursor else None
    return await reading.messages(
        call.turnkeeper.store, call.session_id, limit=given.limit, order=given.order or "desc", place=place
    )


async def message(call: PlainRequest) -> OneMessage:
    """A message."""
    return OneMessage(data=await reading.message(call.turnkeeper.store, call.session_id, call.params["messageID"]))


async def history(call: HttpRequest[HistoryQuery, None]) -> HttpResponse:
    """Durable events of a session after an event number."""
    events, has_more = await page(call.turnkeeper.store, call.session_id, call.query.after, call.query.limit)
    told = b",".join(durable(one, is_local=True) for one in events)
    return HttpResponse(200, b'{"data":[%b],"hasMore":%b}' % (told, encode(has_more)), (JSON,))


ROUTES = (
    route("GET", "/api/session/{sessionID}/context", "v2.session.context", context, NotFound),
    route("GET", "/api/session/{sessionID}/message", "v2.session.messages", messages, NotFound),
    route("GET", "/api/session/{sessionID}/message/{messageID}", "v2.session.message", message, NotFound),
    route("GET", "/api/session/{sessionID}/history", "v2.session.history", history, NotFound, answer=JsonObject),
)
