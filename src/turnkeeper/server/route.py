"""Route: one operation of the API as a value. Requests are decoded and the API is documented from it."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from turnkeeper.model.refusal import Refusal
from turnkeeper.server.request import HttpRequest

Q = TypeVar("Q")
B = TypeVar("B")

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

NoneType = type(None)


class Route(msgspec.Struct, Generic[Q, B], frozen=True, kw_only=True):
    """One operation. The handler returns a value to encode, an HttpResponse, or an ASGI application (a stream)."""

    method: Method
    path: str
    """As in the OpenAPI document: ``/session/{sessionID}``. A last segment ``*`` matches the rest of the path."""
    operation: str
    """The upstream operation id: ``session.get``."""
    handler: Callable[[HttpRequest[Q, B]], Awaitable[object]]
    """The first line of its docstring is the summary of the operation in the documents."""
    query: type[Q] = NoneType  # type: ignore[assignment] # No query: Q is None then.
    body: type[B] = NoneType  # type: ignore[assignment] # No body: B is None then.
    answer: object = None
    """The type of the body of the answer; None without a body."""
    status: int = 200
    errors: tuple[type[Refusal], ...] = ()
    """Refusals to document; any operation may also refuse a malformed request."""
    media: str = "application/json"
    """The media type of the answer: ``text/event-stream`` for streams."""
    tier: int | None = None
    """0 for an operation that opencode does not have. The tiers of opencode's operations are listed with them, in
    ``scripts/opencode_operations.txt``.
    """

    @property
    def summary(self) -> str:
        """The operation in one sentence."""
        return (self.handler.__doc__ or "").partition("\n")[0]


AnyRoute: TypeAlias = Route[Any, Any]
"""A route whose query and body types are not known statically."""
