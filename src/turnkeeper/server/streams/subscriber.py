"""Subscriber: one open stream's bytes, bounded. Who does not read is let go; nobody waits for it."""

from collections import deque
from typing import Final

import anyio

WAITING_MAX: Final = 4 * 1024 * 1024
"""Bytes that may wait for one subscriber."""


class Subscriber:
    """What waits to be sent on one stream, in order."""

    def __init__(self, size: int = WAITING_MAX) -> None:
        self.scope = anyio.CancelScope()
        """Around the sending: a subscriber that is let go is stopped in the middle of it."""
        self.is_dropped = False
        self._size = size
        self._waiting: deque[bytes] = deque()
        self._length = 0
        self._is_ended = False
        self._arrival: anyio.Event | None = None
        self._taken: anyio.Event | None = None

    def offer(self, chunk: bytes) -> bool:
        """Add to what waits; whether there was room. If not, the subscriber is let go."""
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
        """The same for those who can wait: until there is room."""
        while self._waiting and self._length + len(chunk) > self._size and not self._is_ended:
            if self._taken is None:
                self._taken = anyio.Event()
            await self._taken.wait()
        self.offer(chunk)

    async def take(self) -> bytes | None:
        """All that waits, in one piece, as soon as there is some; None when nothing more will come."""
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
        """Nothing more will come; what waits is still sent."""
        self._is_ended = True
        self._wake()
        if self._taken is not None:
            self._taken.set()
            self._taken = None

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None
