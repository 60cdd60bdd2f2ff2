"""Permission requests: list them and reply."""

from turnkeeper.model.permission import Absence, PermissionAnswer, PermissionRequest
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.errors import Missing
from turnkeeper.server.public import public
from turnkeeper.server.request import AnyRequest, HttpRequest, PlainRequest
from turnkeeper.server.route import route


class ReplyBody(Value):
    """A reply. A message with a rejection is advice for the model, which then continues."""

    reply: PermissionAnswer
    message: str | None = None
    absence: Absence | None = None
    """Why a rejection is not the user's own, which the model is told."""


class ResponseBody(Value):
    """A reply in opencode's older format."""

    response: PermissionAnswer


async def list_pending(call: PlainRequest) -> list[PermissionRequest]:
    """Pending permission requests of a directory."""
    place = await call.place()
    return [public(one) for one in await call.turnkeeper.permissions(directory=place.directory)]


async def reply(call: HttpRequest[None, ReplyBody]) -> bool:
    """Reply to a permission request."""
    await answer(call, call.params["requestID"], call.body.reply, message=call.body.message, absence=call.body.absence)
    return True


async def respond(call: HttpRequest[None, ResponseBody]) -> bool:
    """Reply to a permission request, in opencode's older format."""
    await answer(call, call.params["permissionID"], call.body.response, session_id=call.session_id)
    return True


async def answer(
    call: AnyRequest,
    request_id: str,
    given: PermissionAnswer,
    *,
    message: str | None = None,
    absence: Absence | None = None,
    session_id: str | None = None,
) -> None:
    """Answer a permission request. Raises Missing if it does not wait (any more)."""
    try:
        await call.turnkeeper.reply(request_id, given, message=message, absence=absence, session_id=session_id)
    except NotFound as error:  # The request, or its session.
        raise Missing("Permission", request_id) from error


ROUTES = (
    route("GET", "/permission", "permission.list", list_pending),
    route("POST", "/permission/{requestID}/reply", "permission.reply", reply, NotFound, Conflict),
    route("POST", "/session/{sessionID}/permissions/{permissionID}", "permission.respond", respond, NotFound, Conflict),
)
