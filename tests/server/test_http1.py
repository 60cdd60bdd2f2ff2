"""HTTP/1.1 as bytes on a connection: order, framing, and what is no request."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest
from served import DEADLINE_S

from turnkeeper.server import http1, serving
from turnkeeper.server.asgi import Message, Receive, Scope, Send
from turnkeeper.server.exchange import JOINED_BYTES_MAX

DROP = bytes(64 * 1024)
FLOOD = 400
"""So many drops are more than all buffers on the way hold."""


class Echo:
    """Says what it was asked; a few paths do something else."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.heard: list[Message] = []
        self.sent = 0
        self.gate, self.reached = anyio.Event(), anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        match scope["path"]:
            case "/breaks":
                raise RuntimeError("as it was asked to")
            case "/half":
                await send(_start((b"content-length", b"10")))
                await send({"type": "http.response.body", "body": b"half", "more_body": True})
            case "/stream":
                await self._stream(receive, send)
            case "/waits":
                self.reached.set()
                await self.gate.wait()
                await _answer(send, b"waited")
            case "/split":
                await send(_start((b"x-split", b"one\r\ntwo: three")))
            case "/flood":
                await send(_start((b"content-length", str(FLOOD * len(DROP)).encode())))
                for _ in range(FLOOD):
                    self.sent += 1
                    await send({"type": "http.response.body", "body": DROP, "more_body": True})
                await send({"type": "http.response.body"})
            case "/large":
                await _answer(send, bytes(JOINED_BYTES_MAX + 1))
            case "/nothing":
                await send({"type": "http.response.start", "status": 204, "headers": []})
                await send({"type": "http.response.body"})
            case _:
                await self._echo(scope, receive, send)

    async def _echo(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.heard.append(message)
                self.reached.set()
                return
            body, more = body + message["body"], message["more_body"]
        await _answer(send, f"{scope['method']} {scope['path']} {scope['query_string'].decode()} ".encode() + body)
        self.heard.append(await receive())

    async def _stream(self, receive: Receive, send: Send) -> None:
        await send(_start())
        self.reached.set()
        await self.gate.wait()
        for piece in (b"one", b"", b"two"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


def _start(*headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": 200, "headers": list(headers)}


async def _answer(send: Send, body: bytes) -> None:
    await send(_start((b"content-length", str(len(body)).encode())))
    await send({"type": "http.response.body", "body": body})


class Caller:
    """A client that speaks bytes."""

    def __init__(self, stream: anyio.abc.SocketStream, app: Echo, site: http1.Site) -> None:
        self.stream, self.app, self.site = stream, app, site
        self._left = b""

    async def says(self, *lines: bytes, body: bytes = b"") -> None:
        await self.stream.send(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    async def head(self) -> tuple[bytes, dict[bytes, bytes]]:
        while b"\r\n\r\n" not in self._left:
            self._left += await self.stream.receive()
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        return first, dict(line.split(b": ", 1) for line in lines)

    async def exactly(self, size: int) -> bytes:
        pieces, missing = [self._left], size - len(self._left)
        while missing > 0:
            pieces.append(await self.stream.receive(1 << 20))
            missing -= len(pieces[-1])
        whole = b"".join(pieces)
        self._left = whole[size:]
        return whole[:size]

    async def hears(self) -> bytes:
        """The body of the next answer that says how long it is."""
        _, headers = await self.head()
        return await self.exactly(int(headers[b"content-length"]))

    async def rest(self) -> bytes:
        """All that comes until the connection is closed."""
        while True:
            try:
                self._left += await self.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return self._left


@asynccontextmanager
async def called(keep_alive_s: float = http1.KEEP_ALIVE_S) -> AsyncIterator[Caller]:
    """A site, and a client that has called."""
    app = Echo()
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            site = http1.Site(app, keep_alive_s)
            bound = serving.listen("127.0.0.1", 0)
            port = bound.getsockname()[1]
            group.start_soon(site.serve, bound)
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                yield Caller(stream, app, site)
            await site.close(DEADLINE_S)


async def test_requests_of_one_connection_are_answered_one_after_the_other() -> None:
    async with called() as caller:
        for number in range(3):
            await caller.says(b"GET /%d?a=b HTTP/1.1" % number, b"host: here")
            assert await caller.hears() == b"GET /%d a=b " % number
    assert [one["type"] for one in caller.app.heard] == ["http.disconnect"] * 3


async def test_requests_that_do_not_wait_are_answered_in_their_order() -> None:
    async with called() as caller:
        await caller.stream.send(b"".join(b"GET /%d HTTP/1.1\r\nhost: here\r\n\r\n" % number for number in range(5)))
        assert [await caller.hears() for _ in range(5)] == [b"GET /%d  " % number for number in range(5)]


@pytest.mark.parametrize("size", [0, 1, 70_000, 1_000_000])
async def test_a_body_is_read_whole_however_it_comes(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with called() as caller:
        await caller.says(b"POST /up HTTP/1.1", b"host: here", b"content-length: %d" % size, body=body)
        assert await caller.hears() == b"POST /up  " + body
        await caller.says(b"POST /up HTTP/1.1", b"host: here", b"transfer-encoding: chunked")
        for start in range(0, size, 5000):
            piece = body[start : start + 5000]
            await caller.stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        await caller.stream.send(b"0\r\n\r\n")
        assert await caller.hears() == b"POST /up  " + body


async def test_who_asks_whether_to_go_on_is_told_to_when_the_body_is_wanted() -> None:
    async with called() as caller:
        await caller.says(b"POST /up HTTP/1.1", b"host: here", b"expect: 100-continue", b"content-length: 2")
        assert (await caller.head())[0] == b"HTTP/1.1 100 Continue"
        await caller.stream.send(b"ok")
        assert await caller.hears() == b"POST /up  ok"


async def test_a_path_is_read_as_it_was_meant() -> None:
    async with called() as caller:
        await caller.says(b"GET /a%20b/%C3%A9?q=%20 HTTP/1.1", b"Host: Here", b"X-Thing: One")
        assert await caller.hears() == "GET /a b/é q=%20 ".encode()
        [scope] = caller.app.scopes
        assert scope["headers"] == [(b"host", b"Here"), (b"x-thing", b"One")]
        assert scope["client"][0] == scope["server"][0] == "127.0.0.1"


async def test_answers_without_a_body_have_none() -> None:
    async with called() as caller:
        await caller.says(b"HEAD /x HTTP/1.1", b"host: here")
        first, headers = await caller.head()
        assert (first, headers[b"content-length"]) == (b"HTTP/1.1 200 OK", b"9")
        await caller.says(b"GET /nothing HTTP/1.1", b"host: here")
        assert (await caller.head())[0] == b"HTTP/1.1 204 No Content"
        await caller.says(b"GET /x HTTP/1.1", b"host: here")
        assert await caller.hears() == b"GET /x  "


async def test_a_stream_begins_at_once_and_comes_in_chunks() -> None:
    async with called() as caller:
        await caller.says(b"GET /stream HTTP/1.1", b"host: here")
        _, headers = await caller.head()
        assert headers[b"transfer-encoding"] == b"chunked"
        caller.app.gate.set()
        assert await caller.exactly(21) == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


async def test_an_old_client_gets_a_stream_that_ends_with_its_connection() -> None:
    async with called() as caller:
        caller.app.gate.set()
        await caller.says(b"GET /stream HTTP/1.0")
        _, headers = await caller.head()
        assert headers[b"connection"] == b"close"
        assert b"transfer-encoding" not in headers
        assert await caller.rest() == b"onetwo"


@pytest.mark.parametrize("asked", [b"connection: close", b"connection: upgrade\r\nupgrade: websocket"])
async def test_a_connection_that_serves_no_further_request_is_closed(asked: bytes) -> None:
    async with called() as caller:
        await caller.says(b"GET /x HTTP/1.1", b"host: here", asked)
        first, headers = await caller.head()
        assert (first, headers[b"connection"]) == (b"HTTP/1.1 200 OK", b"close")
        assert await caller.rest() == b"GET /x  "


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET /x HTTP/1.1\r\nhost here\r\n\r\n",
        b"GET /" + b"x" * http1.HEAD_BYTES_MAX + b" HTTP/1.1\r\n\r\n",
        b"GET /x HTTP/1.1\r\n" + b"a: b\r\n" * http1.HEAD_BYTES_MAX + b"\r\n",
        b"POST /x HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
    ids=["nonsense", "no ASCII", "no header", "a long address", "a long head", "two lengths"],
)
async def test_what_is_no_request_is_refused_and_the_connection_closed(sent: bytes) -> None:
    async with called() as caller:
        await caller.stream.send(sent)
        answer = await caller.rest()
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert caller.app.scopes == []


async def test_nonsense_behind_a_request_lets_its_answer_be_whole() -> None:
    async with called() as caller:
        await caller.stream.send(b"GET /waits HTTP/1.1\r\nhost: here\r\n\r\nnonsense\r\n\r\n")
        await caller.app.reached.wait()
        caller.app.gate.set()
        assert await caller.hears() == b"waited"
        assert await caller.rest() == b""


async def test_a_bug_is_said_and_half_an_answer_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async with called() as caller:
        await caller.says(b"GET /breaks HTTP/1.1", b"host: here")
        assert (await caller.rest()).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    async with called() as caller:
        await caller.says(b"GET /half HTTP/1.1", b"host: here")
        assert (await caller.rest()).endswith(b"\r\n\r\nhalf")
    async with called() as caller:
        await caller.says(b"GET /split HTTP/1.1", b"host: here")
        assert b"three" not in await caller.rest()
    assert "as it was asked to" in caplog.text
    assert "line break" in caplog.text


async def test_a_long_body_comes_whole() -> None:
    async with called() as caller:
        await caller.says(b"GET /large HTTP/1.1", b"host: here")
        assert await caller.hears() == bytes(JOINED_BYTES_MAX + 1)


async def test_whoever_waits_for_a_client_that_has_gone_is_told() -> None:
    async with called() as caller:
        await caller.says(b"POST /up HTTP/1.1", b"host: here", b"content-length: 5", body=b"hal")
        await caller.stream.aclose()
        await caller.app.reached.wait()
        assert [one["type"] for one in caller.app.heard] == ["http.disconnect"]


async def test_a_client_that_does_not_read_is_waited_for() -> None:
    async with called() as caller:
        await caller.says(b"GET /flood HTTP/1.1", b"host: here")
        await caller.head()
        await anyio.wait_all_tasks_blocked()
        assert 0 < caller.app.sent < FLOOD
        assert await caller.exactly(FLOOD * len(DROP)) == DROP * FLOOD
        assert caller.app.sent == FLOOD


async def test_a_site_that_closes_answers_who_asked_and_takes_nobody_else() -> None:
    async with called() as caller, anyio.create_task_group() as group:
        await caller.says(b"GET /waits HTTP/1.1", b"host: here")
        await caller.app.reached.wait()
        port = caller.stream.extra(anyio.abc.SocketAttribute.remote_port)
        group.start_soon(caller.site.close, DEADLINE_S)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(OSError):
            await anyio.connect_tcp("127.0.0.1", port)
        caller.app.gate.set()
        assert await caller.hears() == b"waited"
        assert await caller.rest() == b""


async def test_patience_with_a_client_has_an_end() -> None:
    async with called() as caller:
        await caller.says(b"GET /waits HTTP/1.1", b"host: here")
        await caller.app.reached.wait()
        await caller.site.close(0)
        assert await caller.rest() == b""
        caller.app.gate.set()


def test_small_packets_are_sent_at_once() -> None:
    bound = serving.listen("127.0.0.1", 0)
    with bound:
        assert bound.proto == socket.IPPROTO_TCP


async def test_a_connection_that_rests_is_closed_and_one_that_waits_for_its_answer_is_not() -> None:
    async with called(keep_alive_s=0.5) as caller:
        await caller.says(b"GET /waits HTTP/1.1", b"host: here")
        await caller.app.reached.wait()
        async with await anyio.connect_tcp(
            "127.0.0.1", caller.stream.extra(anyio.abc.SocketAttribute.remote_port)
        ) as other:
            with pytest.raises(anyio.EndOfStream):
                await other.receive()
        caller.app.gate.set()
        assert await caller.hears() == b"waited"
        with pytest.raises(anyio.EndOfStream):
            await caller.stream.receive()
