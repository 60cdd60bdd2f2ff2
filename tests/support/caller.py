"""A client that sends and reads bytes, and a server with an application that does what its path says."""

import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import msgspec
from served import DEADLINE_S

from turnkeeper.server import serving
from turnkeeper.server.asgi import ABORT, AsgiMessage, Receive, Scope, Send
from turnkeeper.server.connection import ConnectionLimits
from turnkeeper.server.http_server import HttpServer

CHUNK = bytes(64 * 1024)
FLOOD = 400
"""So many chunks are more than all buffers on the way hold."""

TICK_S = 0.02


class Echo:
    """Answers with what it was asked; a few paths do something else."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.heard: list[AsgiMessage] = []
        self.sent = self.ended = 0
        self.gate, self.reached, self.disconnected = anyio.Event(), anyio.Event(), anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        try:
            await self._answer(scope, receive, send)
        finally:
            self.ended += 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
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
                await _whole(send, b"waited")
            case "/hangs":
                self.reached.set()
                await anyio.sleep_forever()
            case "/split-value":
                await send(_start((b"x-split", b"one\r\ntwo: three")))
            case "/split-name":
                await send(_start((b"x-split: one\r\ntwo", b"three")))
            case "/flood":
                await send(_start((b"content-length", str(FLOOD * len(CHUNK)).encode())))
                for _ in range(FLOOD):
                    self.sent += 1
                    await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
                await send({"type": "http.response.body"})
            case "/large":
                await _whole(send, CHUNK * FLOOD)
            case "/aborts":
                await send(_start())
                await send({"type": "http.response.body", "body": CHUNK * FLOOD, "more_body": True})
                self.reached.set()
                await self.gate.wait()
                scope["extensions"][ABORT]()
            case "/nothing":
                await send({"type": "http.response.start", "status": 204, "headers": []})
                await send({"type": "http.response.body"})
            case "/early":
                await _whole(send, b"early")
            case _:
                await self._echo(scope, receive, send)

    async def _echo(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.heard.append(message)
                self.disconnected.set()
                return
            body, more = body + message["body"], message["more_body"]
        await _whole(send, f"{scope['method']} {scope['path']} {scope['query_string'].decode()} ".encode() + body)
        self.heard.append(await receive())

    async def _stream(self, receive: Receive, send: Send) -> None:
        await send(_start())
        self.reached.set()

        async def until_disconnected() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.disconnected.set()
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(until_disconnected)
            await self.gate.wait()
            for piece in (b"one", b"", b"two"):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})
            group.cancel_scope.cancel()


def _start(*headers: tuple[bytes, bytes]) -> AsgiMessage:
    return {"type": "http.response.start", "status": 200, "headers": list(headers)}


async def _whole(send: Send, body: bytes) -> None:
    await send(_start((b"content-length", str(len(body)).encode())))
    await send({"type": "http.response.body", "body": body})


@dataclass
class Caller:
    """A client that speaks bytes."""

    port: int
    stream: anyio.abc.SocketStream
    _left: bytes = b""

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

    async def refused(self) -> tuple[bytes, str]:
        """The status and the message of an answer in our error shape, after which the connection is closed."""
        first, headers = await self.head()
        assert (headers[b"content-type"], headers[b"connection"]) == (b"application/json", b"close")
        body = await self.exactly(int(headers[b"content-length"]))
        assert await self.rest() == b""
        return first, msgspec.json.decode(body)["data"]["message"]

    async def rest(self) -> bytes:
        """All that comes until the connection is closed."""
        pieces = [self._left]
        while True:
            try:
                pieces.append(await self.stream.receive(1 << 20))
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return b"".join(pieces)

    async def drips(self, piece: bytes, bytes_max: int = 1 << 30) -> int:
        """Send a piece after the other until the server closes the connection; how many bytes it took."""
        taken = 0
        try:
            while taken < bytes_max:
                await self.stream.send(piece)
                taken += len(piece)
                await anyio.wait_all_tasks_blocked()
        except anyio.BrokenResourceError:
            return taken
        raise AssertionError(f"the server took {taken} bytes and stayed connected")

    async def resets(self) -> None:
        """Close the connection with a reset."""
        raw = self.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.stream.aclose()


@dataclass
class Called:
    """A server, and clients of it."""

    server: HttpServer
    app: Echo
    port: int
    first: Caller
    _others: list[Caller] = field(default_factory=list)

    async def another(self) -> Caller:
        self._others.append(await call(self.port))
        return self._others[-1]

    @property
    def unsent(self) -> int:
        """Bytes of answers that wait in the server."""
        return sum(one.transport.get_write_buffer_size() for one in self.server.server_state.connections)

    async def works(self) -> None:
        """Another client is answered."""
        caller = await call(self.port)
        await caller.says(b"GET /works HTTP/1.1", b"host: here")
        assert await caller.hears() == b"GET /works  "
        await caller.stream.aclose()

    async def hang_up(self) -> None:
        for caller in (self.first, *self._others):
            await caller.stream.aclose()


async def call(port: int, *, receive_bytes: int | None = None) -> Caller:
    """Connect; with a small receive buffer, answers that are not read soon wait in the server."""
    stream = await anyio.connect_tcp("127.0.0.1", port)
    if receive_bytes is not None:
        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    return Caller(port, stream)


@asynccontextmanager
async def called(**limits: Any) -> AsyncIterator[Called]:
    """A server, and a client that has connected; leaving the scope closes both."""
    app = Echo()
    server = HttpServer(app, ConnectionLimits(**limits))
    with anyio.fail_after(DEADLINE_S):
        bound = serving.listen("127.0.0.1", 0)
        port = bound.getsockname()[1]
        await server.open(bound)
        async with anyio.create_task_group() as group:
            group.start_soon(server.watch, TICK_S)
            made = Called(server, app, port, await call(port))
            try:
                yield made
            finally:
                with anyio.CancelScope(shield=True):
                    await made.hang_up()
                    await server.close(DEADLINE_S)
                group.cancel_scope.cancel()


def descriptors() -> int:
    """How many files and sockets this process has open."""
    return len(os.listdir("/dev/fd"))


async def until_open(count: int) -> None:
    """Wait until this process has no more descriptors than this."""
    with anyio.fail_after(DEADLINE_S):
        while descriptors() > count:
            await anyio.sleep(0)


async def sent_until_blocked(stream: anyio.abc.SocketStream, data: bytes) -> None:
    """Send, without insisting that the server takes all of it."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stream.send(data)
