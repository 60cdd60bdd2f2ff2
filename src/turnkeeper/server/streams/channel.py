"""Channel: those who hear the same bytes. What they hear is put together once for all of them."""

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
"""What a stream sounds like: ``/event``, ``/global/event`` or ``/api/event``."""


class StreamFilter(msgspec.Struct, frozen=True):
    """What a subscriber wants to hear. Those with the same wish share one channel."""

    voice: StreamFormat
    directory: str | None = None
    """Only what happens there; None for everywhere."""
    ids: str | None = None
    """What ids of events begin with, if they are wanted."""


class Channel(msgspec.Struct, eq=False):
    """The subscribers of one tune."""

    tune: StreamFilter
    subscribers: set[Subscriber] = msgspec.field(default_factory=set)

    def tell(self, frames: Iterable[OutgoingFrame]) -> None:
        """Send all of these at once."""
        chunk = self.chunk(frames)
        if chunk:
            for subscriber in list(self.subscribers):
                if not subscriber.offer(chunk):
                    self.subscribers.discard(subscriber)

    def chunk(self, frames: Iterable[OutgoingFrame]) -> bytes:
        """What these sound like here."""
        directory = self.tune.directory
        return b"".join([self._framed(one) for one in frames if directory in (None, one.one.directory)])

    def plain(self, kind: str, id: str, properties: object) -> bytes:
        """Something of the server itself, without a number."""
        if self.tune.voice == "second":
            return b"data: " + frame.plain_second(kind, id, properties) + END
        return self._wrapped(frame.plain(kind, id, properties), "", None)

    def _framed(self, one: OutgoingFrame) -> bytes:
        if self.tune.voice == "second":
            body = one.second
            return b"data: " + body + END if body else b""
        body = one.first
        if not body:
            return b""
        wrapped = self._wrapped(body, one.one.directory, getattr(one.one, "project_id", None))
        return f"id: {self.tune.ids}{one.nth}\n".encode() + wrapped if self.tune.ids is not None else wrapped

    def _wrapped(self, body: bytes, directory: str, project_id: str | None) -> bytes:
        if self.tune.voice == "local":
            return b"data: " + body + END
        where = b'"directory":%b,' % encode(directory) if directory else b""
        if project_id is not None:
            where += b'"project":%b,' % encode(project_id)
        return b'data: {%b"payload":%b}\n\n' % (where, body)


class Recent:
    """The newest frames, for those who come back. Bounded by number and by size."""

    def __init__(self, frames_max: int = 4096, bytes_max: int = 8 * 1024 * 1024) -> None:
        self._frames: deque[OutgoingFrame] = deque()
        self._sizes: deque[int] = deque()
        self._frames_max, self._bytes_max, self._bytes = frames_max, bytes_max, 0
        self.begin = 0
        """The number of the last frame that is not here any more."""

    def add(self, frames: Iterable[OutgoingFrame]) -> None:
        """Keep these."""
        for one in frames:
            self._frames.append(one)
            self._sizes.append(len(one.first))
            self._bytes += self._sizes[-1]
        while len(self._frames) > self._frames_max or (self._bytes > self._bytes_max and len(self._frames) > 1):
            self.begin = self._frames.popleft().nth
            self._bytes -= self._sizes.popleft()

    def after(self, nth: int) -> list[OutgoingFrame] | None:
        """What came after a frame; None if some of it is not here any more."""
        if nth < self.begin:
            return None
        return [one for one in self._frames if one.nth > nth]
