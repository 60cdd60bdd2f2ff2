"""Channel: subscribers with equal filters. Their frames are encoded and joined once for all of them."""

from collections import deque
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from turnkeeper.model.value import encode
from turnkeeper.server.streams import frame
from turnkeeper.server.streams.frame import OutgoingFrame
from turnkeeper.server.streams.subscriber import Subscriber
from turnkeeper.server.v2.framed import END

StreamFormat: TypeAlias = Literal["local", "global", "second"]
"""The format of a stream: of ``/event``, of ``/global/event`` or of ``/api/event``."""


class StreamFilter(msgspec.Struct, frozen=True):
    """Which frames a subscriber receives, and in which format. Subscribers with equal filters share a channel."""

    format: StreamFormat
    directory: str | None = None
    """Only events of this directory; None for all directories."""
    ids: str | None = None
    """The prefix of the frame ids; None for frames without ids."""


class Channel(msgspec.Struct, eq=False):
    """The subscribers of one filter."""

    filter: StreamFilter
    subscribers: set[Subscriber] = msgspec.field(default_factory=set)

    def send(self, frames: Iterable[OutgoingFrame]) -> None:
        """Send frames to all subscribers in one chunk."""
        chunk = self.chunk(frames)
        if chunk:
            for subscriber in list(self.subscribers):
                if not subscriber.offer(chunk):
                    self.subscribers.discard(subscriber)

    def chunk(self, frames: Iterable[OutgoingFrame]) -> bytes:
        """The bytes of those frames that pass the filter."""
        directory = self.filter.directory
        return b"".join([self._framed(one) for one in frames if directory in (None, one.one.directory)])

    def unnumbered(self, frames: Iterable[OutgoingFrame]) -> bytes:
        """The bytes of those frames that pass the filter, without id lines: a client cannot resume after them."""
        directory = self.filter.directory
        return b"".join([self._body(one) for one in frames if directory in (None, one.one.directory)])

    def plain(self, kind: str, id: str, properties: object) -> bytes:
        """An event of the server itself as a frame, without an id line."""
        if self.filter.format == "second":
            return b"data: " + frame.plain_second(kind, id, properties) + END
        return self._wrapped(frame.plain(kind, id, properties), "", None)

    def _framed(self, one: OutgoingFrame) -> bytes:
        body = self._body(one)
        return f"id: {self.filter.ids}{one.nth}\n".encode() + body if body and self.filter.ids is not None else body

    def _body(self, one: OutgoingFrame) -> bytes:
        if self.filter.format == "second":
            return b"data: " + one.second + END if one.second else b""
        return self._wrapped(one.first, one.one.directory, getattr(one.one, "project_id", None)) if one.first else b""

    def _wrapped(self, body: bytes, directory: str, project_id: str | None) -> bytes:
        if self.filter.format == "local":
            return b"data: " + body + END
        where = b'"directory":%b,' % encode(directory) if directory else b""
        if project_id is not None:
            where += b'"project":%b,' % encode(project_id)
        return b'data: {%b"payload":%b}\n\n' % (where, body)


class Recent:
    """A buffer of the newest frames for clients that reconnect, bounded by number and by size."""

    def __init__(self, frames_max: int = 4096, bytes_max: int = 8 * 1024 * 1024) -> None:
        self._frames: deque[OutgoingFrame] = deque()
        self._sizes: deque[int] = deque()
        self._frames_max, self._bytes_max, self._bytes = frames_max, bytes_max, 0
        self.begin = 0
        """The number of the last frame that was dropped."""

    def add(self, frames: Iterable[OutgoingFrame]) -> None:
        """Add frames, and drop the oldest while the buffer is too large."""
        for one in frames:
            self._frames.append(one)
            self._sizes.append(len(one.first))
            self._bytes += self._sizes[-1]
        while len(self._frames) > self._frames_max or (self._bytes > self._bytes_max and len(self._frames) > 1):
            self.begin = self._frames.popleft().nth
            self._bytes -= self._sizes.popleft()

    def after(self, nth: int) -> list[OutgoingFrame] | None:
        """The frames after a number; None if some of them were dropped."""
        if nth < self.begin:
            return None
        return [one for one in self._frames if one.nth > nth]
