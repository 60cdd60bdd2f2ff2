"""Bus: in-process fan-out of notifications. Publishing never waits; a slow subscriber harms only itself.

Everything here belongs to one event loop: publish and subscribe on its thread.
"""

import logging
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, TypeVar

import anyio

T = TypeVar("T")

log = logging.getLogger(__name__)

QUEUE_MAX: Final = 1024
"""Notifications that may wait for one subscriber."""


class Overflow(Exception):
    """A subscriber fell too far behind and was let go: read the current state and subscribe again."""

    def __init__(self, size: int) -> None:
        super().__init__(f"more than {size} notifications were waiting; read the current state and subscribe again")
        self.size = size


class Subscription(Generic[T]):
    """One subscriber's ordered queue: ``async with`` to be subscribed, ``async for`` to listen.

    The iterator ends when the scope is left or the bus closes. It raises Overflow when too much was waiting,
    or what ``match`` raised. Unless the scope was left, everything queued before is delivered first.
    """

    def __init__(self, bus: "Bus[T]", match: Callable[[T], bool] | None, size: int) -> None:
        self.dropped = 0
        """Droppable notifications this subscriber did not get."""
        self._bus = bus
        self._match = match
        self._size = size
        self._queue: deque[T] = deque()
        self._arrival: anyio.Event | None = None
        self._ended = False
        self._failure: Exception | None = None

    async def __aenter__(self) -> "Subscription[T]":
        self._bus._add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._queue.clear()
        self._finish()

    def __aiter__(self) -> "Subscription[T]":
        return self

    async def __anext__(self) -> T:
        while not self._queue:
            if self._ended:
                raise self._failure or StopAsyncIteration
            if self._arrival is None:
                self._arrival = anyio.Event()
            await self._arrival.wait()
        return self._queue.popleft()

    def close(self) -> None:
        """Hear nothing more. What is queued is still delivered, then the iterator ends."""
        self._finish()

    def _offer(self, notification: T) -> None:
        try:
            if self._match is not None and not self._match(notification):
                return
        except Exception as error:
            # What is published has already happened: a broken filter must not tell the publisher otherwise.
            self._finish(error)
            return
        if len(self._queue) >= self._size and not self._make_room(notification):
            return
        self._queue.append(notification)
        self._wake()

    def _make_room(self, notification: T) -> bool:
        if _is_droppable(notification):
            self._count_dropped(1)
            return False
        # All of them at once: a delta is worth little once its neighbour is gone, and publishing stays cheap.
        kept = deque(waiting for waiting in self._queue if not _is_droppable(waiting))
        self._count_dropped(len(self._queue) - len(kept))
        self._queue = kept
        if len(kept) < self._size:
            return True
        self._bus.overflows += 1
        self._finish(Overflow(self._size))
        return False

    def _count_dropped(self, count: int) -> None:
        self.dropped += count
        self._bus.dropped += count

    def _finish(self, failure: Exception | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        self._failure = failure
        self._bus._remove(self)
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None


class Listener(Generic[T]):
    """One who takes each notification over as it is published, until ``close``. What it raises ends it."""

    def __init__(self, bus: "Bus[T]", receive: Callable[[T], None]) -> None:
        self._bus, self._receive = bus, receive

    def close(self) -> None:
        """Hear nothing more."""
        self._finish()

    def _offer(self, notification: T) -> None:
        try:
            self._receive(notification)
        except Exception:
            # What is published has already happened: who cannot take it must not tell the publisher otherwise.
            log.exception("a listener failed and hears no more")
            self._finish()

    def _finish(self) -> None:
        self._bus._remove(self)


class Bus(Generic[T]):
    """Delivers each notification to every subscriber that wants it, in the order of publishing."""

    def __init__(self) -> None:
        self.dropped = 0
        """Droppable notifications that some subscriber did not get, in all."""
        self.overflows = 0
        """Subscribers that were let go because they fell behind."""
        self._closed = False
        self._subscriptions: tuple[Subscription[T] | Listener[T], ...] = ()

    def publish(self, notification: T) -> None:
        """Queue a notification for every subscriber. After ``close`` nobody hears it."""
        for subscription in self._subscriptions:
            subscription._offer(notification)

    def subscribe(self, *, match: Callable[[T], bool] | None = None, size: int = QUEUE_MAX) -> Subscription[T]:
        """A subscription, from the moment it is entered, to what ``match`` accepts.

        When ``size`` notifications wait, those with a true ``droppable`` attribute go first; if that is not
        enough, the subscriber is let go with Overflow.
        """
        assert size > 0, "a subscriber needs room for one notification"
        return Subscription(self, match, size)

    def listen(self, receive: Callable[[T], None]) -> Listener[T]:
        """Have each notification handed over from now on: for one who fans out to many, with queues of its own.

        ``receive`` is called while publishing, so it must be quick and wait for nothing.
        """
        listener = Listener(self, receive)
        self._add(listener)
        return listener

    def close(self) -> None:
        """End every subscription once it has delivered what is queued."""
        self._closed = True
        for subscription in self._subscriptions:
            subscription._finish()

    @property
    def subscribers(self) -> int:
        """How many are listening."""
        return len(self._subscriptions)

    def _add(self, subscription: Subscription[T] | Listener[T]) -> None:
        self._subscriptions = (*self._subscriptions, subscription)
        if self._closed:
            subscription._finish()

    def _remove(self, subscription: Subscription[T] | Listener[T]) -> None:
        self._subscriptions = tuple(other for other in self._subscriptions if other is not subscription)


def _is_droppable(notification: object) -> bool:
    return getattr(notification, "droppable", False) is True
