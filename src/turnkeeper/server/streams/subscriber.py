"""Subscriber: the bounded send queue of one open stream. A subscriber that does not read is dropped."""

from collections import deque
from typing import Final

import anyio

WAITING_MAX: Final = 4 * 1024 * 1024
"""Bytes that may be queued for a subscriber."""


class Subscriber:
    """The send queue of a stream."""

    def __init__(self, size: int = WAITING_MAX) -> None:
        self.scope = anyio.CancelScope()
        """Encloses the sending, so that a dropped subscriber is stopped in the middle of it."""
        self.is_dropped = False
        self._size = size
        self._waiting: deque[bytes] = deque()
        self._length = 0
        self._is_ended = False
        self._arrival: anyio.Event | None = None
        self._taken: anyio.Event | None = None

    def offer(self, chunk: bytes) -> bool:
        """Queue a chunk; returns whether there was room. A subscriber without room is dropped."""
        if self._is_ended:
            return False
        if self._waiting and self._length + len(chunk) > self._size:
            self.is_dropped = True
            self._waiting.clear()
            self.end()
            self.scope.cancel()
            return False
        self._waiting.append(chunk)
        self._length += len(chunk)
        self._wake()
        return True

    async def put(self, chunk: bytes) -> None:
        """Queue a chunk, after waiting for room."""
        while self._waiting and self._length + len(chunk) > self._size and not self._is_ended:
            if self._taken is None:
                self._taken = anyio.Event()
            await self._taken.wait()
        self.offer(chunk)

    async def take(self) -> bytes | None:
        """Remove and join all queued chunks, after waiting for the first; None when the queue has ended."""
        while not self._waiting:
            if self._is_ended:
                return None
            if self._arrival is None:
                self._arrival = anyio.Event()
            await self._arrival.wait()
        if len(self._waiting) == 1:
            chunk = self._waiting.popleft()
        else:
            chunk = b"".join(self._waiting)
            self._waiting.clear()
        self._length = 0
        if self._taken is not None:
            self._taken.set()
            self._taken = None
        return chunk

    def end(self) -> None:
        """End the queue; queued chunks are still sent."""
        self._is_ended = True
        self._wake()
        if self._taken is not None:
            self._taken.set()
            self._taken = None

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None
