"""Permission requests and questions, second generation: list them and reply."""

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.run.permission import PermissionRequest, Reply
from turnkeeper.server.errors import Missing
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import Route
from turnkeeper.server.routes.api_catalogue import Located
from turnkeeper.server.routes.permission import ReplyBody
from turnkeeper.server.routes.question import Answers
from turnkeeper.server.v2 import catalogue


class AskingCall(Value, tag_field="type", tag="tool"):
    """The tool call that needs the permission."""

    message_id: str
    call_id: str


class Asked(Value):
    """A permission request as the second generation sends it."""

    id: str
    session_id: str
    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] | None = None
    metadata: JsonObject | None = None
    source: AskingCall | None = None


class AskedList(Value, omit_defaults=False):
    """Pending permission requests."""

    data: tuple[Asked, ...]


class AskedOne(Value):
    """One permission request."""

    data: Asked


class Nothing(Value, omit_defaults=False):
    """An empty list."""

    data: tuple[JsonObject, ...] = ()


def asked(request: PermissionRequest) -> Asked:
    """A permission request as the second generation sends it."""
    return Asked(
        id=request.id,
        session_id=request.session_id,
        action=request.permission,
        resources=request.patterns,
        save=request.always or None,
        metadata=request.metadata or None,
        source=AskingCall(message_id=request.message_id, call_id=request.call_id),
    )


async def pending(call: PlainRequest) -> Located[tuple[Asked, ...]]:
    """Pending permission requests of a directory."""
    place = await call.place()
    found = call.service.asks.pending(directory=str(place.directory))
    return Located(location=catalogue.location(place), data=tuple(map(asked, found)))


async def pending_of(call: PlainRequest) -> AskedList:
    """Pending permission requests of a session."""
    return AskedList(data=tuple(map(asked, await _waiting(call))))


async def get(call: PlainRequest) -> AskedOne:
    """A pending permission request."""
    name = call.params["requestID"]
    found = next((one for one in await _waiting(call) if one.id == name), None)
    if found is None:
        raise Missing("Permission", name)
    return AskedOne(data=asked(found))


async def reply(call: HttpRequest[None, ReplyBody]) -> None:
    """Reply to a permission request."""
    await call.turnkeeper.get(call.session_id)
    given = Reply(answer=call.body.reply, feedback=call.body.message)
    call.service.asks.reply(call.params["requestID"], given, session_id=call.session_id)


async def saved(call: PlainRequest) -> Nothing:
    """Permissions that are stored beyond a session: an empty list, because none are."""
    return Nothing()


async def questions(call: PlainRequest) -> Located[tuple[JsonObject, ...]]:
    """Pending questions of a directory: an empty list, because no tool asks questions."""
    return Located(location=catalogue.location(await call.place()), data=())


async def questions_of(call: PlainRequest) -> Nothing:
    """Pending questions of a session: an empty list, because no tool asks questions."""
    await call.turnkeeper.get(call.session_id)
    return Nothing()


async def answer(call: HttpRequest[None, Answers]) -> None:
    """Answer a question. Always refused, because no tool asks questions."""
    await call.turnkeeper.get(call.session_id)
    raise Missing("Question", call.params["requestID"])


async def dismiss(call: PlainRequest) -> None:
    """Dismiss a question. Always refused, because no tool asks questions."""
    await call.turnkeeper.get(call.session_id)
    raise Missing("Question", call.params["requestID"])


async def _waiting(call: PlainRequest) -> list[PermissionRequest]:
    await call.turnkeeper.get(call.session_id)
    return call.service.asks.pending(session_id=call.session_id)


_OF = "/api/session/{sessionID}"

ROUTES = (
    Route(
        method="GET",
        path="/api/permission/request",
        operation="v2.permission.request.list",
        handler=pending,
        answer=Located[tuple[Asked, ...]],
    ),
    Route(
        method="GET",
        path="/api/permission/saved",
        operation="v2.permission.saved.list",
        handler=saved,
        answer=Nothing,
    ),
    Route(
        method="GET",
        path=f"{_OF}/permission",
        operation="v2.session.permission.list",
        handler=pending_of,
        answer=AskedList,
        errors=(NotFound,),
    ),
    Route(
        method="GET",
        path=f"{_OF}/permission/{{requestID}}",
        operation="v2.session.permission.get",
        handler=get,
        answer=AskedOne,
        errors=(NotFound,),
    ),
    Route(
        method="POST",
        path=f"{_OF}/permission/{{requestID}}/reply",
        operation="v2.session.permission.reply",
        handler=reply,
        body=ReplyBody,
        status=204,
        errors=(NotFound,),
    ),
    Route(
        method="GET",
        path="/api/question/request",
        operation="v2.question.request.list",
        handler=questions,
        answer=Located[tuple[JsonObject, ...]],
    ),
    Route(
        method="GET",
        path=f"{_OF}/question",
        operation="v2.session.question.list",
        handler=questions_of,
        answer=Nothing,
        errors=(NotFound,),
    ),
    Route(
        method="POST",
        path=f"{_OF}/question/{{requestID}}/reply",
        operation="v2.session.question.reply",
        handler=answer,
        body=Answers,
        status=204,
        errors=(NotFound,),
    ),
    Route(
        method="POST",
        path=f"{_OF}/question/{{requestID}}/reject",
        operation="v2.session.question.reject",
        handler=dismiss,
        status=204,
        errors=(NotFound,),
    ),
)
