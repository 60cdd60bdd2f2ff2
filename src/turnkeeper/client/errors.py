"""What a server refuses, as the refusals it began as; and what went wrong on the way to it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from turnkeeper.model.refusal import Busy, Conflict, Forbidden, Invalid, NotFound, Refusal


class Unreachable(Refusal):
    """No server answers there, or not any more."""


class Unexpected(Refusal):
    """Something answers that is no answer: a bug in the server, or no server of ours."""


_TAGS: Final[Mapping[str, type[Refusal]]] = {
    "SessionBusyError": Busy,
    "ConflictError": Conflict,
    "ForbiddenError": Forbidden,
}
"""Spellings that say more than the status does."""

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
    """The refusal that an answer stands for."""
    said = _object(body)
    if status == 401:
        return Forbidden(_PASSWORD)
    tag = said.get("_tag") or said.get("name")
    kind = _TAGS.get(str(tag)) or _STATUS.get(status, Unexpected)
    return kind(_message(said) or f"the server answered {status} and did not say why")


def _message(said: Mapping[str, object]) -> str:
    """What people are to read: where both generations put it."""
    data = said.get("data")
    inner = data.get("message") if isinstance(data, dict) else None
    return str(inner or said.get("message") or said.get("name") or "")


def _object(body: bytes) -> Mapping[str, object]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}
