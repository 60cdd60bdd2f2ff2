"""Joined: head and body of an answer are sent together.

uvicorn sends the head by itself, and one more call of the system costs as much as the rest of a small answer.
"""

import asyncio
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

BODY_BYTES_MAX: Final = 64 * 1024
"""A longer body is sent by itself: to join it would be a copy."""


class Joining:
    """A transport that keeps the head of a whole answer back until its body is written, which is at once.

    The head of a stream has no length, and is not kept.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        """Send it, with the head that was kept."""
        if self._head:
            if len(data) <= BODY_BYTES_MAX:
                data = self._head + data
                self._head = b""
            self.flush()
        elif data.startswith(b"HTTP/1.1 ") and b"\r\ncontent-length: " in data:
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Send the head if it is kept."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        """Close, with nothing left to be sent."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's own; ``Any``, because so is its type."""
        return getattr(self._transport, name)


class JoinedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, writing through a transport that joins."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # As uvicorn has it.
        """A client called."""
        self._joining = Joining(transport)
        super().connection_made(cast(asyncio.Transport, self._joining))

    def on_response_complete(self) -> None:
        """An answer is over; one to HEAD had no body."""
        self._joining.flush()
        super().on_response_complete()
