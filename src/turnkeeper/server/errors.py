"""Errors as HTTP responses: the status of each refusal, and its body in the first and second generation of the API.

Clients show ``data.message``, else ``message``, else ``name``.
"""

import logging
import os
import secrets
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from turnkeeper.core.entry import Damaged
from turnkeeper.model.refusal import Busy, Conflict, Forbidden, Invalid, NotFound, Refusal
from turnkeeper.server.names import directory_fault, masked
from turnkeeper.server.response import HttpResponse, json
from turnkeeper.store.damaged import DamagedDocument
from turnkeeper.store.engine import StoreFull, StoreUnavailable
from turnkeeper.workspace.mcp_login import NotOffered

log = logging.getLogger(__name__)

RequestPart: TypeAlias = Literal["Payload", "Params", "Query"]
Thing: TypeAlias = Literal["McpServer", "Message", "Permission", "Provider", "Question", "Session"]

_KEYS: Final[Mapping[Thing, str]] = {
    "McpServer": "name",
    "Message": "messageID",
    "Permission": "requestID",
    "Provider": "providerID",
    "Question": "requestID",
    "Session": "sessionID",
}


class Malformed(Invalid):
    """A part of the request does not have the type that the operation takes."""

    def __init__(self, message: str, kind: RequestPart) -> None:
        super().__init__(message)
        self.kind = kind


def checked_directory(name: str, kind: RequestPart) -> str:
    """The name of a directory, unchanged. Raises Malformed for a name that no directory can have."""
    if (wrong := directory_fault(name)) is not None:
        raise Malformed(wrong, kind)
    return name


class InvalidCursor(Invalid):
    """The cursor of a list cannot be decoded."""


class TooLarge(Refusal):
    """The body is larger than this server takes."""


class TooSlow(Refusal):
    """The body was not received within the time limit."""


class Incomplete(Refusal):
    """The client disconnected before it had sent the whole body."""


class HeadTooLarge(Refusal):
    """The head of a request is larger than this server takes."""


class Overloaded(Refusal):
    """The limit of open connections is reached."""


class Missing(NotFound):
    """NotFound with the kind of the missing object, which clients read from the body."""

    def __init__(self, thing: Thing, name: str) -> None:
        super().__init__(f"{thing} not found: {name}")
        self.thing, self.name = thing, name


STATUS: Final[Mapping[type[Refusal], int]] = {
    NotFound: 404,
    Conflict: 409,
    Invalid: 400,
    Forbidden: 403,
    Busy: 409,
    TooLarge: 413,
    TooSlow: 408,
    HeadTooLarge: 431,
    Overloaded: 503,
}


def status_of(kind: type[Refusal]) -> int:
    """The HTTP status of a kind of refusal."""
    return next((status for known, status in STATUS.items() if issubclass(kind, known)), 400)


def refused(error: Refusal, params: Mapping[str, str], *, is_second: bool) -> HttpResponse:
    """The response to a refused request."""
    return json(_second(error, params) if is_second else _first(error, params), status_of(type(error)))


def unknown(method: str, path: str, *, is_second: bool) -> HttpResponse:
    """The response to a path without a route."""
    message = f"{method} {masked(path)} is not served here; GET /doc lists what is"
    return json(_body("NotFoundError", is_second=is_second, message=message), 404)


def failed(error: Exception, *, is_second: bool) -> HttpResponse:
    """The response to a request that ended with an exception: of the store, or because of a bug."""
    match error:
        case StoreFull():
            status = 507
        case StoreUnavailable():
            status = 503
        case DamagedDocument() | Damaged():
            status = 500
        case PermissionError(filename=str() | bytes() as place):
            log.error("%s", error)
            words = (
                f"{os.fsdecode(place)}: {error.strerror}; check the path and its permissions on the server's machine"
            )
            return refused(Forbidden(words), {}, is_second=is_second)
        case _:
            return _defect(error, is_second=is_second)
    log.error("%s", error)
    if is_second:
        return json({"_tag": "ServiceUnavailableError", "message": str(error), "service": "store"}, status)
    return json({"name": "StoreUnavailableError", "data": {"message": str(error)}}, status)


def _defect(error: Exception, *, is_second: bool) -> HttpResponse:
    """A bug. The log has the traceback under a reference; the response has only the reference."""
    reference = f"err_{secrets.token_hex(4)}"
    log.error("%s: %s", reference, type(error).__name__, exc_info=error)
    message = f"Unexpected error; the server's log has it under {reference}"
    return json(_body("UnknownError", is_second=is_second, message=message, ref=reference), 500)


def _body(name: str, *, is_second: bool, **data: str) -> object:
    return {"_tag": name, **data} if is_second else {"name": name, "data": data}


def _first(error: Refusal, params: Mapping[str, str]) -> object:
    message = str(error)
    match error:
        case NotOffered():
            return {"error": message}
        case Missing(thing="McpServer" | "Permission" | "Question" as thing, name=name):
            return {"_tag": f"{thing}NotFoundError", _KEYS[thing]: name, "message": message}
        case NotFound():
            return {"name": "NotFoundError", "data": {"message": message}}
        case Malformed(kind=kind):
            # Recorded opencode answers have ``_tag`` for some operations and ``name`` for others: send both.
            return {"_tag": "BadRequest", "name": "BadRequest", "data": {"message": message, "kind": kind}}
        case Busy():
            return {"_tag": "SessionBusyError", "sessionID": params.get("sessionID", ""), "message": message}
        case Conflict():
            return {"_tag": "ConflictError", "name": "ConflictError", "data": {"message": message}}
        case Forbidden():
            return {"name": "ForbiddenError", "data": {"message": message}}
        case Overloaded():
            return {"_tag": "ServiceUnavailableError", "name": "ServiceUnavailableError", "data": {"message": message}}
        case _:
            return {"_tag": "BadRequest", "name": "BadRequest", "data": {"message": message}}


def _second(error: Refusal, params: Mapping[str, str]) -> object:
    message = str(error)
    match error:
        case Missing(thing=thing, name=name):
            more = {"sessionID": params["sessionID"]} if "sessionID" in params else {}
            return {"_tag": f"{thing}NotFoundError", **more, _KEYS[thing]: name, "message": message}
        case NotFound():
            return {"_tag": "SessionNotFoundError", "sessionID": params.get("sessionID", ""), "message": message}
        case InvalidCursor():
            return {"_tag": "InvalidCursorError", "message": message}
        case Malformed(kind=kind):
            return {"_tag": "InvalidRequestError", "message": message, "kind": kind}
        case Conflict() | Busy():
            resource = getattr(error, "resource", None) or params.get("sessionID", "")
            return {"_tag": "ConflictError", "message": message, "resource": resource}
        case Forbidden():
            return {"_tag": "ForbiddenError", "message": message}
        case _:
            return {"_tag": "InvalidRequestError", "message": message}
