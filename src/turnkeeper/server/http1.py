"""HTTP/1.1: connections of clients, and on each one request after the other, answered by an ASGI application.

httptools parses. What is left is order: whose turn it is, how much may wait, and when a connection is over. A server
that is made for any application takes longer to load than all that this one has to say.
"""

import asyncio
import logging
import socket
from collections import deque
from functools import partial
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import unquote

import anyio
import httptools

from turnkeeper.server.asgi import Application, Scope
from turnkeeper.server.exchange import Exchange, plain

log = logging.getLogger(__name__)

HEAD_BYTES_MAX: Final = 64 * 1024
"""A request with a longer head is refused."""

TOO_LONG: Final = "the head of a request is too long"

KEEP_ALIVE_S: Final = 75
"""How long a connection may rest. Longer than clients keep theirs, so that they are the ones to close it."""

ACCEPT_PAUSE_S: Final = 0.1
"""How long nobody is taken after one could not be."""


class Connection(asyncio.Protocol):
    """One client's connection: its requests are answered in the order in which they came."""

    def __init__(self, keep_alive_s: float) -> None:
        self.is_gone = False
        self._keep_alive_s = keep_alive_s
        self._transport = cast(asyncio.Transport, None)  # Until it is made, nothing else is called.
        self._peer: object = None
        self._here: object = None
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._headers, self._head_bytes = b"", list[tuple[bytes, bytes]](), 0
        self._exchanges: deque[Exchange] = deque()
        """The one that is being answered, and those that came behind it."""
        self._reading: Exchange | None = None
        self._news: asyncio.Future[None] | None = None
        self._is_full = False
        self._writable: anyio.Event | None = None
        self._rests_since: float | None = None
        self._watch: asyncio.TimerHandle | None = None

    async def serve(self, application: Application) -> None:
        """Answer one request after the other, until the client has gone and has been sent everything."""
        loop = asyncio.get_running_loop()
        while not self.is_gone:
            if not self._exchanges:
                self._news = loop.create_future()
                await self._news
                continue
            exchange = self._exchanges[0]
            await exchange.run(application)
            self._exchanges.popleft()
            if not exchange.keeps:
                self._exchanges.clear()
                self._transport.close()
            elif not self._exchanges:
                self._rests_since = loop.time()
            self.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client called."""
        self._transport = cast(asyncio.Transport, transport)
        self._peer, self._here = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        self._rests_since = asyncio.get_running_loop().time()
        self._look_after()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone, or was let go."""
        self.is_gone = True
        if self._watch is not None:
            self._watch.cancel()
        if self._exchanges:
            self._exchanges[0].wake()
        self._wake()
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # Nothing else is spoken here: the request is answered as it is, and is the last one.
        except httptools.HttpParserError:
            self._refuse()
        self._wake()

    def pause_writing(self) -> None:
        """The client reads more slowly than it is told."""
        self._is_full = True

    def resume_writing(self) -> None:
        """It has caught up."""
        self._is_full = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    async def drained(self) -> None:
        """Wait until the client has read what was sent, but for a little."""
        if self._is_full:
            self._writable = anyio.Event()
            await self._writable.wait()

    def pause_reading(self) -> None:
        """Let the client wait with what it has to say."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on listening, unless others wait to be answered first."""
        if len(self._exchanges) <= 1 and not self._transport.is_closing():
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def finish(self) -> None:
        """Let go of the client once it is answered."""
        if self._exchanges:
            self._exchanges[0].keeps = False
        else:
            self._transport.close()

    def abort(self) -> None:
        """Let go of the client at once."""
        self._transport.abort()

    def on_message_begin(self) -> None:
        """httptools: a request begins."""
        self._url, self._headers, self._head_bytes = b"", [], 0

    def on_url(self, url: bytes) -> None:
        """httptools: some of its address."""
        self._url += url
        self._head_bytes += len(url)
        if self._head_bytes > HEAD_BYTES_MAX:
            raise ValueError(TOO_LONG)  # Becomes an error of the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        """httptools: a header."""
        self._headers.append((name.lower(), value))
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > HEAD_BYTES_MAX:
            raise ValueError(TOO_LONG)  # Becomes an error of the parser.

    def on_headers_complete(self) -> None:
        """httptools: the head is whole, and the request can be answered."""
        self._rests_since = None
        version, parser = self._parser.get_http_version(), self._parser
        keeps = version == "1.1" and parser.should_keep_alive() and not parser.should_upgrade()
        expects = (b"expect", b"100-continue") in self._headers
        exchange = self._reading = Exchange(self, self._scope(version), keeps=keeps, expects=expects)
        self._exchanges.append(exchange)
        if len(self._exchanges) > 1:
            self.pause_reading()

    def on_body(self, body: bytes) -> None:
        """httptools: some of its body."""
        assert self._reading is not None
        self._reading.feed(body)

    def on_message_complete(self) -> None:
        """httptools: the request is whole."""
        assert self._reading is not None
        self._reading.end()

    def _scope(self, version: str) -> Scope:
        address = httptools.parse_url(self._url)
        path = address.path.decode("ascii")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "method": self._parser.get_method().decode("ascii"),
            "scheme": "http",
            "path": unquote(path) if "%" in path else path,
            "raw_path": address.path,
            "query_string": address.query or b"",
            "root_path": "",
            "headers": self._headers,
            "client": self._peer,
            "server": self._here,
        }

    def _refuse(self) -> None:
        """Answer what is no request, unless an answer is under way that it would be taken for a part of."""
        if self._exchanges:
            self._exchanges[-1].keeps = False
        else:
            self.write(plain(HTTPStatus.BAD_REQUEST))
            self._transport.close()

    def _look_after(self) -> None:
        """Close the connection if it has rested long enough, or look again when it may have.

        One clock for a connection, not one for each of its requests: to set one takes as long as to read a request.
        """
        loop = asyncio.get_running_loop()
        rested = loop.time() - self._rests_since if self._rests_since is not None else 0
        if rested >= self._keep_alive_s:
            self._transport.close()
        else:
            self._watch = loop.call_later(self._keep_alive_s - rested, self._look_after)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        self._news = None


class Site:
    """Where clients call. Each has a task of its own, which answers its requests."""

    def __init__(self, application: Application, keep_alive_s: float = KEEP_ALIVE_S) -> None:
        self._application, self._keep_alive_s = application, keep_alive_s
        self._connections: set[Connection] = set()
        self._accepting = anyio.CancelScope()
        self._is_closing, self._empty = False, anyio.Event()

    async def serve(self, bound: socket.socket) -> None:
        """Answer who calls at this socket, until the site is closed."""
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as group:
            with self._accepting, bound:
                while True:
                    try:
                        client, _ = await loop.sock_accept(bound)
                    except OSError as error:
                        # Too many files are open, or the client was faster gone than taken.
                        log.warning("a client could not be taken: %s", error)
                        await anyio.sleep(ACCEPT_PAUSE_S)
                    else:
                        group.start_soon(self._serve, client)
            await self._empty.wait()

    async def close(self, patience_s: float) -> None:
        """Let everybody go: who rests now, the others once they are answered, or when patience is at its end."""
        self.deafen()
        self._is_closing = True
        for connection in tuple(self._connections):
            connection.finish()
        self._note_empty()
        with anyio.move_on_after(patience_s):
            await self._empty.wait()
        for connection in tuple(self._connections):
            connection.abort()

    def deafen(self) -> None:
        """Take no further calls; those who called are answered."""
        self._accepting.cancel()

    async def _serve(self, client: socket.socket) -> None:
        loop, make = asyncio.get_running_loop(), partial(Connection, self._keep_alive_s)
        _, connection = await loop.connect_accepted_socket(make, client)
        self._connections.add(connection)
        try:
            await connection.serve(self._application)
        finally:
            connection.abort()
            self._connections.discard(connection)
            self._note_empty()

    def _note_empty(self) -> None:
        if self._is_closing and not self._connections:
            self._empty.set()
