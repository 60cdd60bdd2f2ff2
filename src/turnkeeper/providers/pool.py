"""Connection pool to providers: a transport for httpx2 that raises httpx2's exceptions."""

import asyncio
import re
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import httpx2

from turnkeeper.providers.connection import STALE_S, ProviderConnection, Sent, time_limit

IDLE_S: Final = 30.0
"""How long an idle connection is kept; many hosts and routers drop one after a minute."""
CONNECT_PAUSES_S: Final = (0.5, 1.5)
"""Pauses before connecting is retried. Nothing was sent yet, so nothing can run twice."""
TOGETHER_MAX: Final = 64 * 1024
"""A first part up to this size is joined to the head of its request."""
PORT_MAX: Final = 65_535

_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(rb"[^\x00\r\n]*")

Origin = tuple[str, str, int]


class Pieces(httpx2.AsyncByteStream):
    """A request body in pieces, which are sent without joining them."""

    def __init__(self, pieces: Sequence[Sent]) -> None:
        self.pieces, self.size = pieces, sum(map(len, pieces))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield bytes(piece)


class _Idle(NamedTuple):
    """An idle connection; ``timer`` closes it."""

    connection: ProviderConnection
    since: float
    timer: asyncio.TimerHandle


class ConnectionPool(httpx2.AsyncBaseTransport):
    """Opens connections and reuses idle ones for the next request to an origin.

    ``clock`` is wall time: a monotonic clock stops while a laptop sleeps, and connections time out meanwhile.
    """

    def __init__(
        self,
        *,
        idle_max: int,
        open_max: int,
        idle_s: float = IDLE_S,
        stale_s: float = STALE_S,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._idle: defaultdict[Origin, list[_Idle]] = defaultdict(list)
        self._idle_max, self._idle_s, self._stale_s = idle_max, idle_s, stale_s
        self._clock, self._sleep = clock, sleep
        self._room = asyncio.Semaphore(open_max)
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and wait for the head of its answer."""
        parts = await _parts(request)
        await self._room.acquire()
        try:
            return await self._sent(request, parts)
        except BaseException:
            self._room.release()
            raise

    async def aclose(self) -> None:
        """Close idle connections. Connections in use stay open."""
        for kept in self._idle.values():
            for connection, _, timer in kept:
                timer.cancel()
                connection.close()
        self._idle.clear()

    def give_back(self, origin: Origin, connection: ProviderConnection) -> None:
        """Return a connection to the pool; close it if it cannot be reused."""
        self._room.release()
        if not connection.is_reusable or self._idle_count() >= self._idle_max:
            connection.close()
            return
        timer = asyncio.get_running_loop().call_later(self._idle_s, connection.close)
        self._idle[origin].append(_Idle(connection, self._clock(), timer))

    def _idle_count(self) -> int:
        """The number of idle connections, after removing closed ones."""
        for origin, kept in list(self._idle.items()):
            if still_open := [one for one in kept if one.connection.is_open]:
                self._idle[origin] = still_open
            else:
                del self._idle[origin]
        return sum(map(len, self._idle.values()))

    async def _sent(self, request: httpx2.Request, parts: Sequence[Sent]) -> httpx2.Response:
        """Send on an idle connection; on a new one if there is none, or the peer had closed it."""
        connection = self._kept(_origin(request))
        if connection is not None:
            try:
                return await self._answer(connection, request, parts)
            except httpx2.TransportError:
                if not connection.is_stale:
                    raise
        return await self._answer(await self._opened(request), request, parts)

    async def _answer(
        self, connection: ProviderConnection, request: httpx2.Request, parts: Sequence[Sent]
    ) -> httpx2.Response:
        try:
            await connection.send(parts, request)
            head = await connection.head(request)
        except BaseException:
            connection.close()
            raise
        body = Body(self, _origin(request), connection, request)
        return httpx2.Response(head.status, headers=head.headers, stream=body, request=request)

    def _kept(self, origin: Origin) -> ProviderConnection | None:
        """The idle connection to an origin that was used last; None if none is usable."""
        waiting = self._idle.get(origin)
        while waiting:
            connection, since, timer = waiting.pop()
            timer.cancel()
            if connection.is_open and 0 <= self._clock() - since < self._idle_s:
                return connection
            connection.close()
        return None

    async def _opened(self, request: httpx2.Request) -> ProviderConnection:
        for pause in CONNECT_PAUSES_S:
            try:
                return await self._connected(request)
            except httpx2.ConnectError as error:
                if not isinstance(error.__cause__, OSError) or isinstance(error.__cause__, ssl.SSLError):
                    raise
            await self._sleep(pause)
        return await self._connected(request)

    async def _connected(self, request: httpx2.Request) -> ProviderConnection:
        scheme, host, port = _origin(request)
        if scheme not in ("http", "https"):
            found = f"its scheme is {scheme!r}" if scheme else "it has no scheme"
            raise httpx2.UnsupportedProtocol(f"{found}; http and https are possible", request=request)
        if not 0 < port <= PORT_MAX:
            raise httpx2.InvalidURL(f"its port must be between 1 and {PORT_MAX}")
        if scheme == "https" and self._tls is None:
            self._tls = httpx2.create_ssl_context()
        try:
            async with asyncio.timeout(time_limit(request, "connect")):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: ProviderConnection(self._stale_s),
                    host,
                    port,
                    ssl=self._tls if scheme == "https" else None,
                    happy_eyeballs_delay=0.25,
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("no connection in time", request=request) from error
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        return connection


class Body(httpx2.AsyncByteStream):
    """The body of an answer. Closing it returns its connection to the pool."""

    def __init__(
        self, pool: ConnectionPool, origin: Origin, connection: ProviderConnection, request: httpx2.Request
    ) -> None:
        self._pool, self._origin, self._connection = pool, origin, connection
        self._request, self._is_closed = request, False

    @property
    def is_read(self) -> bool:
        """Whether the whole body was read."""
        return self._connection.is_reusable

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._connection.read(self._request):
            yield piece

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._pool.give_back(self._origin, self._connection)


def _origin(request: httpx2.Request) -> Origin:
    url = request.url
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


async def _parts(request: httpx2.Request) -> tuple[Sent, ...]:
    """The parts of a request to send: its head and the pieces of its body."""
    head, stream = _encoded_head(request), request.stream
    first, *rest = stream.pieces if isinstance(stream, Pieces) else (await request.aread(),)
    # Joining a large part to the head would copy it; it is sent in a packet of its own instead.
    return (head, first, *rest) if len(first) > TOGETHER_MAX else (b"".join((head, first)), *rest)


def _encoded_head(request: httpx2.Request) -> bytes:
    """The request line and headers of a request."""
    lines = [b"%b %b HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise httpx2.LocalProtocolError(f"the header {name!r} holds what no header may", request=request)
        lines.append(b"%b: %b\r\n" % (name, value.strip()))
    return b"".join((*lines, b"\r\n"))
