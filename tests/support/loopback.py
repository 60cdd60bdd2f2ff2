"""A tiny HTTP server on loopback that answers with the bytes a test gives it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketAttribute, SocketStream

Answer = Callable[[SocketStream], Awaitable[None]]
WAIT_S = 120


@dataclass
class Request:
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Where it listens, and what came in."""

    url: str
    requests: list[Request] = field(default_factory=list)
    closed: anyio.Event = field(default_factory=anyio.Event)
    """Set when a client has closed a connection while its answer was under way."""
    connections: int = 0

    async def until_closed(self) -> None:
        """Wait until the client has closed its connection. On a busy machine it may have given up before it had one."""
        with anyio.fail_after(WAIT_S):
            if self.connections:
                await self.closed.wait()


@asynccontextmanager
async def accepting(handle: Answer) -> AsyncIterator[str]:
    """A server that leaves each connection to ``handle`` before anything was read; gives its address."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def connected(stream: SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await handle(stream)

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, connected)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/v1"
        group.cancel_scope.cancel()


@asynccontextmanager
async def serving(answer: Answer, *, port: int = 0) -> AsyncIterator[Server]:
    """A server that lets ``answer`` write to each connection that sent a request."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    server = Server(f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/v1")

    async def handle(stream: SocketStream) -> None:
        async with stream:
            server.connections += 1
            try:
                while True:
                    server.requests.append(await read_request(stream))
                    await answer(stream)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                server.closed.set()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield server
        group.cancel_scope.cancel()


async def read_request(stream: SocketStream) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = dict(_header(row) for row in rest)
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    return Request(line, headers, body)


def _header(row: str) -> tuple[str, str]:
    name, _, value = row.partition(": ")
    return name.lower(), value


def head(status: str = "200 OK", kind: str = "text/event-stream", **headers: str) -> bytes:
    rows = {
        "content-type": kind,
        "transfer-encoding": "chunked",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return "".join([f"HTTP/1.1 {status}\r\n", *(f"{k}: {v}\r\n" for k, v in rows.items()), "\r\n"]).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"0\r\n\r\n"


def whole(data: bytes, status: str = "200 OK", kind: str = "text/event-stream", **headers: str) -> Answer:
    """Answers with these bytes, all at once."""

    async def answer(stream: SocketStream) -> None:
        await stream.send(head(status, kind, **headers) + (chunk(data) if data else b"") + END)

    return answer


def stalling(*pieces: bytes) -> Answer:
    """Sends these bytes as they are, then nothing until the client goes."""

    async def answer(stream: SocketStream) -> None:
        for piece in pieces:
            await stream.send(piece)
        await stream.receive()

    return answer


def cutting(*pieces: bytes) -> Answer:
    """Sends these bytes as they are, then closes the connection."""

    async def answer(stream: SocketStream) -> None:
        for piece in pieces:
            await stream.send(piece)
        await stream.aclose()
        raise anyio.EndOfStream

    return answer
