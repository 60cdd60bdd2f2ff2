"""Messages and their parts: read, change, remove."""

from functools import lru_cache
from typing import Annotated
from urllib.parse import urlencode

import msgspec

from turnkeeper.model.parts import Part
from turnkeeper.model.refusal import Busy, Invalid, NotFound
from turnkeeper.model.value import Value, encode
from turnkeeper.server import answer, handed, wire
from turnkeeper.server.answer import Answer
from turnkeeper.server.call import Call, Plain
from turnkeeper.server.errors import Malformed, Missing
from turnkeeper.server.kept import Kept, Page
from turnkeeper.server.route import Route
from turnkeeper.store.queries import MessageWithParts, Queries


class PageQuery(Value):
    """How many of the newest messages, and before which place. Without a limit: all of them."""

    limit: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] | None = None
    before: str | None = None


async def messages(call: Call[PageQuery, None]) -> Answer:
    """Messages with their parts, oldest first; where older ones are is said in the headers."""
    wanted, session_id = call.query, call.session_id
    if wanted.before is not None and not wanted.limit:
        raise Malformed("before needs a limit; add one", "Query")
    queries, kept = call.turnkeeper.store.queries, call.service.part(Kept)
    asked, state = (session_id, wanted.limit or None, wanted.before), await queries.written_state(session_id)
    page = kept.page(asked, state)
    if page is None:
        page = await _page(queries, *asked)
        kept.keep(asked, state, page)
    return Answer(200, page.body, (answer.JSON, *(_next(call, page.older) if page.older is not None else ())))


async def _page(queries: Queries, session_id: str, limit: int | None, before: str | None) -> Page:
    # Official clients know a prompt from the moment it is safe, also one that waits behind a running turn.
    waiting: list[object] = []
    if before is None:
        waiting = [wire.with_parts(one) for one in await queries.waiting(session_id)]
    if limit is None:
        whole = [one async for some in queries.written_whole(session_id) for one in handed.messages(some)]
        return Page(encode([*whole, *waiting]), None)
    shown = waiting[-limit:]
    while True:
        found = await queries.written(session_id, limit=limit - len(shown), before=before)
        # Some messages are not shown to clients. As many more are read, so that a page is as long as was asked for.
        shown[:0] = handed.messages(found.items)
        before = found.older
        if before is None or len(shown) >= limit:
            return Page(encode(shown), before)


def _next(call: Call[PageQuery, None], cursor: str) -> answer.Pairs:
    """Where the older ones are, in the two ways clients look for it."""
    place = f"{call.scope.get('scheme', 'http')}://{call.headers.get('host', 'localhost')}{call.scope['path']}"
    return _links(place, tuple(call.words.items()), cursor)


@lru_cache(maxsize=64)
def _links(place: str, words: tuple[tuple[str, str], ...], cursor: str) -> answer.Pairs:
    address = f"{place}?{urlencode({**dict(words), 'before': cursor})}"
    return (
        (b"x-next-cursor", cursor.encode()),
        (b"link", f'<{address}>; rel="next"'.encode("latin-1", "replace")),
        (b"access-control-expose-headers", b"Link, X-Next-Cursor"),
    )


async def message(call: Plain) -> object:
    """One message with its parts."""
    queries = call.turnkeeper.store.queries
    await queries.state(call.session_id)
    try:
        return handed.message(await queries.written_message(call.session_id, call.params["messageID"]))
    except NotFound as error:
        for one in await queries.waiting(call.session_id):
            if one.info.id == call.params["messageID"]:
                return wire.with_parts(one)
        raise Missing("Message", call.params["messageID"]) from error


async def remove(call: Plain) -> bool:
    """Take a message out of the history; one that is not there is gone already."""
    await call.turnkeeper.status(call.session_id)
    try:
        await call.turnkeeper.remove_message(call.session_id, call.params["messageID"])
    except NotFound:
        return True
    return True


async def remove_part(call: Plain) -> bool:
    """Take a part out of its message."""
    await call.turnkeeper.remove_part(call.session_id, call.params["messageID"], call.params["partID"])
    return True


async def update_part(call: Call[None, Part]) -> Part:
    """Record a part anew, whole."""
    given = call.body
    named = (call.session_id, call.params["messageID"], call.params["partID"])
    if (given.session_id, given.message_id, given.id) != named:
        raise Malformed("the part's ids are not those of the path", "Payload")
    return wire.part(await call.turnkeeper.update_part(given))


ROUTES = (
    Route(
        method="GET",
        path="/session/{sessionID}/message",
        operation="session.messages",
        tier=1,
        summary="Messages with their parts, oldest first: all, or a page of the newest.",
        handler=messages,
        query=PageQuery,
        answer=list[MessageWithParts],
        errors=(Invalid, NotFound),
    ),
    Route(
        method="GET",
        path="/session/{sessionID}/message/{messageID}",
        operation="session.message",
        tier=1,
        summary="One message with its parts.",
        handler=message,
        answer=MessageWithParts,
        errors=(NotFound,),
    ),
    Route(
        method="DELETE",
        path="/session/{sessionID}/message/{messageID}",
        operation="session.deleteMessage",
        tier=2,
        summary="Take a message and its parts out of the history.",
        handler=remove,
        answer=bool,
        errors=(Busy, NotFound),
    ),
    Route(
        method="DELETE",
        path="/session/{sessionID}/message/{messageID}/part/{partID}",
        operation="part.delete",
        tier=2,
        summary="Take a part out of its message.",
        handler=remove_part,
        answer=bool,
        errors=(NotFound,),
    ),
    Route(
        method="PATCH",
        path="/session/{sessionID}/message/{messageID}/part/{partID}",
        operation="part.update",
        tier=2,
        summary="Record a part anew, whole.",
        handler=update_part,
        body=Part,  # type: ignore[arg-type] # A union is no class, but it can be decoded as well.
        answer=Part,
        errors=(Invalid, NotFound),
    ),
)
