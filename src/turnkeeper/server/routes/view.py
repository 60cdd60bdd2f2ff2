"""Routes for the web page about one session: its state, outline and messages, now or after any event."""

from typing import Annotated, TypeAlias

import msgspec

from turnkeeper.core.handles import handle, whole_output
from turnkeeper.core.view import Admitted, SessionView
from turnkeeper.model.event import Delivery
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.permission import PermissionRequest
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Conflict, NotFound, Refusal
from turnkeeper.model.session import Origin, Session
from turnkeeper.model.status import Owner, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value
from turnkeeper.server.moments import moment
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.sessions.outline import Outline, outline
from turnkeeper.sessions.shown import Shown, shown
from turnkeeper.store.message_reader import place_cursor
from turnkeeper.store.queries import Queries

Seq: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
NEWEST = 20
"""Messages searched for the newest turn with usage."""


class MomentQuery(Value):
    """``at``: the session as it was after this event; without it, as it is."""

    at: Seq | None = None


class OutlineQuery(Value):
    """``at`` as everywhere. ``after``: only messages after this seq."""

    at: Seq | None = None
    after: Seq | None = None


class MessagesQuery(Value):
    """A page of messages next to a seq: the newest ``limit`` before ``before``, or the oldest after ``after``."""

    at: Seq | None = None
    before: Seq | None = None
    after: Seq | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class WaitingPrompt(Value):
    """A prompt in the inbox."""

    seq: int
    delivery: Delivery
    message: MessageWithParts


class Window(Value):
    """How much of the model's context window the newest request and its answer took, in tokens."""

    used: int
    limit: int


class EventName(Value):
    """An event: its type in the log, and its time."""

    type: str
    time: int


class SessionState(Value):
    """A session after event ``seq``, with what waits for the user in it and in its Child Sessions."""

    seq: int
    session: Session
    origin: Origin | None = None
    status: Status
    owner: Owner | None = None
    runs_here: bool
    event: EventName | None = None
    inbox: tuple[WaitingPrompt, ...]
    permissions: tuple[PermissionRequest, ...]
    questions: tuple[QuestionRequest, ...]
    todos: tuple[Todo, ...]
    window: Window | None = None
    messages: int


class HeldText(Value):
    """What a tool call printed in whole, if requests show less of it: the handle that recalls it, and why."""

    handle: str
    chars: int
    state: str


class PlacedMessage(Value):
    """A message with its place in the log. ``held`` has whole outputs by the id of their part."""

    seq: int
    message: MessageWithParts
    held: dict[str, HeldText]


class PlacedMessages(Value):
    """A page of messages, oldest first."""

    seq: int
    items: tuple[PlacedMessage, ...]


async def state(call: HttpRequest[MomentQuery, None]) -> SessionState:
    """A session, what waits in it, and how full its context window is; now, or after an event."""
    view, queries = await moment(call, call.query.at)
    session = await queries.session(call.session_id)
    permissions, questions = await _asks(call) if call.query.at is None else _asked_then(view)
    last = await call.turnkeeper.store.journal.read(call.session_id, after=view.seq - 1, limit=1)
    return SessionState(
        seq=view.seq,
        session=public(session),
        origin=session.origin,
        status=view.status,
        owner=view.owner,
        runs_here=call.session_id in call.turnkeeper.running,
        event=EventName(type=last[0].event.KIND, time=last[0].time) if last else None,
        inbox=tuple([_waiting(await queries.whole(one)) for one in view.inbox]),
        permissions=permissions,
        questions=questions,
        todos=public(await queries.todos(call.session_id)),
        window=await _window(call, queries),
        messages=view.messages,
    )


def _waiting(prompt: Admitted) -> WaitingPrompt:
    message = MessageWithParts(info=prompt.message, parts=prompt.parts)
    return WaitingPrompt(seq=prompt.seq, delivery=prompt.delivery, message=public(message))


async def _asks(
    call: HttpRequest[MomentQuery, None],
) -> tuple[tuple[PermissionRequest, ...], tuple[QuestionRequest, ...]]:
    """The open requests to the user in a session and in all its Child Sessions."""
    below = await call.turnkeeper.children(call.session_id, recursive=True)
    family = {call.session_id, *(one.id for one in below)}
    permissions = [public(one) for one in await call.turnkeeper.permissions() if one.session_id in family]
    questions = [public(one) for one in await call.turnkeeper.questions() if one.session_id in family]
    return tuple(permissions), tuple(questions)


def _asked_then(view: SessionView) -> tuple[tuple[PermissionRequest, ...], tuple[QuestionRequest, ...]]:
    waiting = [one.request for one in view.asks if one.reply is None]
    permissions = tuple(public(one) for one in waiting if isinstance(one, PermissionRequest))
    return permissions, tuple(public(one) for one in waiting if isinstance(one, QuestionRequest))


async def _window(call: HttpRequest[MomentQuery, None], queries: Queries) -> Window | None:
    """The size of the newest request that reported its usage, and the limit of its model; None if either is unknown."""
    page = await queries.messages(call.session_id, limit=NEWEST)
    for one in reversed(page.items):
        if isinstance(one.info, AssistantMessage) and one.info.tokens.input + one.info.tokens.cache.read:
            tokens, named = one.info.tokens, (one.info.provider_id, one.info.model_id)
            used = tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
            try:
                _, catalog = call.directories.catalog(await call.place())
                limit = catalog.find(*named).limits.context
            except Refusal:  # A model that is not configured any more.
                return None
            return Window(used=used, limit=limit) if limit else None
    return None


async def rows(call: HttpRequest[OutlineQuery, None]) -> Outline:
    """One small row for each message of a session, or for each message after a seq."""
    _, queries = await moment(call, call.query.at)
    return await outline(queries, call.session_id, after=call.query.after or 0)


async def messages(call: HttpRequest[MessagesQuery, None]) -> PlacedMessages:
    """A page of messages with their places in the log; the newest ones, or those next to a seq."""
    wanted = call.query
    view, queries = await moment(call, wanted.at)
    page = await queries.messages(
        call.session_id,
        limit=wanted.limit,
        before=place_cursor(wanted.before) if wanted.before is not None else None,
        after=place_cursor(wanted.after) if wanted.after is not None else None,
    )
    return PlacedMessages(seq=view.seq, items=tuple(map(_placed, page.items)))


def _placed(found: MessageWithParts) -> PlacedMessage:
    return PlacedMessage(seq=found.info.seq, message=public(found), held=_held(found))


def _held(found: MessageWithParts) -> dict[str, HeldText]:
    held: dict[str, HeldText] = {}
    for part in found.parts:
        if isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
            done = part.state
            if done.full is not None or done.time.compacted is not None:
                text = whole_output(done)
                state = "pruned" if done.time.compacted is not None else "bounded"
                held[part.id] = HeldText(handle=handle(text), chars=len(text), state=state)
    return held


async def shown_now(call: HttpRequest[MomentQuery, None]) -> Shown:
    """Each text that a model is shown of a session, next to what the log holds; now, or after an event."""
    view, queries = await moment(call, call.query.at)
    return await shown(queries, view)


async def withdraw(call: PlainRequest) -> MessageWithParts:
    """Withdraw a prompt that waits in the inbox, and return it."""
    return public(await call.turnkeeper.withdraw(call.session_id, call.params["messageID"]))


ROUTES = (
    route("GET", "/tk/session/{sessionID}/state", "turnkeeper.session.state", state, NotFound),
    route("GET", "/tk/session/{sessionID}/outline", "turnkeeper.session.outline", rows, NotFound),
    route("GET", "/tk/session/{sessionID}/messages", "turnkeeper.session.messages", messages, NotFound),
    route("GET", "/tk/session/{sessionID}/shown", "turnkeeper.session.shown", shown_now, NotFound),
    route(
        "DELETE",
        "/tk/session/{sessionID}/inbox/{messageID}",
        "turnkeeper.session.withdraw",
        withdraw,
        Conflict,
        NotFound,
    ),
)
