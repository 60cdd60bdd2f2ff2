"""A server and its client, over both ways that lead from one to the other; and lines that break."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from served import Served, served

from turnkeeper.client import Client
from turnkeeper.providers.provider import Provider
from turnkeeper.server import serving
from turnkeeper.server.service import ServerOptions

WAYS = ("memory", "http")


class Pair(NamedTuple):
    """A server, a client of it, and where it can be called (nowhere, in memory)."""

    client: Client
    server: Served
    url: str


@asynccontextmanager
async def pair(
    way: str,
    directory: Path,
    provider: Provider | None = None,
    *,
    options: ServerOptions | None = None,
    username: str | None = None,
    password: str | None = None,
    **given: Any,
) -> AsyncIterator[Pair]:
    """Both, connected in one of the ways."""
    async with served(directory, provider, options=options, **given) as server:
        if way == "memory":
            made = Client.in_memory(server.app, username=username, password=password)
            async with made as client:
                yield Pair(client, server, "")
            return
        bound = serving.listen("127.0.0.1", 0)
        url = serving.address(bound)
        async with (
            serving.serving(server.service, bound),
            Client(url, username=username, password=password) as client,
        ):
            yield Pair(client, server, url)


class Cutting(httpx2.AsyncBaseTransport):
    """A line on which streams break: each after as many events as it is told, until told no more."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, after: Callable[[int], int | None]) -> None:
        self._inner, self._after = inner, after
        self.streams = 0
        """How many streams were opened."""

    async def __aenter__(self) -> "Cutting":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._inner.handle_async_request(request)
        if answer.headers.get("content-type") != "text/event-stream":
            return answer
        self.streams += 1
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        cut = _Cut(answer.stream, self._after(self.streams))
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=cut)


class _Cut(httpx2.AsyncByteStream):
    """Breaks behind so many events, in the middle of the next one if it is there."""

    def __init__(self, inner: httpx2.AsyncByteStream, after: int | None) -> None:
        self._inner, self._left = inner, after

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            if self._left is None:
                yield piece
                continue
            *whole, rest = piece.split(b"\n\n")
            kept = whole[: self._left]
            self._left -= len(kept)
            yield b"".join(one + b"\n\n" for one in kept)
            if self._left <= 0:
                yield (whole[len(kept) :] or [rest])[0][:7]
                raise httpx2.ReadError("the line was cut")

    async def aclose(self) -> None:
        await self._inner.aclose()


async def no_pause(seconds: float) -> None:
    """Time is not what is tested."""
