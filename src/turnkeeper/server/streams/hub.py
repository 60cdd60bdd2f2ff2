"""Hub: sends published notifications to all open streams, with deltas joined and frames encoded once.

Notifications of one event-loop iteration are sent together. With many subscribers a flush is followed by a delay
(``PACE_S`` for each subscriber): then more is sent at once, and the work is bounded by the number of notifications,
not by the number of subscribers.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import anyio
import msgspec

from turnkeeper.api import Turnkeeper
from turnkeeper.bus import Listener
from turnkeeper.model.identifier import pack
from turnkeeper.model.notification import Delta
from turnkeeper.server.streams.channel import Channel, Recent, StreamFilter, StreamFormat
from turnkeeper.server.streams.frame import OutgoingFrame, Published, joined
from turnkeeper.server.streams.subscriber import WAITING_MAX, Subscriber
from turnkeeper.server.v2 import live
from turnkeeper.text.number import number_in

PACE_S: Final = 0.000_1
"""Delay between two flushes, for each subscriber."""

PACE_MAX_S: Final = 0.05
CLOSING_S: Final = 0.5
"""Time to send the rest of a stream when the hub is closed."""

FAREWELLS: Final[Mapping[StreamFormat, str]] = {"local": "server.instance.disposed", "second": "global.disposed"}
"""The last event of a stream, by format. The stream of all directories has none: opencode's terminal UI would restart
at once, find no server and exit, whereas it reconnects by itself after a stream without a last event.
"""


class HubSettings(msgspec.Struct):
    """The clock and the limits of a hub; tests set their own."""

    now: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    pace_s: float = PACE_S
    waiting_max: int = WAITING_MAX


class HubCounts(msgspec.Struct):
    """Counters for the metrics."""

    frames: int = 0
    flushes: int = 0
    dropped: int = 0


class Membership(msgspec.Struct, eq=False):
    """A subscriber and its channel."""

    channel: Channel
    subscriber: Subscriber
    is_resumed: bool = False
    """The client misses nothing: it received all frames since its earlier connection."""


class Hub:
    """All open streams of one server."""

    def __init__(self, turnkeeper: Turnkeeper, directory: str, settings: HubSettings | None = None) -> None:
        self.settings = settings or HubSettings(now=turnkeeper.store.mint.now)
        self.counts = HubCounts()
        self.id_prefix = secrets.token_hex(4) + "-"
        """The prefix of this hub's frame ids: an id with another prefix cannot be resumed from."""
        self.turnkeeper, self._directory = turnkeeper, directory
        self._channels: dict[StreamFilter, Channel] = {}
        self._alone: set[Subscriber] = set()
        self._listener: Listener[Published] | None = None
        self._recent: Recent | None = None
        self._queue: list[Published] = []
        self._is_scheduled = self._is_closed = False
        self._next_s = 0.0
        self._counter = 0
        self._tail = secrets.token_hex(7)
        self._derives_second = False

    def join(self, filter: StreamFilter, *, since: str | None = None) -> Membership:
        """Subscribe. ``since`` is the id of the last frame that the client received on an earlier connection."""
        if self._listener is None and not self._is_closed:
            self._listener = self.turnkeeper.bus.listen(self._receive)
        if filter.ids is not None and self._recent is None:
            self._recent = Recent()
            self._recent.begin = self.counts.frames
        channel = self._channels.get(filter)
        if channel is None:
            channel = self._channels[filter] = Channel(filter)
            self._second_wanted()
        subscriber = Subscriber(self.settings.waiting_max)
        missed = self._missed(since) if since is not None else []
        properties = {"resumed": missed is not None} if since is not None else {}
        subscriber.offer(channel.plain("server.connected", self.event_id(), properties) + channel.chunk(missed or ()))
        if self._is_closed:
            subscriber.end()
        else:
            channel.subscribers.add(subscriber)
        return Membership(channel, subscriber, is_resumed=since is not None and missed is not None)

    def offer(self, member: Membership, news: Iterable[Published]) -> None:
        """Send something to one subscriber only."""
        now = self.settings.now()
        chunk = member.channel.unnumbered([OutgoingFrame(one, 0, self.event_id(), now) for one in news])
        if chunk:
            member.subscriber.offer(chunk)

    def leave(self, member: Membership) -> None:
        """Unsubscribe."""
        member.channel.subscribers.discard(member.subscriber)
        self.counts.dropped += member.subscriber.is_dropped
        if not member.channel.subscribers and self._channels.get(member.channel.filter) is member.channel:
            del self._channels[member.channel.filter]
            self._second_wanted()
        if not self._channels and self._recent is None and self._listener is not None:
            self._listener.close()
            self._listener = None

    def join_alone(self) -> Subscriber:
        """A subscriber that the caller feeds; only its end is up to the hub."""
        subscriber = Subscriber(self.settings.waiting_max)
        if self._is_closed:
            subscriber.end()
        self._alone.add(subscriber)
        return subscriber

    def leave_alone(self, subscriber: Subscriber) -> None:
        """Forget a subscriber of ``join_alone``."""
        self._alone.discard(subscriber)

    def event_id(self) -> str:
        """A new id for an event that is not in a log."""
        self._counter = (self._counter + 1) & 0xFFF
        return f"evt_{pack(self.settings.now(), self._counter, False)}{self._tail}"

    def flush(self) -> None:
        """Send the queued events to all streams now."""
        self._is_scheduled = False
        if self._is_closed or not self._queue:
            return
        queue, self._queue = self._queue, []
        now = self.settings.now()
        frames = [self._frame(one, now) for one in joined(queue)]
        self.counts.flushes += 1
        if self._recent is not None:
            self._recent.add(frames)
        for channel in list(self._channels.values()):
            channel.send(frames)
        self._next_s = asyncio.get_running_loop().time() + min(self.subscribers * self.settings.pace_s, PACE_MAX_S)

    def close(self) -> None:
        """Send queued events and the last event of each stream, then end all streams."""
        if self._is_closed:
            return
        self.flush()
        self._is_closed = True
        subscribers = [*self._alone, *(one for channel in self._channels.values() for one in channel.subscribers)]
        for filter, channel in self._channels.items():
            kind = FAREWELLS.get(filter.format)
            about = {} if filter.format == "second" else {"directory": filter.directory or self._directory}
            last = channel.plain(kind, self.event_id(), about) if kind is not None else b""
            for subscriber in channel.subscribers:
                if last:
                    subscriber.offer(last)
                subscriber.end()
            channel.subscribers.clear()
        for subscriber in self._alone:
            subscriber.end()
        # A client that does not read will not read the end of its stream either.
        asyncio.get_running_loop().call_later(CLOSING_S, _cancel, subscribers)
        if self._listener is not None:
            self._listener.close()
        self._second_wanted()

    @property
    def subscribers(self) -> int:
        """The number of open streams."""
        return sum(len(channel.subscribers) for channel in self._channels.values()) + len(self._alone)

    def _second_wanted(self) -> None:
        """Derive events of the second generation only while a subscriber needs them."""
        wanted = any(filter.format == "second" for filter in self._channels) and not self._is_closed
        if wanted == self._derives_second:
            return
        self._derives_second, journal = wanted, self.turnkeeper.store.journal
        if wanted:
            journal.publisher.add(live.derive)
        else:
            journal.publisher.remove(live.derive)

    def _missed(self, since: str) -> list[OutgoingFrame] | None:
        nth = number_in(since.removeprefix(self.id_prefix)) if since.startswith(self.id_prefix) else None
        return self._recent.after(nth) if nth is not None and self._recent is not None else None

    def _receive(self, one: Published) -> None:
        self._queue.append(one)
        if self._is_scheduled:
            return
        self._is_scheduled = True
        loop = asyncio.get_running_loop()
        wait_s = self._next_s - loop.time()
        if wait_s > 0:
            loop.call_later(wait_s, self.flush)
        else:
            loop.call_soon(self.flush)

    def _frame(self, one: Published, now: int) -> OutgoingFrame:
        self.counts.frames += 1
        known = "" if isinstance(one, Delta) else one.id
        return OutgoingFrame(one, self.counts.frames, known or self.event_id(), now)


def _cancel(subscribers: list[Subscriber]) -> None:
    for subscriber in subscribers:
        subscriber.scope.cancel()
