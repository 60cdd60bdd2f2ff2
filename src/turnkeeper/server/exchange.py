"""Exchange: one request over HTTP/1.1 and its answer, between a connection and an ASGI application."""

import logging
import time
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Literal, Protocol, TypeAlias

import anyio

from turnkeeper.server.asgi import Application, Message, Scope

log = logging.getLogger(__name__)

BODY_BYTES_WAITING: Final = 64 * 1024
"""So much of a body is read before anybody asks for it."""

JOINED_BYTES_MAX: Final = 64 * 1024
"""A body up to this size is sent in one piece with the head: a second call of the system would cost as much as the rest
of a small answer. To join a longer one would be a copy."""

Framing: TypeAlias = Literal["none", "length", "chunks", "end"]
"""How a client knows where an answer ends: it has no body, says how long it is, comes in chunks, or with the end."""

DISCONNECTED: Final[Message] = {"type": "http.disconnect"}
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Line(Protocol):
    """The connection to the client who asks."""

    is_gone: bool

    def write(self, data: bytes) -> None:
        """Send bytes."""

    async def drained(self) -> None:
        """Wait until the client has read what was sent, but for a little."""

    def pause_reading(self) -> None:
        """Let the client wait with what it has to say."""

    def resume_reading(self) -> None:
        """Go on listening."""


class Exchange:
    """One request and what is answered."""

    def __init__(self, line: Line, scope: Scope, *, keeps: bool, expects: bool) -> None:
        self.keeps = keeps
        """Whether the connection serves another request after this one."""
        self.is_over = False
        self._line, self._scope, self._expects = line, scope, expects
        self._body, self._is_whole, self._is_read = bytearray(), False, False
        self._news: anyio.Event | None = None
        self._head: bytes | None = None
        self._framing: Framing | None = None

    async def run(self, application: Application) -> None:
        """Let the application answer; a connection whose answer stays a fragment is of no further use."""
        try:
            await application(self._scope, self._receive, self._send)
        except Exception:
            # The top of a request: a bug ends it and nothing else.
            log.exception("%s %s was not answered", self._scope["method"], self._scope["path"])
        if not self.is_over:
            self.is_over, self.keeps = True, False
            if self._framing is None:
                self._line.write(plain(HTTPStatus.INTERNAL_SERVER_ERROR))

    def feed(self, piece: bytes) -> None:
        """More of the body came."""
        if not self.is_over:
            self._body += piece
            if len(self._body) > BODY_BYTES_WAITING:
                self._line.pause_reading()
            self.wake()

    def end(self) -> None:
        """The body is whole."""
        self._is_whole = True
        self.wake()

    def wake(self) -> None:
        """Let who waits look again: more came, or nothing will."""
        if self._news is not None:
            self._news.set()
            self._news = None

    async def _receive(self) -> Message:
        if self._expects:
            self._expects = False
            self._line.write(CONTINUE)
        while not (self.is_over or self._line.is_gone):
            if not self._is_read and (self._body or self._is_whole):
                piece, self._is_read = bytes(self._body), self._is_whole
                self._body.clear()
                self._line.resume_reading()
                return {"type": "http.request", "body": piece, "more_body": not self._is_whole}
            self._news = self._news or anyio.Event()
            await self._news.wait()
        return DISCONNECTED

    async def _send(self, message: Message) -> None:
        if self.is_over or self._line.is_gone:
            return  # Nobody listens any more.
        if self._framing is None:
            self._begin(message)
            return
        more = message.get("more_body", False)
        self._write(self._framed(message.get("body", b""), more))
        if not more:
            self.is_over = True
            self.wake()
        await self._line.drained()

    def _begin(self, message: Message) -> None:
        status, headers = message["status"], message["headers"]
        names = {name for name, _ in headers}
        if self._scope["method"] == "HEAD" or status in (204, 304):
            self._framing = "none"
        elif b"content-length" in names:
            self._framing = "length"
        elif self._scope["http_version"] == "1.1":
            self._framing, headers = "chunks", [*headers, (b"transfer-encoding", b"chunked")]
        else:
            self._framing, self.keeps = "end", False
        if not self.keeps:
            headers = [*headers, (b"connection", b"close")]
        self._head, self._expects = _head(status, headers), False
        if self._framing in ("chunks", "end"):
            self._write(b"")  # A stream begins at once, whenever its first event may come.

    def _framed(self, body: bytes, more: bool) -> bytes:
        match self._framing:
            case "none":
                return b""
            case "chunks":
                chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
                return chunk if more else chunk + b"0\r\n\r\n"
            case _:
                return body

    def _write(self, data: bytes) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            if len(data) <= JOINED_BYTES_MAX:
                data = head + data
            else:
                self._line.write(head)
        if data:
            self._line.write(data)


def plain(status: HTTPStatus) -> bytes:
    """An answer without the application: that it cannot be asked, or has not answered."""
    body = status.phrase.encode()
    length, kind = str(len(body)).encode(), b"text/plain; charset=utf-8"
    return _head(status, [(b"content-type", kind), (b"content-length", length), (b"connection", b"close")]) + body


def _head(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    lines = [_first_line(status), b"date: " + _date(int(time.time()))]
    for name, value in headers:
        if b"\n" in value or b"\r" in value:
            raise ValueError(f"the header {name!r} has a line break in it")
        lines.append(name + b": " + value)
    return b"\r\n".join(lines) + b"\r\n\r\n"


@lru_cache(maxsize=64)
def _first_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(second)).encode()
