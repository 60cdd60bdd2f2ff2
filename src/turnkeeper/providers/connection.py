"""Connections to providers: HTTP/1.1 read by httptools, a network packet at a time.

An answer comes in many small chunks. Read one by one in Python they cost more than all the rest of a turn; here the
chunks of a packet are one piece. ``httpx2`` is what the rest of the program sees: this is a transport of its.
"""

import asyncio
import re
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Final

import httptools
import httpx2

BUFFER_MAX: Final = 1024 * 1024
"""How much may wait to be read before the provider is told to pause."""
PIECE_MAX: Final = 128 * 1024
"""How much is read at once; those who watch an answer should see it grow."""
TOGETHER_MAX: Final = 64 * 1024
"""A request up to this size is sent in one piece."""
HEAD_MAX: Final = 256 * 1024
"""How long the head of an answer may be."""

_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(rb"[^\x00\r\n]*")

Origin = tuple[str, str, int]


class Pieces(httpx2.AsyncByteStream):
    """A body that is sent piece by piece, so that nobody has to join it."""

    def __init__(self, pieces: Sequence[bytes | memoryview]) -> None:
        self.pieces, self.size = pieces, sum(map(len, pieces))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield bytes(piece)


class Connections(httpx2.AsyncBaseTransport):
    """A transport that keeps connections for the next request. It raises what httpx2's own raises."""

    def __init__(self, *, idle_max: int, open_max: int) -> None:
        self._idle: defaultdict[Origin, list[_Connection]] = defaultdict(list)
        self._idle_max = idle_max
        self._room = asyncio.Semaphore(open_max)
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and wait for the head of its answer."""
        sent = await _parts(request)
        await self._room.acquire()
        try:
            connection = self._kept(request) or await self._opened(request)
        except BaseException:
            self._room.release()
            raise
        connection.send(sent)
        return await self._answer(connection, request)

    async def aclose(self) -> None:
        """Close what is kept. Answers that are still being read go on."""
        for kept in self._idle.values():
            for connection in kept:
                connection.close()
        self._idle.clear()

    def done(self, origin: Origin, connection: "_Connection") -> None:
        """An answer was read, or nobody wants the rest of it."""
        self._room.release()
        if not connection.is_reusable or sum(map(len, self._idle.values())) >= self._idle_max:
            connection.close()
            return
        self._idle[origin].append(connection)

    async def _answer(self, connection: "_Connection", request: httpx2.Request) -> httpx2.Response:
        try:
            answer = await connection.head(request)
        except BaseException:
            self._give_up(connection)
            raise
        body = Body(self, _origin(request), connection, request)
        return httpx2.Response(answer.status, headers=answer.headers, stream=body, request=request)

    def _give_up(self, connection: "_Connection") -> None:
        self._room.release()
        connection.close()

    def _kept(self, request: httpx2.Request) -> "_Connection | None":
        waiting = self._idle.get(_origin(request))
        while waiting:
            connection = waiting.pop()
            if connection.is_open:
                return connection
        return None

    async def _opened(self, request: httpx2.Request) -> "_Connection":
        scheme, host, port = _origin(request)
        if scheme not in ("http", "https"):
            raise httpx2.UnsupportedProtocol(f"{scheme or 'no'}:// is not spoken; http and https are", request=request)
        if scheme == "https" and self._tls is None:
            self._tls = httpx2.create_ssl_context()
        limit = _limit(request, "connect")
        try:
            async with asyncio.timeout(limit):
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection, host, port, ssl=self._tls if scheme == "https" else None, happy_eyeballs_delay=0.25
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"no connection within {limit:g} s", request=request) from error
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        return connection


class _Head:
    """The first lines of an answer."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []

    @property
    def is_framed(self) -> bool:
        """Whether the answer says where it ends; otherwise it ends with the connection."""
        return any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self.headers)


class _Connection(asyncio.Protocol):
    """One connection, with one answer at a time. httptools calls the methods that begin with ``on_``."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._reset()
        self.is_open = True

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._head = _Head()
        self._pieces: list[bytes] = []
        self._size = self._head_size = 0
        self._has_head = self._is_over = self._is_paused = self._is_kept = False

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "connections can be written to"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
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

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._has_head and not self._is_over and error is None and not self._head.is_framed:
            self._is_over = True
        elif self._failure is None and not self._is_over:
            lost = "the connection was closed before the answer was whole"
            self._failure = httpx2.RemoteProtocolError(lost) if error is None else httpx2.ReadError(str(error))
            self._failure.__cause__ = error
        self._wake()

    # What httptools tells.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head.status = self._parser.get_status_code()
        # An interim answer (100) is followed by the real one.
        self._has_head = self._head.status >= 200

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_over, self._is_kept = True, self._parser.should_keep_alive()
        else:
            self._head = _Head()

    # What the transport asks.

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent on it."""
        return self.is_open and self._is_kept and not self._pieces

    def send(self, sent: Sequence[bytes | memoryview]) -> None:
        """Send a request."""
        assert self._transport is not None, "it is connected"
        self._reset()
        for piece in sent:
            self._transport.write(piece)

    async def head(self, request: httpx2.Request) -> _Head:
        """Wait for the head of the answer."""
        while not self._has_head:
            await self._more(request)
        return self._head

    async def read(self, request: httpx2.Request) -> bytes:
        """What has arrived of the body; nothing at its end."""
        while not self._pieces:
            if self._is_over:
                return b""
            await self._more(request)
        arrived, self._pieces = self._taken()
        self._size -= len(arrived)
        if self._is_paused and self._transport is not None and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()
        return arrived

    def _taken(self) -> tuple[bytes, list[bytes]]:
        """What is read at once, and what is left: a reader that fell behind still gets an answer in portions."""
        if self._size <= PIECE_MAX:
            return b"".join(self._pieces), []
        size = count = 0
        while size < PIECE_MAX:
            size += len(self._pieces[count])
            count += 1
        return b"".join(self._pieces[:count]), self._pieces[count:]

    def close(self) -> None:
        """Hang up."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort() if self._pieces or not self._is_over else self._transport.close()

    async def _more(self, request: httpx2.Request) -> None:
        """Wait until something happens."""
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        self._arrival = arrival = loop.create_future()
        limit = _limit(request, "read")
        timer = loop.call_later(limit, _expire, arrival) if limit is not None else None
        try:
            await arrival
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the provider went silent", request=request) from error
        finally:
            self._arrival = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class Body(httpx2.AsyncByteStream):
    """The body of an answer, packet by packet."""

    def __init__(
        self, connections: Connections, origin: Origin, connection: _Connection, request: httpx2.Request
    ) -> None:
        self._connections, self._origin, self._connection = connections, origin, connection
        self._request, self._is_closed = request, False

    @property
    def is_read(self) -> bool:
        """Whether all of it has come and was taken."""
        return self._connection.is_reusable

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._connection.read(self._request):
            yield piece

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._connections.done(self._origin, self._connection)


def _expire(arrival: "asyncio.Future[None]") -> None:
    if not arrival.done():
        arrival.set_exception(TimeoutError())


def _limit(request: httpx2.Request, kind: str) -> float | None:
    limits = request.extensions.get("timeout")
    limit = limits.get(kind) if isinstance(limits, dict) else None
    return float(limit) if isinstance(limit, int | float) else None


def _origin(request: httpx2.Request) -> Origin:
    url = request.url
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


async def _parts(request: httpx2.Request) -> tuple[bytes | memoryview, ...]:
    """A request as it is sent, part by part."""
    head, stream = _spelt(request), request.stream
    first, *rest = stream.pieces if isinstance(stream, Pieces) else (await request.aread(),)
    # What is large is not copied once more to be behind its head, though it then takes two packets.
    return (head, first, *rest) if len(first) > TOGETHER_MAX else (b"".join((head, first)), *rest)


def _spelt(request: httpx2.Request) -> bytes:
    """The head of a request on the wire."""
    lines = [b"%b %b HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise httpx2.LocalProtocolError(f"the header {name!r} holds what no header may", request=request)
        lines.append(b"%b: %b\r\n" % (name, value.strip()))
    return b"".join((*lines, b"\r\n"))
