"""One connection to a provider: HTTP/1.1 parsed by httptools, one network packet at a time.

An answer has many small HTTP chunks. Handling each in Python costs more than the rest of a turn, so the chunks of a
packet are joined.
"""

import asyncio
import socket
from collections.abc import Iterable, Iterator
from typing import Final

import httptools
import httpx2

BUFFER_MAX: Final = 1024 * 1024
"""Unread bytes of an answer above which reading from the socket is paused."""
PIECE_MAX: Final = 128 * 1024
"""Maximum size of one read, so that a slow consumer still gets the answer in several portions."""
WRITE_MAX: Final = 256 * 1024
"""Maximum size of one write; the write timeout applies to each write."""
HEAD_MAX: Final = 256 * 1024
"""Maximum size of the head of an answer."""
STALE_S: Final = 2.0
"""A reused connection that closes within this time without a byte of an answer is taken to have been closed already.

Later, the provider may have processed the request, and sending it again is a retry that the user must see.
"""

_SOCKET_OPTIONS: Final = (
    ("TCP_KEEPIDLE", 30),  # Seconds without traffic before the first probe.
    ("TCP_KEEPALIVE", 30),  # TCP_KEEPIDLE on macOS.
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 60_000),  # Milliseconds until unacknowledged data closes the connection.
)

Sent = bytes | memoryview


def keep_alive(connected: socket.socket) -> None:
    """Set TCP keep-alive options, so that a lost peer is detected within a minute while waiting for an answer."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET_OPTIONS:
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


class ResponseHead:
    """Status and headers of an answer."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []

    @property
    def is_framed(self) -> bool:
        """Whether the headers determine where the body ends; otherwise it ends with the connection."""
        return any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self.headers)


class ProviderConnection(asyncio.Protocol):
    """A connection with one request and one answer at a time. httptools calls the methods that begin with ``on_``.

    Only one task uses it at a time: ``send``, then ``head``, then ``read``.
    """

    def __init__(self, stale_s: float = STALE_S) -> None:
        self._stale_s = stale_s
        self._transport: asyncio.Transport | None = None
        self._change: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._is_full = False
        self.is_open = True
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._head = ResponseHead()
        self._pieces: list[bytes] = []
        self._size = self._head_size = 0
        self._has_head = self._is_over = self._is_paused = self._is_kept = self._is_sent = False
        self._sent_at = 0.0
        self.is_stale = False
        """Whether the peer closed the connection before it can have received the request."""

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a TCP connection can be written to"
        self._transport = transport
        keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            self.close()  # Data without a request.
            return
        if not self._has_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
            if not self._has_head and self._head_size > HEAD_MAX:
                raise httptools.HttpParserError("the head of the answer is too long")
        except httptools.HttpParserError as error:
            self._failure = httpx2.RemoteProtocolError(f"the answer is not HTTP: {error}")
            self.close()
        if self._size > BUFFER_MAX and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._has_head and not self._is_over and error is None and not self._head.is_framed:
            self._is_over = True
        elif self._failure is None and not self._is_over:
            lost = "the connection was closed before the answer was complete"
            self._failure = httpx2.RemoteProtocolError(lost) if error is None else httpx2.ReadError(str(error))
            self._failure.__cause__ = error
            is_soon = asyncio.get_running_loop().time() - self._sent_at < self._stale_s
            self.is_stale = is_soon and self._head_size == 0
        self._wake()

    # Called by httptools.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head.status = self._parser.get_status_code()
        # An interim answer (status 1xx) is followed by the final one.
        self._has_head = self._head.status >= 200

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_over, self._is_kept = True, self._parser.should_keep_alive()
        else:
            self._head = ResponseHead()

    # Called by the pool.

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent: the last one was sent and its answer read completely."""
        return self.is_open and self._is_kept and self._is_sent and not self._is_full and not self._pieces

    async def send(self, parts: Iterable[Sent], request: httpx2.Request) -> None:
        """Send a request with flow control. It stops if the answer begins or the connection closes."""
        assert self._transport is not None, "it is connected"
        self._reset()
        self._sent_at = asyncio.get_running_loop().time()
        for piece in _pieces(parts):
            if self._has_head or not self.is_open:
                return  # ``head`` returns the answer or raises the error.
            self._transport.write(piece)
            while self._is_full and self.is_open and not self._has_head:
                await self._wait(request, "write")
        self._is_sent = True

    async def head(self, request: httpx2.Request) -> ResponseHead:
        """Wait for the head of the answer."""
        while not self._has_head:
            await self._wait(request, "read")
        return self._head

    async def read(self, request: httpx2.Request) -> bytes:
        """The next bytes of the body, as soon as there are some; empty at its end."""
        while not self._pieces:
            if self._is_over:
                return b""
            await self._wait(request, "read")
        size = count = 0
        while size < PIECE_MAX and count < len(self._pieces):
            size += len(self._pieces[count])
            count += 1
        arrived, self._pieces = b"".join(self._pieces[:count]), self._pieces[count:]
        self._size -= size
        if self._is_paused and self._transport is not None and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()
        return arrived

    def close(self) -> None:
        """Close the connection; abort it if a request or an answer is incomplete."""
        self.is_open = False
        if self._transport is not None:
            is_done = self._is_over and self._is_sent and not self._pieces
            self._transport.close() if is_done else self._transport.abort()

    async def _wait(self, request: httpx2.Request, kind: str) -> None:
        """Wait until data arrives, the write buffer has room, or the connection is lost."""
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        self._change = change = loop.create_future()
        limit = time_limit(request, kind)
        timer = loop.call_later(limit, _expire, change) if limit is not None else None
        try:
            await change
        except TimeoutError as error:
            expired = httpx2.WriteTimeout if kind == "write" else httpx2.ReadTimeout
            raise expired("the provider went silent", request=request) from error
        finally:
            self._change = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)


def time_limit(request: httpx2.Request, kind: str) -> float | None:
    """The timeout of a request for ``connect``, ``read`` or ``write``; None for no timeout."""
    limits = request.extensions.get("timeout")
    limit = limits.get(kind) if isinstance(limits, dict) else None
    return float(limit) if isinstance(limit, int | float) else None


def _pieces(parts: Iterable[Sent]) -> Iterator[Sent]:
    """The parts of a request in pieces of at most WRITE_MAX, uncopied."""
    for part in parts:
        if len(part) <= WRITE_MAX:
            yield part
        else:
            view = memoryview(part)
            yield from (view[start : start + WRITE_MAX] for start in range(0, len(view), WRITE_MAX))


def _expire(change: "asyncio.Future[None]") -> None:
    if not change.done():
        change.set_exception(TimeoutError())
