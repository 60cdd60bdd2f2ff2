"""Bus: in-process publish and subscribe. Publishing never waits, and a slow subscriber does not slow others.

A bus belongs to one event loop: publish and subscribe on its thread.
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
"""The default size of the queue of a subscriber."""


class Overflow(Exception):
    """The queue of a subscriber was full, so its subscription ended. Read the current state and subscribe again."""

    def __init__(self, size: int) -> None:
        super().__init__(f"more than {size} notifications were waiting; read the current state and subscribe again")
        self.size = size


class Subscription(Generic[T]):
    """The queue of a subscriber: ``async with`` subscribes, ``async for`` receives.

    The iterator ends when the scope is left or the bus is closed. It raises Overflow when the queue was full, or the
    error of ``match``. Unless the scope was left, queued notifications are delivered first.
    """

    def __init__(self, bus: "Bus[T]", match: Callable[[T], bool] | None, size: int) -> None:
        self.dropped = 0
        """The number of notifications that were dropped from this queue."""
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
        """Unsubscribe. Queued notifications are still delivered, then the iterator ends."""
        self._finish()

    def _offer(self, notification: T) -> None:
        try:
            if self._match is not None and not self._match(notification):
                return
        except Exception as error:
            # An error of the filter must not reach the publisher, whose change is already durable.
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
        # All droppable ones at once: a delta is of no use after a gap, and publishing stays fast.
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
    """Calls a function with each published notification, until ``close`` or until the function raises."""

    def __init__(self, bus: "Bus[T]", receive: Callable[[T], None]) -> None:
        self._bus, self._receive = bus, receive

    def close(self) -> None:
        """Stop receiving."""
        self._bus._remove(self)

    def _offer(self, notification: T) -> None:
        try:
            self._receive(notification)
        except Exception:
            # An error of the listener must not reach the publisher, whose change is already durable.
            log.exception("a listener failed and is removed")
            self.close()


class Bus(Generic[T]):
    """Delivers each notification to every subscriber whose filter accepts it, in the order of publishing."""

    def __init__(self) -> None:
        self.dropped = 0
        """The number of notifications that were dropped from all queues."""
        self.overflows = 0
        """The number of subscriptions that ended because their queue was full."""
        self._closed = False
        self._subscriptions: tuple[Subscription[T] | Listener[T], ...] = ()

    def publish(self, notification: T) -> None:
        """Queue a notification for every subscriber. After ``close`` there are none."""
        for subscription in self._subscriptions:
            subscription._offer(notification)

    def subscribe(self, *, match: Callable[[T], bool] | None = None, size: int = QUEUE_MAX) -> Subscription[T]:
        """A subscription to the notifications that ``match`` accepts, from the moment it is entered.

        If the queue has ``size`` notifications, those with a true ``droppable`` attribute are dropped. If it is still
        full, the subscription ends with Overflow.
        """
        assert size > 0, "a subscriber needs room for one notification"
        return Subscription(self, match, size)

    def listen(self, receive: Callable[[T], None]) -> Listener[T]:
        """Call ``receive`` with each notification while it is published. It must be fast and must not block."""
        listener = Listener(self, receive)
        self._add(listener)
        return listener

    def close(self) -> None:
        """End every subscription after its queued notifications were delivered."""
        self._closed = True
        for subscription in self._subscriptions:
            subscription.close()

    @property
    def subscribers(self) -> int:
        """The number of subscriptions and listeners."""
        return len(self._subscriptions)

    def _add(self, subscription: Subscription[T] | Listener[T]) -> None:
        self._subscriptions = (*self._subscriptions, subscription)
        if self._closed:
            subscription.close()

    def _remove(self, subscription: Subscription[T] | Listener[T]) -> None:
        self._subscriptions = tuple(other for other in self._subscriptions if other is not subscription)


def _is_droppable(notification: object) -> bool:
    return getattr(notification, "droppable", False) is True
