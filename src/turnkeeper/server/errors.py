"""Refusals on the wire: each kind's status, in the spelling of its generation. The only place that knows both.

Clients show ``data.message``, else ``message``, else ``name``.
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from turnkeeper.core.entry import Damaged
from turnkeeper.model.refusal import Busy, Conflict, Forbidden, Invalid, NotFound, Refusal
from turnkeeper.server.answer import HttpResponse, json
from turnkeeper.server.names import directory_fault
from turnkeeper.store.damaged import DamagedDocument
from turnkeeper.store.engine import StoreFull, StoreUnavailable

log = logging.getLogger(__name__)

RequestPart: TypeAlias = Literal["Payload", "Params", "Query"]
Thing: TypeAlias = Literal["Message", "Permission", "Provider", "Question", "Session"]

_KEYS: Final[Mapping[Thing, str]] = {
    "Message": "messageID",
    "Permission": "requestID",
    "Provider": "providerID",
    "Question": "requestID",
    "Session": "sessionID",
}


class Malformed(Invalid):
    """The request is not what the operation takes."""

    def __init__(self, message: str, kind: RequestPart) -> None:
        super().__init__(message)
        self.kind = kind


def checked_directory(name: str, kind: RequestPart) -> str:
    """The name of a directory. Raises Malformed for what no directory can be called."""
    if (wrong := directory_fault(name)) is not None:
        raise Malformed(wrong, kind)
    return name


class InvalidCursor(Invalid):
    """What should be a place in a list is none."""


class TooLarge(Refusal):
    """The body is larger than this server takes."""


class TooSlow(Refusal):
    """The body did not come in time."""


class Incomplete(Refusal):
    """The client disconnected before it had sent the whole body."""


class HeadTooLarge(Refusal):
    """The head of a request is larger than this server takes."""


class Overloaded(Refusal):
    """As many connections are open as this server takes."""


class Missing(NotFound):
    """There is no such thing, and clients want to hear which kind of thing it would be."""

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
    """The status that a kind of refusal is answered with."""
    return next((status for known, status in STATUS.items() if issubclass(kind, known)), 400)


def refused(error: Refusal, params: Mapping[str, str], *, is_second: bool) -> HttpResponse:
    """A refusal as an answer."""
    return json(_second(error, params) if is_second else _first(error, params), status_of(type(error)))


def unknown(method: str, path: str, *, is_second: bool) -> HttpResponse:
    """Nothing is served there."""
    message = f"{method} {path} is not served here; GET /doc lists what is"
    if is_second:
        return json({"_tag": "NotFoundError", "message": message}, 404)
    return json({"name": "NotFoundError", "data": {"message": message}}, 404)


def failed(error: Exception, *, is_second: bool) -> HttpResponse:
    """What ended a request and is no refusal: the store says why it cannot answer, or there is a bug."""
    match error:
        case StoreFull():
            status = 507
        case StoreUnavailable():
            status = 503
        case DamagedDocument() | Damaged():
            status = 500
        case _:
            return _defect(error, is_second=is_second)
    log.error("%s", error)
    return json(_unavailable(str(error), is_second=is_second), status)


def _defect(error: Exception, *, is_second: bool) -> HttpResponse:
    """A bug of ours. The log has it under the reference; the caller is told no more than that."""
    reference = f"err_{secrets.token_hex(4)}"
    log.error("%s: %s", reference, type(error).__name__, exc_info=error)
    message = f"Unexpected error; the server's log has it under {reference}"
    if is_second:
        return json({"_tag": "UnknownError", "message": message, "ref": reference}, 500)
    return json({"name": "UnknownError", "data": {"message": message, "ref": reference}}, 500)


def _unavailable(message: str, *, is_second: bool) -> object:
    if is_second:
        return {"_tag": "ServiceUnavailableError", "message": message, "service": "store"}
    return {"name": "StoreUnavailableError", "data": {"message": message}}


def _first(error: Refusal, params: Mapping[str, str]) -> object:
    message = str(error)
    match error:
        case Missing(thing="Permission" | "Question" as thing, name=name):
            return {"_tag": f"{thing}NotFoundError", _KEYS[thing]: name, "message": message}
        case NotFound():
            return {"name": "NotFoundError", "data": {"message": message}}
        case Malformed(kind=kind):
            # Both of the spellings that are on record: some operations use one, some the other.
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
