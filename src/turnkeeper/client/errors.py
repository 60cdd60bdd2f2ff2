"""Refusals of a server as the exceptions of Turnkeeper, and connection errors."""

from collections.abc import Mapping
from typing import Final

import msgspec

from turnkeeper.model.refusal import Busy, Conflict, Forbidden, Invalid, NotFound, Refusal


class Unreachable(Refusal):
    """No server answers at the address, or the connection was lost."""


class Unexpected(Refusal):
    """The response cannot be decoded: a bug in the server, or a server of another program."""


_TAGS: Final[Mapping[str, type[Refusal]]] = {
    "SessionBusyError": Busy,
    "ConflictError": Conflict,
    "ForbiddenError": Forbidden,
}
"""Error tags that are more specific than their HTTP status."""

_STATUS: Final[Mapping[int, type[Refusal]]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    408: Invalid,
    409: Conflict,
    413: Invalid,
    422: Invalid,
    503: Unreachable,
}

_PASSWORD: Final = (
    "the server wants another name or password; set TURNKEEPER_SERVER_PASSWORD (and TURNKEEPER_SERVER_USERNAME)"
)


def refusal(status: int, body: bytes) -> Refusal:
    """The exception for an error response."""
    error = _object(body)
    if status == 401:
        return Forbidden(_PASSWORD)
    tag = error.get("_tag") or error.get("name")
    kind = _TAGS.get(str(tag)) or _STATUS.get(status, Unexpected)
    return kind(_message(error) or f"the server answered {status} without a reason")


def _message(error: Mapping[str, object]) -> str:
    """The message for people, at the place where either generation has it."""
    data = error.get("data")
    inner = data.get("message") if isinstance(data, dict) else None
    return str(inner or error.get("message") or error.get("name") or "")


def _object(body: bytes) -> Mapping[str, object]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}
