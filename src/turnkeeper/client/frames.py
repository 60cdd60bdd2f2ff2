"""Frames: an event stream that reconnects by itself, and resumes after the last frame it received."""

from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx2

from turnkeeper.client.connection import CONNECTION_ERRORS, TRIES_MAX, Query, ServerConnection

FRAME_BYTES_MAX = 64 * 1024 * 1024
"""The largest frame that is accepted: an image in a prompt takes some MiB."""


class SseFrame(NamedTuple):
    """A frame: its data, and its id if it has one."""

    data: bytes
    id: str | None = None


class Frames:
    """One stream, frame by frame. ``lost`` counts how often the connection was lost."""

    def __init__(
        self, connection: ServerConnection, path: str, query: Query, *, silence_s: float, last: str | None = None
    ) -> None:
        self._connection, self._path, self._query, self._silence_s = connection, path, query, silence_s
        self.last = last
        """The id of the last frame that was received."""
        self.lost = 0
        self._tries = 0
        self._answer: httpx2.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None
        self._reader = _Reader()
        self._ready: deque[SseFrame] = deque()

    @property
    def is_lost(self) -> bool:
        """Whether the stream is disconnected now."""
        return self._tries > 0

    async def open(self) -> None:
        """Connect. Raises Unreachable, or the refusal of the server."""
        try:
            await self._connect()
        except CONNECTION_ERRORS as error:
            raise self._connection.unreachable(error) from error

    async def next(self) -> SseFrame:
        """The next frame, after reconnecting if needed. Raises Unreachable when the retries are used up."""
        while not self._ready:
            try:
                if self._pieces is None:
                    await self._connect()
                assert self._pieces is not None
                self._ready.extend(self._reader.feed(await anext(self._pieces)))
            except (StopAsyncIteration, *CONNECTION_ERRORS) as error:
                await self._lose(error)
        self._tries = 0
        self._connection.retried.discard(self)
        frame = self._ready.popleft()
        self.last = frame.id or self.last
        return frame

    async def aclose(self) -> None:
        """Close the connection."""
        if self._answer is not None:
            await self._answer.aclose()
        self._answer = self._pieces = None
        self._connection.retried.discard(self)

    async def _connect(self) -> None:
        said = {"last-event-id": self.last} if self.last is not None else {}
        self._answer = await self._connection.stream(self._path, self._query, said, self._silence_s)
        self._pieces, self._reader = self._answer.aiter_bytes(), _Reader()

    async def _lose(self, error: Exception) -> None:
        await self.aclose()
        self.lost += 1
        self._tries += 1
        if self._tries > TRIES_MAX:
            raise self._connection.unreachable(error) from error
        self._connection.retried.add(self)
        await self._connection.pause(self._tries)


class _Reader:
    """An incremental parser of server-sent events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[SseFrame]:
        """The frames that this chunk completes. Turnkeeper's servers end lines with a newline only."""
        *whole, self._rest = (self._rest + chunk).split(b"\n\n")
        if len(self._rest) > FRAME_BYTES_MAX:
            raise httpx2.RemoteProtocolError(f"a frame of the stream is larger than {FRAME_BYTES_MAX} bytes")
        return [frame for frame in map(_frame, whole) if frame is not None]


def _frame(lines: bytes) -> SseFrame | None:
    data, name = b"", None
    for line in lines.split(b"\n"):
        if line.startswith(b"data: "):
            data = line[6:]
        elif line.startswith(b"id: "):
            name = line[4:].decode()
    return SseFrame(data, name) if data else None
