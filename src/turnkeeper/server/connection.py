"""Connection: one client's HTTP/1.1 connection. uvicorn and httptools speak it; here are the rules they leave out.

httptools buffers a header line without a limit and hands trailers out as headers. uvicorn starts a request before its
framing is known to be valid, has no time limit for the first head, and never gives up on a peer that does not read.
"""

import asyncio
from collections import deque
from typing import Any, Final

import httptools
import msgspec
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from turnkeeper.model.refusal import Invalid, Refusal
from turnkeeper.server import errors
from turnkeeper.server.asgi import ABORT, Application, AsgiMessage, Receive, Scope, Send
from turnkeeper.server.errors import HeadTooLarge, Overloaded

VERSIONS: Final = ("1.0", "1.1")


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may take of the server."""

    connections_max: int = 1024
    """Open connections of all clients together; one more is answered with 503 and closed."""
    head_bytes_max: int = 64 * 1024
    """Bytes of a request's head, and of the trailers behind its body."""
    idle_s: float = 75
    """Time from the last answer, or from the connection, until the next head is complete. It is longer than clients
    keep an idle connection, so that they close it and do not send a request into a closed one."""
    unread_s: float = 60
    """Time in which a peer must read something of what waits for it."""


class HttpConfig(Config):
    """uvicorn's configuration for this server: our protocol, our limits, and nothing taken from the environment."""

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
    """One client's connection: its requests are answered in the order in which they came."""

    def __init__(
        self,
        config: HttpConfig,
        server_state: ServerState,
        app_state: dict[str, Any],  # As uvicorn has it: the state of a lifespan, which is off.
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self.timeout_keep_alive = config.limits.idle_s  # type: ignore[assignment] # Parts of a second will do too.
        self._answering: RequestResponseCycle | None = None
        """The request whose answer is being sent; uvicorn's ``cycle`` is the newest one, which may wait behind it."""
        self._is_in_head = self._is_refused = self._is_lost = False
        self._head_bytes = self._unparsed_bytes = 0
        self._unsent_bytes, self._unsent_since = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # As uvicorn has it.
        """A client connected."""
        super().connection_made(transport)
        self.flow = _PipelineFlow(transport, self.pipeline)
        if len(self.connections) > self._limits.connections_max:
            self._refuse(Overloaded(f"{self._limits.connections_max} connections are open; try again later"))
        else:
            self.timeout_keep_alive_task = self.loop.call_later(self._limits.idle_s, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed; the request that is being answered is told."""
        self._is_lost = True
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        if self._answering is not None:
            _disconnect(self._answering)

    def data_received(self, data: bytes) -> None:
        """Parse what came. The timer of the head goes on: a head that comes byte by byte has no more time."""
        if self._is_refused:
            return
        self._unparsed_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return  # No other protocol is spoken here: the request is answered, and the connection closed behind it.
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause if isinstance(cause, Refusal) else Invalid(f"this is not an HTTP request: {error}"))
            return
        if self._unparsed_bytes > self._limits.head_bytes_max:
            self._refuse(self._head_too_large())

    def eof_received(self) -> bool:  # type: ignore[override] # uvicorn always closes.
        """The client sends nothing more: what it asked for is answered, and a stream ends. Whether to stay open."""
        newest = self.cycle
        if newest is None or newest.response_complete or newest.more_body:
            return False
        if newest is self._answering and newest.chunked_encoding:
            self.abort()
            return False
        newest.keep_alive = False
        return True

    def abort(self) -> None:
        """Close the connection at once, without sending what waits to be sent."""
        if self._answering is not None:
            _disconnect(self._answering)
        if not self._is_lost:  # asyncio fails on a transport that was closed and has sent the rest.
            self.transport.abort()

    def check_progress(self, now: float) -> None:
        """Abort the connection if its peer has not read anything for too long."""
        unsent = self.transport.get_write_buffer_size()
        if self._unsent_bytes == 0 or unsent < self._unsent_bytes:
            self._unsent_since = now
        self._unsent_bytes = unsent
        if unsent > 0 and now - self._unsent_since >= self._limits.unread_s:
            self.abort()

    # What httptools calls. An exception in one of these becomes the context of the parser's error.

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.abort}  # type: ignore[dict-item] # Our own.
        self._is_in_head, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        """A piece of the request's address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; or a trailer, which is dropped: it must not replace a header that was checked."""
        self._count(len(name) + len(value))
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete: the request is checked and started."""
        self._is_in_head, self._unparsed_bytes = False, 0
        self._check_head()
        self._unset_keepalive_if_required()
        super().on_headers_complete()
        if self.expect_100_continue or self.parser.should_upgrade():
            # Answered before its body came, a client may send the body or leave it out: what comes next is unclear.
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._unparsed_bytes = 0
        super().on_message_complete()
        if self.expect_100_continue and not self.cycle.response_started:
            self.cycle.keep_alive = self.parser.should_keep_alive()

    # What else uvicorn calls.

    def _start_asgi_task(
        self, cycle: RequestResponseCycle, app: Any
    ) -> None:  # uvicorn types an application otherwise.
        self._answering = cycle
        if cycle.scope["http_version"] == "1.0":
            app = _without_chunks(app, cycle)
        app = _until_stopped(app, cycle)
        super()._start_asgi_task(cycle, app)

    # The rules.

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
        if names.count(b"host") > 1 or (version == "1.1" and b"host" not in names):
            raise Invalid("a request has exactly one Host header")
        if b"transfer-encoding" in names:
            encodings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
            if encodings != [b"chunked"] or version != "1.1" or b"content-length" in names:
                raise Invalid("the only Transfer-Encoding is chunked, in HTTP/1.1 and without a Content-Length")

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what is not a request, unless an earlier answer is under way; close the connection behind it."""
        self._is_refused = True
        newest = self.cycle
        if newest is not None and not newest.response_complete:
            if not newest.more_body:
                newest.keep_alive = False
                return
            if newest is not self._answering:
                # It waits behind others and has a broken body: the others are answered, and it is not.
                self.pipeline.popleft()
                assert self._answering is not None, "it waits behind one that is being answered"
                self.cycle = self.pipeline[0][0] if self.pipeline else self._answering
                self.cycle.keep_alive = False
                return
            _disconnect(newest)
        if newest is None or newest.response_complete or not newest.response_started:
            self.transport.write(_closing_answer(refusal, self.server_state.default_headers))
        self.transport.close()


class _PipelineFlow(FlowControl):
    """Reads no further request while one waits for its turn; otherwise a client could queue any number of them."""

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:  # Any: only whether it is empty.
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Go on reading, if no request waits."""
        if not self._pipeline:
            super().resume_reading()


def _disconnect(cycle: RequestResponseCycle) -> None:
    if not cycle.response_complete:
        cycle.disconnected = True
    cycle.message_event.set()


def _until_stopped(application: Application, cycle: RequestResponseCycle) -> Application:
    """A request that is cancelled because the server stops is no error, which uvicorn would log with a traceback."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await application(scope, receive, send)
        except asyncio.CancelledError:  # The top of its task: it ends here.
            _disconnect(cycle)

    return answer


def _without_chunks(application: Application, cycle: RequestResponseCycle) -> Application:
    """HTTP/1.0 has no chunks: an answer of unknown length ends with its connection."""

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
