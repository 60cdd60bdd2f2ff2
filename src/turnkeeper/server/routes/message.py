"""Messages and their parts: read, change, remove."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated
from urllib.parse import urlencode

import msgspec

from turnkeeper.model.message import SystemMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part
from turnkeeper.model.refusal import Busy, NotFound
from turnkeeper.model.value import Value, encode
from turnkeeper.server import response
from turnkeeper.server.errors import Malformed, Missing
from turnkeeper.server.page_cache import CachedPage, PageCache
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.response import HttpResponse
from turnkeeper.server.route import route
from turnkeeper.store.document_reader import log_damaged
from turnkeeper.store.documents import State
from turnkeeper.store.message_reader import end_cursor
from turnkeeper.store.queries import Queries


class PageQuery(Value):
    """How many of the newest messages, and before which cursor. Without a limit: all messages."""

    limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] | None = None
    before: str | None = None


async def messages(call: HttpRequest[PageQuery, None]) -> HttpResponse:
    """Messages with their parts, oldest first: all, or a page of the newest; headers lead to older ones."""
    wanted, session_id = call.query, call.session_id
    if wanted.before is not None and not wanted.limit:
        raise Malformed("before needs a limit; add one", "Query")
    queries, cache = call.turnkeeper.store.queries, call.service.part(PageCache)
    asked, state = (session_id, wanted.limit or None, wanted.before), await queries.state(session_id)
    page = cache.get(asked, state.head)
    if page is None:
        page = await _page(queries, state, *asked)
        cache.put(asked, state.head, page)
    return HttpResponse(200, page.body, (response.JSON, *(_next(call, page.older) if page.older is not None else ())))


async def _page(queries: Queries, state: State, session_id: str, limit: int | None, before: str | None) -> CachedPage:
    # Official clients show a prompt as soon as it is admitted, also while a turn is running.
    shown = await queries.waiting(session_id) if before is None else []
    if limit is None:
        damaged: list[str] = []
        history = [one async for some in queries.walk(session_id, damaged=damaged) for one in some]
        log_damaged(damaged)
        return CachedPage(encode(_shown([*history, *shown])), None)
    shown = shown[-limit:]
    older = before if before is not None else end_cursor(state)
    while older is not None and len(shown) < limit:
        found = await queries.messages(session_id, limit=limit - len(shown), before=older)
        log_damaged(found.damaged)
        # System messages are not sent to clients; read on until the page has the requested length.
        shown[:0] = [one for one in found.items if not isinstance(one.info, SystemMessage)]
        older = found.older
    return CachedPage(encode(_shown(shown)), older)


def _shown(found: Iterable[MessageWithParts]) -> list[MessageWithParts]:
    return [public(one) for one in found if not isinstance(one.info, SystemMessage)]


def _next(call: HttpRequest[PageQuery, None], cursor: str) -> response.Pairs:
    """The headers that lead to older messages: clients read either ``Link`` or ``X-Next-Cursor``."""
    place = f"{call.scope.get('scheme', 'http')}://{call.headers.get('host', 'localhost')}{call.scope['path']}"
    return _links(place, tuple(call.raw_query.items()), cursor)


@lru_cache(maxsize=64)
def _links(place: str, query: tuple[tuple[str, str], ...], cursor: str) -> response.Pairs:
    address = f"{place}?{urlencode({**dict(query), 'before': cursor})}"
    return (
        (b"x-next-cursor", cursor.encode()),
        (b"link", f'<{address}>; rel="next"'.encode("latin-1", "replace")),
        (b"access-control-expose-headers", b"Link, X-Next-Cursor"),
    )


async def message(call: PlainRequest) -> MessageWithParts:
    """A message with its parts."""
    queries = call.turnkeeper.store.queries
    await queries.state(call.session_id)
    try:
        return public(await queries.message(call.session_id, call.params["messageID"]))
    except NotFound as error:
        for one in await queries.waiting(call.session_id):
            if one.info.id == call.params["messageID"]:
                return public(one)
        raise Missing("Message", call.params["messageID"]) from error


async def remove(call: PlainRequest) -> bool:
    """Remove a message and its parts from the history; true also if there is no such message."""
    await call.turnkeeper.status(call.session_id)
    try:
        await call.turnkeeper.remove_message(call.session_id, call.params["messageID"])
    except NotFound:
        return True
    return True


async def remove_part(call: PlainRequest) -> bool:
    """Remove a part from its message."""
    await call.turnkeeper.remove_part(call.session_id, call.params["messageID"], call.params["partID"])
    return True


async def update_part(call: HttpRequest[None, Part]) -> Part:
    """Replace a part."""
    given = call.body
    named = (call.session_id, call.params["messageID"], call.params["partID"])
    if (given.session_id, given.message_id, given.id) != named:
        raise Malformed("the part's ids are not those of the path", "Payload")
    return public(await call.turnkeeper.update_part(given))


ROUTES = (
    route(
        "GET",
        "/session/{sessionID}/message",
        "session.messages",
        messages,
        NotFound,
        answer=list[MessageWithParts],
    ),
    route("GET", "/session/{sessionID}/message/{messageID}", "session.message", message, NotFound),
    route("DELETE", "/session/{sessionID}/message/{messageID}", "session.deleteMessage", remove, Busy, NotFound),
    route("DELETE", "/session/{sessionID}/message/{messageID}/part/{partID}", "part.delete", remove_part, NotFound),
    route("PATCH", "/session/{sessionID}/message/{messageID}/part/{partID}", "part.update", update_part, NotFound),
)
