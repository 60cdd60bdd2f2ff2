"""MCP over HTTP: requests to one address, with limits for the size and number of messages in answers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from turnkeeper.core.limits import MCP_MESSAGE_BYTES_MAX
from turnkeeper.core.mcp import MessageBudget

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

    from turnkeeper.workspace.mcp_connection import Connection

STREAM: Final = "text/event-stream"


@asynccontextmanager
async def http(
    url: str,
    headers: Mapping[str, str],
    connect_s: float,
    connection: "Connection",
    auth: "httpx2.Auth | None" = None,
) -> AsyncIterator["TransportStreams"]:
    """The message streams of a connection to an address."""
    from mcp.client.streamable_http import streamable_http_client

    async with (
        http_client(headers, connect_s, connection=connection, auth=auth) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MCP_MESSAGE_BYTES_MAX) as streams,
    ):
        yield streams


def http_client(
    headers: Mapping[str, str],
    connect_s: float,
    *,
    read_s: float | None = None,
    connection: "Connection | None" = None,
    auth: "httpx2.Auth | None" = None,
) -> "httpx2.AsyncClient":
    """HTTP client with bounded answers. Without ``read_s`` there is no read timeout: each call has its own."""
    import httpx2

    class BoundedStream(httpx2.AsyncByteStream):
        """Passes on the body of an answer; breaks the connection above the limit."""

        def __init__(self, stream: httpx2.AsyncByteStream, bound: _Bound) -> None:
            self._stream, self._bound = stream, bound

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                if (reason := self._bound.exceeded(piece, anyio.current_time())) is not None:
                    if connection is not None:
                        connection.breaks(reason)
                    raise httpx2.ReadError(reason)
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def receive(response: httpx2.Response) -> None:
        if connection is not None:
            connection.http_status = response.status_code
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # A short compressed answer can expand to a long one.
            raise httpx2.DecodingError(
                "it sent a compressed answer, which it was asked not to", request=response.request
            )
        assert isinstance(response.stream, httpx2.AsyncByteStream), "the client is asynchronous"
        is_stream = response.headers.get("content-type", "").lower().startswith(STREAM)
        response.stream = BoundedStream(response.stream, _Bound(is_stream=is_stream))

    return httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(connect_s, read=read_s),
        auth=auth,
        event_hooks={"response": [receive]},
    )


class _Bound:
    """Limit for the body of an answer: for the whole body, or for each event of a stream."""

    def __init__(self, *, is_stream: bool) -> None:
        self._is_stream = is_stream
        self._size, self._budget = 0, MessageBudget()

    def exceeded(self, piece: bytes, now: float) -> str | None:
        """The reason why this piece exceeds the limit; None if it does not."""
        lines = piece.count(b"\n")
        self._size = len(piece) - piece.rfind(b"\n") if self._is_stream and lines else self._size + len(piece)
        if self._size > MCP_MESSAGE_BYTES_MAX:
            return f"it sent a message of more than {MCP_MESSAGE_BYTES_MAX // 2**20} MiB"
        # An event has three lines: its kind, its data and an empty one.
        return self._budget.exceeded(lines / 3, now) if self._is_stream else None
