"""A client of an event stream: calls the application by hand, for in-memory clients read no stream as it comes."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import anyio

from turnkeeper.server import routes
from turnkeeper.server.app import App
from turnkeeper.server.asgi import Application, AsgiMessage
from turnkeeper.server.service import Service


@dataclass
class Event:
    """One frame that was heard: its JSON, and its id if it had one."""

    data: Any
    id: str | None = None

    @property
    def payload(self) -> Any:
        """The event itself, whatever it came wrapped in."""
        return self.data.get("payload", self.data)

    @property
    def type(self) -> str:
        return str(self.payload["type"])

    @property
    def said(self) -> Any:
        """Its properties, or its data."""
        return self.payload.get("properties", self.payload.get("data"))


@dataclass
class Heard:
    """What was heard on one stream so far."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""
    chunks: int = 0
    is_over: bool = False
    """Whether the application is done with it."""
    is_complete: bool = False
    """Whether the answer had an end."""
    stall: anyio.Event | None = None
    """Reads nothing more until this is set."""
    _news: anyio.Event = field(default_factory=anyio.Event)
    _gone: anyio.Event = field(default_factory=anyio.Event)

    @property
    def events(self) -> list[Event]:
        """Every whole frame but comments."""
        found = []
        for frame in self.raw.split(b"\n\n")[:-1]:
            lines = [line for line in frame.decode().split("\n") if line and not line.startswith(":")]
            fields = dict(line.split(": ", 1) for line in lines)
            if "data" in fields:
                found.append(Event(json.loads(fields["data"]), fields.get("id")))
        return found

    @property
    def types(self) -> list[str]:
        return [one.type for one in self.events]

    async def until(self, is_enough: Callable[["Heard"], bool]) -> "Heard":
        """Wait until something was heard."""
        while not is_enough(self):
            assert not self.is_over, f"the stream ended with {self.types[-5:]}"
            await self._news.wait()
        return self

    async def until_count(self, events: int) -> "Heard":
        return await self.until(lambda heard: len(heard.events) >= events)

    async def until_type(self, kind: str, times: int = 1) -> "Heard":
        return await self.until(lambda heard: heard.types.count(kind) >= times)

    def hang_up(self) -> None:
        """Close the connection."""
        self._gone.set()

    async def receive(self) -> AsgiMessage:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: AsgiMessage) -> None:
        if self.stall is not None:
            await self.stall.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.raw += message["body"]
            self.chunks += 1
            self.is_complete = not message.get("more_body", False)
        self.tell()

    def tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


@asynccontextmanager
async def listening(
    service: Service | Application, address: str, headers: Mapping[str, str] | None = None, **given: Any
) -> AsyncIterator[Heard]:
    """Listen to a stream; leaving the block hangs up and waits until the application is done."""
    app = App(service, routes.load) if isinstance(service, Service) else service
    parts = urlsplit(address)
    named = {"host": "127.0.0.1:4096", **(headers or {})}
    scope = {
        "type": "http",
        "method": "GET",
        "path": parts.path,
        "query_string": parts.query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
    }
    heard = Heard(**given)

    async def run() -> None:
        await app(scope, heard.receive, heard.send)
        heard.is_over = True
        heard.tell()

    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        try:
            if heard.stall is None:
                await heard.until(lambda one: bool(one.status))
            yield heard
        except Exception as error:
            failure = error  # Raised again outside: the group would wrap it.
        heard.hang_up()
    if failure is not None:
        raise failure
