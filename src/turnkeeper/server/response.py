"""HttpResponse: a complete response to a request, and how a value becomes one."""

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from turnkeeper.model.value import encode
from turnkeeper.server.asgi import Send

Pairs: TypeAlias = tuple[tuple[bytes, bytes], ...]

JSON: Final = (b"content-type", b"application/json")

NO_BODY: Final = (204, 304)
"""Statuses of responses that have no body, and so no length."""


class HttpResponse(msgspec.Struct, frozen=True):
    """Status, headers and body. A handler returns one to set headers, or to send bytes that are already encoded."""

    status: int
    body: bytes = b""
    headers: Pairs = ()

    async def send(self, send: Send, common: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Send the response; ``common`` are headers that every response of the server has."""
        headers = [*self.headers, *common]
        if self.status not in NO_BODY:
            headers.append((b"content-length", str(len(self.body)).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def json(value: object, status: int = 200, headers: Pairs = ()) -> HttpResponse:
    """A response with a value as JSON."""
    return HttpResponse(status, encode(value), (JSON, *headers))
