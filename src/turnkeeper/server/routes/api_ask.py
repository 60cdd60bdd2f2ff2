"""Permission requests and questions, second generation: list them and reply."""

from turnkeeper.model.permission import PermissionRequest
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.errors import Missing
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.server.routes import permission, question
from turnkeeper.server.routes.api_catalogue import Located
from turnkeeper.server.routes.permission import ReplyBody
from turnkeeper.server.routes.question import Answers, Dismissal
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


class AskedQuestions(Value, omit_defaults=False):
    """Questions of models that wait."""

    data: tuple[QuestionRequest, ...]


class SavedPermission(Value):
    """What was allowed for good in a project."""

    id: str
    project_id: str
    action: str
    resource: str


class SavedPermissions(Value, omit_defaults=False):
    """A list of saved permissions."""

    data: tuple[SavedPermission, ...]


def asked(request: PermissionRequest) -> Asked:
    """A permission request as the second generation sends it."""
    return Asked(
        id=request.id,
        session_id=request.session_id,
        action=request.permission,
        resources=request.patterns,
        save=request.always or None,
        metadata=request.metadata or None,
        source=AskingCall(message_id=request.tool.message_id, call_id=request.tool.call_id),
    )


async def pending(call: PlainRequest) -> Located[tuple[Asked, ...]]:
    """Pending permission requests of a directory."""
    place = await call.place()
    found = await call.turnkeeper.permissions(directory=place.directory)
    return Located(location=catalogue.location(place), data=tuple(map(asked, found)))


async def pending_of(call: PlainRequest) -> AskedList:
    """Pending permission requests of a session."""
    found = await call.turnkeeper.permissions(session_id=call.session_id)
    return AskedList(data=tuple(map(asked, found)))


async def get(call: PlainRequest) -> AskedOne:
    """A pending permission request."""
    name = call.params["requestID"]
    waiting = await call.turnkeeper.permissions(session_id=call.session_id)
    found = next((one for one in waiting if one.id == name), None)
    if found is None:
        raise Missing("Permission", name)
    return AskedOne(data=asked(found))


async def reply(call: HttpRequest[None, ReplyBody]) -> None:
    """Reply to a permission request."""
    await call.turnkeeper.get(call.session_id)
    name, given = call.params["requestID"], call.body
    await permission.answer(
        call, name, given.reply, message=given.message, absence=given.absence, session_id=call.session_id
    )


async def saved(call: PlainRequest) -> SavedPermissions:
    """What was allowed for good, in every project."""
    found = await call.turnkeeper.approvals()
    return SavedPermissions(
        data=tuple(
            SavedPermission(id=one.id, project_id=one.project_id, action=one.permission, resource=one.pattern)
            for one in found
        )
    )


async def revoke(call: PlainRequest) -> None:
    """Take back what was allowed for good; nothing if it was not."""
    await call.turnkeeper.revoke(call.params["id"])


async def questions(call: PlainRequest) -> Located[tuple[QuestionRequest, ...]]:
    """Questions of models that wait in a directory."""
    place = await call.place()
    found = await call.turnkeeper.questions(directory=place.directory)
    return Located(location=catalogue.location(place), data=tuple(map(public, found)))


async def questions_of(call: PlainRequest) -> AskedQuestions:
    """Questions of models that wait in a session."""
    found = await call.turnkeeper.questions(session_id=call.session_id)
    return AskedQuestions(data=tuple(map(public, found)))


async def answer(call: HttpRequest[None, Answers]) -> None:
    """Answer a question of a model."""
    await call.turnkeeper.get(call.session_id)
    await question.answer(call, call.body.answers, session_id=call.session_id)


async def dismiss(call: HttpRequest[Dismissal, None]) -> None:
    """Dismiss a question of a model."""
    await call.turnkeeper.get(call.session_id)
    await question.answer(call, None, absence=call.query.absence, session_id=call.session_id)


_OF = "/api/session/{sessionID}"

ROUTES = (
    route("GET", "/api/permission/request", "v2.permission.request.list", pending),
    route("GET", "/api/permission/saved", "v2.permission.saved.list", saved),
    route("DELETE", "/api/permission/saved/{id}", "v2.permission.saved.remove", revoke),
    route("GET", f"{_OF}/permission", "v2.session.permission.list", pending_of, NotFound),
    route("GET", f"{_OF}/permission/{{requestID}}", "v2.session.permission.get", get, NotFound),
    route("POST", f"{_OF}/permission/{{requestID}}/reply", "v2.session.permission.reply", reply, NotFound, Conflict),
    route("GET", "/api/question/request", "v2.question.request.list", questions),
    route("GET", f"{_OF}/question", "v2.session.question.list", questions_of, NotFound),
    route("POST", f"{_OF}/question/{{requestID}}/reply", "v2.session.question.reply", answer, NotFound, Conflict),
    route("POST", f"{_OF}/question/{{requestID}}/reject", "v2.session.question.reject", dismiss, NotFound, Conflict),
)
