"""Route: one operation of the API as a value, from which it is decoded, encoded and documented."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from turnkeeper.model.refusal import Refusal
from turnkeeper.server.call import HttpRequest

Q = TypeVar("Q")
B = TypeVar("B")

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

NoneType = type(None)


class Route(msgspec.Struct, Generic[Q, B], frozen=True, kw_only=True):
    """One operation. The handler gets a Call and returns a value, an Answer, or an ASGI application (a stream)."""

    method: Method
    path: str
    """As the OpenAPI document has it: ``/session/{sessionID}``. A last segment ``*`` takes the rest of the path."""
    operation: str
    """The upstream operation id: ``session.get``."""
    tier: int
    summary: str
    handler: Callable[[HttpRequest[Q, B]], Awaitable[object]]
    query: type[Q] = NoneType  # type: ignore[assignment] # No query: Q is None then.
    body: type[B] = NoneType  # type: ignore[assignment] # No body: B is None then.
    answer: object = None
    """The type of the value in the answer; None where there is no body."""
    status: int = 200
    errors: tuple[type[Refusal], ...] = ()
    """What a caller may be refused, for the documents; a malformed request is always refused."""
    media: str = "application/json"
    """What the answer is; ``text/event-stream`` for streams."""


AnyRoute: TypeAlias = Route[Any, Any]
"""A route of a table, in which each has types of its own."""
