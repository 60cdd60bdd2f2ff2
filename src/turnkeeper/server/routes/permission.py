"""Permission requests: list them and reply."""

from typing import Literal

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import Value
from turnkeeper.run.permission import Reply
from turnkeeper.server.asks import PendingPermission, pending
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import Route


class ReplyBody(Value):
    """A reply. A message with a rejection is advice for the model, which then continues."""

    reply: Literal["once", "always", "reject"]
    message: str | None = None


class ResponseBody(Value):
    """A reply in opencode's older format."""

    response: Literal["once", "always", "reject"]


async def list_pending(call: PlainRequest) -> list[PendingPermission]:
    """Pending permission requests of a directory."""
    place = await call.place()
    return [pending(one) for one in call.service.asks.pending(directory=str(place.directory))]


async def reply(call: HttpRequest[None, ReplyBody]) -> bool:
    """Reply to a permission request."""
    given = Reply(answer=call.body.reply, feedback=call.body.message)
    call.service.asks.reply(call.params["requestID"], given)
    return True


async def respond(call: HttpRequest[None, ResponseBody]) -> bool:
    """Reply to a permission request, in opencode's older format."""
    given = Reply(answer=call.body.response)
    call.service.asks.reply(call.params["permissionID"], given, session_id=call.session_id)
    return True


ROUTES = (
    Route(
        method="GET",
        path="/permission",
        operation="permission.list",
        handler=list_pending,
        answer=list[PendingPermission],
    ),
    Route(
        method="POST",
        path="/permission/{requestID}/reply",
        operation="permission.reply",
        handler=reply,
        body=ReplyBody,
        answer=bool,
        errors=(NotFound,),
    ),
    Route(
        method="POST",
        path="/session/{sessionID}/permissions/{permissionID}",
        operation="permission.respond",
        handler=respond,
        body=ResponseBody,
        answer=bool,
        errors=(NotFound,),
    ),
)
