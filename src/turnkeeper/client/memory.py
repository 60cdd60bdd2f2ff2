"""InMemory: a transport that calls an ASGI application without a socket and streams its response.

httpx2's own transport for applications returns a response only when it is complete, which an event stream never is.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, TypeAlias

import anyio
import httpx2
from anyio.abc import TaskGroup

AsgiMessage: TypeAlias = MutableMapping[str, Any]  # As in ASGI: each kind of message has its own fields.
Application: TypeAlias = Callable[
    [AsgiMessage, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]
]

ADDRESS = "http://localhost"
"""The URL under which the application is called. A server on a loopback address accepts only local host names."""


class InMemory(httpx2.AsyncBaseTransport):
    """Calls an application, in a task group that is open while the transport is."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._group: TaskGroup | None = None

    async def __aenter__(self) -> "InMemory":
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        assert self._group is not None
        self._group.cancel_scope.cancel()
        await self._group.__aexit__(exc_type, exc_value, traceback)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, as soon as its head is sent."""
        assert self._group is not None, "enter the client first"
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        exchange = _Exchange(b"".join([piece async for piece in request.stream]))
        self._group.start_soon(exchange.run, self._app, _scope(request))
        try:
            await exchange.begun.wait()
            if exchange.failure is not None and not exchange.status:
                raise exchange.failure
        except BaseException:
            exchange.disconnect()
            raise
        return httpx2.Response(exchange.status, headers=exchange.headers, stream=exchange)


class _Exchange(httpx2.AsyncByteStream):
    """A request and its response. The application waits while the response is not read, as with a full socket."""

    def __init__(self, body: bytes) -> None:
        self.begun = anyio.Event()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.failure: Exception | None = None
        self._body: bytes | None = body
        self._gone = anyio.Event()
        self._written, self._read = anyio.create_memory_object_stream[bytes](1)

    async def run(self, app: Application, scope: AsgiMessage) -> None:
        """Call the application."""
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:  # Any exception of the application is raised again to the reader of the response.
            self.failure = error
        finally:
            self._written.close()
            self.begun.set()

    async def _receive(self) -> AsgiMessage:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
            self.begun.set()
        elif message.get("body"):
            try:
                await self._written.send(message["body"])
            except anyio.BrokenResourceError:
                return  # The reader has gone; the application learns it from ``receive``.
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._written.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._read:
            yield piece
        if self.failure is not None:
            raise self.failure

    async def aclose(self) -> None:
        """Disconnect."""
        self.disconnect()

    def disconnect(self) -> None:
        """Send ``http.disconnect`` to the application."""
        self._gone.set()
        self._read.close()


def _scope(request: httpx2.Request) -> AsgiMessage:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }
