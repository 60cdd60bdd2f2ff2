"""HttpConnection: one client's HTTP/1.1 connection: uvicorn and httptools, with the limits they lack.

httptools buffers a header line without a limit and reports trailers as headers. uvicorn starts a request before its
framing is known to be valid, has no time limit for the first head, and never gives up on a client that does not read.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any, Final

import httptools
import msgspec
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from turnkeeper.model.refusal import Invalid, Refusal
from turnkeeper.server import errors
from turnkeeper.server.asgi import ABORT, PEER, Application, AsgiMessage, Receive, Scope, Send
from turnkeeper.server.errors import HeadTooLarge, Overloaded
from turnkeeper.server.peer import Peer

VERSIONS: Final = ("1.0", "1.1")


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for each client connection, and for all of them together."""

    connections_max: int = 1024
    """Open connections of all clients; a further connection gets status 503 and is closed."""
    head_bytes_max: int = 64 * 1024
    """Bytes of a request's head, and of the trailers after its body."""
    idle_s: float = 75
    """Time from the last response, or from the connection, until the next head is complete. Longer than clients keep
    an idle connection, so that the client closes it and never sends a request into a closed connection.
    """
    unread_s: float = 60
    """Time in which a client must read some of the data that waits to be sent."""


class HttpConfig(Config):
    """uvicorn's configuration: our protocol class, our limits, and no values from the environment."""

    def __init__(self, application: Application, limits: ConnectionLimits) -> None:
        super().__init__(
            application,
            http=HttpConnection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            loop="none",
            workers=1,
            proxy_headers=False,
            server_header=False,
            log_config=None,
            access_log=False,
        )
        self.limits = limits


class HttpConnection(HttpToolsProtocol):
    """One client's connection. Requests are answered in the order they were received."""

    def __init__(
        self,
        config: HttpConfig,
        server_state: ServerState,
        app_state: dict[str, Any],  # As in uvicorn: the state of the lifespan, which is off.
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self.timeout_keep_alive = config.limits.idle_s  # type: ignore[assignment] # A fraction of a second works too.
        self._answering: RequestResponseCycle | None = None
        """The request whose response is being sent; uvicorn's ``cycle`` is the newest request, which may be queued."""
        self._is_in_head = self._is_refused = self._is_lost = False
        self._head_bytes = self._unparsed_bytes = 0
        self._unsent_bytes, self._unsent_since = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # As in uvicorn.
        """A client connected."""
        super().connection_made(transport)
        self.flow = _PipelineFlow(transport, self.pipeline)
        host, port = self.server or ("", None)
        self._peer = Peer(self.client or ("", 0), (host, port or 0))
        if len(self.connections) > self._limits.connections_max:
            self._refuse(Overloaded(f"{self._limits.connections_max} connections are open; try again later"))
        else:
            self.timeout_keep_alive_task = self.loop.call_later(self._limits.idle_s, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed: the request that is being answered receives ``http.disconnect``."""
        self._is_lost = True
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        if self._answering is not None:
            _disconnect(self._answering)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes. The timer of the head goes on, so a slow head has no more time than a fast one."""
        if self._is_refused:
            return
        self._unparsed_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return  # No upgrade is supported: the request is answered and the connection closed.
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause if isinstance(cause, Refusal) else Invalid(f"this is not an HTTP request: {error}"))
            return
        if self._unparsed_bytes > self._limits.head_bytes_max:
            self._refuse(self._head_too_large())

    def eof_received(self) -> bool:  # type: ignore[override] # uvicorn always closes.
        """The client sends nothing more: answer its last request, or end its stream. Returns whether to stay open."""
        newest = self.cycle
        if newest is None or newest.response_complete or newest.more_body:
            return False
        if newest is self._answering and newest.chunked_encoding:
            self.abort()
            return False
        newest.keep_alive = False
        return True

    def abort(self) -> None:
        """Close the connection at once and discard unsent data."""
        if self._answering is not None:
            _disconnect(self._answering)
        if not self._is_lost:  # asyncio raises if the transport is already closed.
            self.transport.abort()

    def check_progress(self, now: float) -> None:
        """Abort the connection if the client has not read anything for too long."""
        unsent = self.transport.get_write_buffer_size()
        if self._unsent_bytes == 0 or unsent < self._unsent_bytes:
            self._unsent_since = now
        self._unsent_bytes = unsent
        if unsent > 0 and now - self._unsent_since >= self._limits.unread_s:
            self.abort()

    # Callbacks of httptools. An exception raised in a callback becomes the context of the parser's error.

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.abort, PEER: self._peer}  # type: ignore[dict-item] # Ours.
        self._is_in_head, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        """A piece of the request's URL was parsed."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header was parsed, or a trailer, which is dropped: it must not replace a header that was checked."""
        self._count(len(name) + len(value))
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete: check it and start the request."""
        self._is_in_head, self._unparsed_bytes = False, 0
        self._check_head()
        self._unset_keepalive_if_required()
        super().on_headers_complete()
        if self.expect_100_continue or self.parser.should_upgrade():
            # After a response before the body, the client may send the body or not: the next bytes are ambiguous.
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A piece of the body was received."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._unparsed_bytes = 0
        super().on_message_complete()
        if self.expect_100_continue and not self.cycle.response_started:
            self.cycle.keep_alive = self.parser.should_keep_alive()

    def _start_asgi_task(
        self, cycle: RequestResponseCycle, app: Any
    ) -> None:  # uvicorn has another type for applications.
        self._answering = cycle
        if cycle.scope["http_version"] == "1.0":
            app = _without_chunks(app, cycle)
        app = _until_stopped(app, cycle)
        super()._start_asgi_task(cycle, app)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes_max:
            raise self._head_too_large()

    def _head_too_large(self) -> Refusal:
        return HeadTooLarge(f"the head of a request has up to {self._limits.head_bytes_max} bytes")

    def _check_head(self) -> None:
        version, names = self.parser.get_http_version(), [name for name, _ in self.headers]
        if version not in VERSIONS:
            raise Invalid(f"HTTP/{version} is not spoken here, only HTTP/1.1 and HTTP/1.0")
        self._check_address()
        if names.count(b"host") > 1 or (version == "1.1" and b"host" not in names):
            raise Invalid("a request has exactly one Host header")
        if b"transfer-encoding" in names:
            encodings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
            if encodings != [b"chunked"] or version != "1.1" or b"content-length" in names:
                raise Invalid("the only Transfer-Encoding is chunked, in HTTP/1.1 and without a Content-Length")

    def _check_address(self) -> None:
        """Refuse an address without a path, which uvicorn fails on."""
        if self.parser.get_method() == b"CONNECT":
            raise Invalid("CONNECT is not served here: this is no proxy")
        path = None
        with suppress(httptools.HttpParserInvalidURLError):
            path = httptools.parse_url(self.url).path
        if path is None:
            shown = repr(self.url[:200])[1:]
            raise Invalid(f"{shown} is no address of a request; it begins with '/'")

    def _refuse(self, refusal: Refusal) -> None:
        """Answer a malformed request and close the connection; an earlier response is still sent first."""
        self._is_refused = True
        newest = self.cycle
        if newest is not None and not newest.response_complete:
            if not newest.more_body:
                newest.keep_alive = False
                return
            if newest is not self._answering:
                # A queued request with a broken body: only the requests before it are answered.
                self.pipeline.popleft()
                assert self._answering is not None, "a queued request is behind a request that is being answered"
                self.cycle = self.pipeline[0][0] if self.pipeline else self._answering
                self.cycle.keep_alive = False
                return
            _disconnect(newest)
        if newest is None or newest.response_complete or not newest.response_started:
            self.transport.write(_closing_answer(refusal, self.server_state.default_headers))
        self.transport.close()


class _PipelineFlow(FlowControl):
    """Stops reading while a request is queued; otherwise a client could queue any number of requests."""

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:  # Any: only its length is used.
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Read again, unless a request is queued."""
        if not self._pipeline:
            super().resume_reading()


def _disconnect(cycle: RequestResponseCycle) -> None:
    if not cycle.response_complete:
        cycle.disconnected = True
    cycle.message_event.set()


def _until_stopped(application: Application, cycle: RequestResponseCycle) -> Application:
    """Ends a request quietly when the server cancels it; uvicorn would log the cancellation with a traceback."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await application(scope, receive, send)
        except asyncio.CancelledError:  # The top of the request's task.
            _disconnect(cycle)

    return answer


def _without_chunks(application: Application, cycle: RequestResponseCycle) -> Application:
    """For HTTP/1.0, which has no chunks: a response of unknown length ends with its connection."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_open_ended = False

        async def sending(message: AsgiMessage) -> None:
            nonlocal is_open_ended
            if message["type"] == "http.response.start":
                is_open_ended = all(name.lower() != b"content-length" for name, _ in message["headers"])
                if is_open_ended:
                    cycle.chunked_encoding = False
            elif is_open_ended:
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await application(scope, receive, sending)

    return answer


def _closing_answer(refusal: Refusal, headers: list[tuple[bytes, bytes]]) -> bytes:
    answer = errors.refused(refusal, {}, is_second=False)
    pairs = [*headers, *answer.headers, (b"content-length", b"%d" % len(answer.body)), (b"connection", b"close")]
    return STATUS_LINE[answer.status] + b"".join(b"%b: %b\r\n" % pair for pair in pairs) + b"\r\n" + answer.body
