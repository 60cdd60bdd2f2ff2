"""ScriptedServer: plays scripts over HTTP on this machine, in all four wire protocols, with every fault.

    async with ScriptedServer(Script().says("hello")) as server:
        ...  # Requests to f"{server.url}/messages", "/chat/completions", "/responses", "/models/NAME:stream..."

Without a script the answers are directives in the prompts (directives.py). All answers are streamed, except those of
``/responses`` to a request that wants a whole one.
"""

import itertools
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from turnkeeper.model.value import Json
from turnkeeper.providers.script import (
    Cuts,
    Fails,
    Garbles,
    Hangs,
    Paces,
    Script,
    ScriptedAnswer,
    Waits,
    WireFault,
)
from turnkeeper.testing.directives import answer, asked
from turnkeeper.testing.voices import VOICES
from turnkeeper.testing.wire import ScriptedFrame, refusal, rendered, sse, whole_response

HEAD_BYTES_MAX: Final = 64 * 1024
PROTOCOLS: Final = {"/messages": "anthropic", "/chat/completions": "openai-chat", "/responses": "openai-responses"}
GARBAGE: Final = b'data: {"broken": [{"delta": {"cont\n\n'


@dataclass
class Received:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    body: Mapping[str, Json]
    protocol: str
    gone: anyio.Event = field(default_factory=anyio.Event)
    """Set when the answer has ended, or the client has disconnected."""


class ScriptedServer:
    """A provider on a port of this machine."""

    def __init__(
        self, script: Script | None = None, *, pause: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        self.requests: list[Received] = []
        self.url = ""
        """The base URL, with the version."""
        self._script = script
        self._pause = pause
        self._seen: dict[str, int] = {}
        self._call_ids = (f"call_{number}" for number in itertools.count(1))
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        self.url = f"http://127.0.0.1:{port}/v1"
        await self._stack.enter_async_context(listener)
        group = await self._stack.enter_async_context(anyio.create_task_group())
        group.start_soon(listener.serve, self._serve)
        self._stack.callback(group.cancel_scope.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if isinstance(error, Exception):
            # Not passed to the task group, which would wrap the failure of a test in a group.
            await self._stack.aclose()
            return None
        return await self._stack.__aexit__(kind, error, trace)

    async def _serve(self, connection: anyio.abc.SocketStream) -> None:
        """Answer the requests of a connection until it is closed."""
        async with connection:
            reader = BufferedByteReceiveStream(connection)
            try:
                while (received := await self._receive(reader)) is not None:
                    try:
                        if not await self._answer(received, connection):
                            return
                    finally:
                        received.gone.set()
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                return  # The client has disconnected.

    async def _receive(self, reader: BufferedByteReceiveStream) -> Received | None:
        try:
            head = await reader.receive_until(b"\r\n\r\n", HEAD_BYTES_MAX)
        except (anyio.IncompleteRead, anyio.EndOfStream):
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.receive_exactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ", 2)
        place = path.partition("?")[0]
        gemini = "gemini" if ":streamGenerateContent" in place else ""
        protocol = next((name for end, name in PROTOCOLS.items() if place.endswith(end)), gemini)
        try:
            body = msgspec.json.decode(content, type=dict[str, object]) if content else {}
        except msgspec.DecodeError:
            body, protocol = {}, ""
        received = Received(method, path, headers, body, protocol)
        self.requests.append(received)
        return received

    async def _answer(self, received: Received, connection: anyio.abc.SocketStream) -> bool:
        """Answer a request; False if the connection must be closed."""
        if not received.protocol or received.method != "POST":
            await connection.send(_response(404, {}, b'{"error":{"message":"there is nothing here"}}'))
            return True
        played = self._chosen(received)
        first = next((act for act in played.acts if not isinstance(act, Waits | Paces)), None)
        if isinstance(first, Fails):
            for act in played.acts:
                if isinstance(act, Waits):
                    await act.gate.pass_through()
            refused = refusal(first.failure, received.protocol)
            await connection.send(_response(refused.status, refused.headers, refused.body))
            return True
        number = len(self.requests)
        voice = VOICES[received.protocol](str(received.body.get("model", "scripted")), number, played.usage)
        frames = rendered(played, voice, self._call_ids)
        if received.protocol == "openai-responses" and not received.body.get("stream"):
            await connection.send(_response(200, {}, whole_response(frames)))
            return True
        await connection.send(_stream_head(number))
        return await self._stream(frames, connection)

    def _chosen(self, received: Received) -> ScriptedAnswer:
        request = asked(received.body, received.protocol)
        if self._script is None:
            return answer(request, self._seen)
        return self._script.take(is_title=not request.tools and "title" in request.system.lower())

    async def _stream(self, frames: Iterator[ScriptedFrame], connection: anyio.abc.SocketStream) -> bool:
        """Send the frames, and perform the pauses and faults between them."""
        pause_s = 0.0
        for frame in frames:
            match frame:
                case bytes():
                    if pause_s:
                        await self._pause(pause_s)
                    await connection.send(_chunk(frame))
                case Waits(gate=gate):
                    await gate.pass_through()
                case Paces(seconds=pause_s):
                    pass
                case Hangs():
                    await connection.receive()  # Waits until the client disconnects.
                    return False
                case Cuts():
                    await _cut(connection)
                    return False
                case Garbles(fault=fault):
                    return await _garbled(fault, frames, connection)
        await connection.send(b"0\r\n\r\n")
        return True


async def _cut(connection: anyio.abc.SocketStream) -> None:
    """Send an incomplete chunk and reset the connection."""
    await connection.send(b"40\r\ndata: {")
    raw = connection.extra(anyio.abc.SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


async def _garbled(fault: WireFault, frames: Iterator[ScriptedFrame], connection: anyio.abc.SocketStream) -> bool:
    rest = [frame for frame in frames if isinstance(frame, bytes)]
    sent = {
        "garbage": [GARBAGE, sse(b"[DONE]")],
        "truncated": [],
        "scrambled": [*reversed(rest[:-1]), *rest[-1:]],  # The end stays last, because clients stop there.
        "duplicated": [frame for frame in rest for _ in range(2)],
    }[fault]
    for frame in sent:
        await connection.send(_chunk(frame))
    await connection.send(b"0\r\n\r\n")
    return True


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def _stream_head(number: int) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
        b"request-id: req_%d\r\nx-request-id: req_%d\r\ntransfer-encoding: chunked\r\n\r\n" % (number, number)
    )


def _response(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    own = {"content-type": "application/json", **headers, "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in own.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode() + body
