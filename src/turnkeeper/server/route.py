"""Route: one operation of the API as a value. Requests are decoded and the API is documented from it."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from turnkeeper.model.refusal import Refusal
from turnkeeper.server.asgi import Application
from turnkeeper.server.request import AnyRequest
from turnkeeper.server.response import HttpResponse

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

Handler: TypeAlias = Callable[[AnyRequest], Awaitable[object]]
"""Answers a request with a value to encode, an HttpResponse, or an ASGI application (a stream)."""


class Route(msgspec.Struct, frozen=True):
    """One operation. ``query``, ``body`` and ``answer`` are types; ``type(None)`` is none."""

    method: Method
    path: str
    """As in the OpenAPI document: ``/session/{sessionID}``. A last segment ``*`` matches the rest of the path."""
    operation: str
    """The upstream operation id: ``session.get``."""
    handler: Handler
    query: Any
    body: Any
    answer: Any
    status: int
    refusals: tuple[type[Refusal], ...]
    """The refusals to document, besides Invalid, which any operation may answer."""
    media: str
    """The media type of the answer: ``text/event-stream`` for streams."""

    @property
    def summary(self) -> str:
        """The operation in one sentence: the first line of its handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0]


def route(
    method: Method,
    path: str,
    operation: str,
    handler: Handler,
    *refusals: type[Refusal],
    answer: Any = None,
    media: str = "application/json",
) -> Route:
    """The route of a handler, whose signature has the types of the query, the body and the answer.

    ``answer`` is given where that type is another: the handler encodes the answer itself.
    """
    query, body = get_args(handler.__annotations__["call"])
    returned = handler.__annotations__["return"]
    if answer is None and returned not in (HttpResponse, Application):
        answer = returned
    status = 204 if returned is None else 200
    return Route(method, path, operation, handler, query, body, answer, status, refusals, media)
