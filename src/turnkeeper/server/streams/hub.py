"""Hub: takes over what is published and brings it to every open stream, joined, encoded once, and paced.

What happens in one turn of the event loop is sent together. With many subscribers the next sending waits a little
(``PACE_S`` for each of them), so that more is sent at once and the work stays bounded by what happens, not by who
listens.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio
import msgspec

from turnkeeper.api import Turnkeeper
from turnkeeper.bus import Listener
from turnkeeper.model.identifier import pack
from turnkeeper.model.notification import Delta
from turnkeeper.server.streams.channel import Channel, Recent, StreamFilter, StreamFormat
from turnkeeper.server.streams.frame import Happening, OutgoingFrame, joined
from turnkeeper.server.streams.subscriber import WAITING_MAX, Subscriber
from turnkeeper.server.v2 import live

PACE_S: Final = 0.000_1
"""How long one subscriber lets the others wait."""

PACE_MAX_S: Final = 0.05
CLOSING_S: Final = 0.5
"""How long the end of a stream may take."""

FAREWELLS: Final[Mapping[StreamFormat, str]] = {"local": "server.instance.disposed", "second": "global.disposed"}
"""What a stream ends with. Not that of all directories: opencode's terminal UI would start anew at once, find nobody
and exit, where it comes back by itself after a stream that just ended."""


class Metre(msgspec.Struct):
    """How a hub tells time; tests have their own."""

    now: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    pace_s: float = PACE_S
    waiting_max: int = WAITING_MAX


class HubCounts(msgspec.Struct):
    """What a hub has done, for those who measure."""

    frames: int = 0
    flushes: int = 0
    dropped: int = 0


class Membership(msgspec.Struct, eq=False):
    """One subscriber in its channel."""

    channel: Channel
    subscriber: Subscriber


class Hub:
    """All open streams of one server."""

    def __init__(self, turnkeeper: Turnkeeper, directory: str, metre: Metre | None = None) -> None:
        self.metre = metre or Metre(now=turnkeeper.store.mint.now)
        self.tally = HubCounts()
        self.word = secrets.token_hex(4) + "-"
        """What ids of this hub's frames begin with: those of another one mean nothing here."""
        self._turnkeeper, self._directory = turnkeeper, directory
        self._channels: dict[StreamFilter, Channel] = {}
        self._alone: set[Subscriber] = set()
        self._listener: Listener[Happening] | None = None
        self._recent: Recent | None = None
        self._queue: list[Happening] = []
        self._is_scheduled = self._is_closed = False
        self._next_s = 0.0
        self._counter = 0
        self._tail = secrets.token_hex(7)
        self._derives_second = False

    def join(self, tune: StreamFilter, *, since: str | None = None) -> Membership:
        """Subscribe from this moment on; ``since`` is the id of the last frame that was heard before."""
        if self._listener is None and not self._is_closed:
            self._listener = self._turnkeeper.listen(self._receive)
        if tune.ids is not None and self._recent is None:
            self._recent = Recent()
            self._recent.begin = self.tally.frames
        channel = self._channels.get(tune)
        if channel is None:
            channel = self._channels[tune] = Channel(tune)
            self._second_wanted()
        subscriber = Subscriber(self.metre.waiting_max)
        missed = self._missed(since) if since is not None else []
        properties = {"resumed": missed is not None} if since is not None else {}
        subscriber.offer(channel.plain("server.connected", self.event_id(), properties) + channel.chunk(missed or ()))
        if self._is_closed:
            subscriber.end()
        else:
            channel.subscribers.add(subscriber)
        return Membership(channel, subscriber)

    def leave(self, member: Membership) -> None:
        """Hear no more."""
        member.channel.subscribers.discard(member.subscriber)
        self.tally.dropped += member.subscriber.is_dropped
        if not member.channel.subscribers and self._channels.get(member.channel.tune) is member.channel:
            del self._channels[member.channel.tune]
            self._second_wanted()
        if not self._channels and self._recent is None and self._listener is not None:
            self._listener.close()
            self._listener = None

    def join_alone(self) -> Subscriber:
        """A subscriber that somebody else feeds; it ends with all others."""
        subscriber = Subscriber(self.metre.waiting_max)
        if self._is_closed:
            subscriber.end()
        self._alone.add(subscriber)
        return subscriber

    def leave_alone(self, subscriber: Subscriber) -> None:
        """It needs nothing any more."""
        self._alone.discard(subscriber)

    def event_id(self) -> str:
        """The id of something that no log holds."""
        self._counter = (self._counter + 1) & 0xFFF
        return f"evt_{pack(self.metre.now(), self._counter, False)}{self._tail}"

    def flush(self) -> None:
        """Send the queued events to all streams now."""
        self._is_scheduled = False
        if self._is_closed or not self._queue:
            return
        queue, self._queue = self._queue, []
        now = self.metre.now()
        frames = [self._frame(one, now) for one in joined(queue)]
        self.tally.flushes += 1
        if self._recent is not None:
            self._recent.add(frames)
        for channel in list(self._channels.values()):
            channel.tell(frames)
        self._next_s = asyncio.get_running_loop().time() + min(self.subscribers * self.metre.pace_s, PACE_MAX_S)

    def close(self) -> None:
        """Tell everybody what was waiting, and whom it helps that this was all; every stream ends once it is sent."""
        if self._is_closed:
            return
        self.flush()
        self._is_closed = True
        everybody = [*self._alone, *(one for channel in self._channels.values() for one in channel.subscribers)]
        for tune, channel in self._channels.items():
            kind = FAREWELLS.get(tune.voice)
            about = {} if tune.voice == "second" else {"directory": tune.directory or self._directory}
            last = channel.plain(kind, self.event_id(), about) if kind is not None else b""
            for subscriber in channel.subscribers:
                if last:
                    subscriber.offer(last)
                subscriber.end()
            channel.subscribers.clear()
        for subscriber in self._alone:
            subscriber.end()
        # Who does not read will not read its end either, and nobody waits for it.
        asyncio.get_running_loop().call_later(CLOSING_S, _give_up, everybody)
        if self._listener is not None:
            self._listener.close()
        self._second_wanted()

    @property
    def subscribers(self) -> int:
        """How many streams are open."""
        return sum(len(channel.subscribers) for channel in self._channels.values()) + len(self._alone)

    def _second_wanted(self) -> None:
        """Have events of the second generation derived as long as this hub has a subscriber for them."""
        wanted = any(tune.voice == "second" for tune in self._channels) and not self._is_closed
        if wanted == self._derives_second:
            return
        self._derives_second, journal = wanted, self._turnkeeper.store.journal
        if wanted:
            journal.publisher.add(live.derive)
        else:
            journal.publisher.remove(live.derive)

    def _missed(self, since: str) -> list[OutgoingFrame] | None:
        if not since.startswith(self.word) or not since[len(self.word) :].isdecimal() or self._recent is None:
            return None
        return self._recent.after(int(since[len(self.word) :]))

    def _receive(self, one: Happening) -> None:
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

    def _frame(self, one: Happening, now: int) -> OutgoingFrame:
        self.tally.frames += 1
        known = "" if isinstance(one, Delta) else one.id
        return OutgoingFrame(one, self.tally.frames, known or self.event_id(), now)


def _give_up(subscribers: list[Subscriber]) -> None:
    for subscriber in subscribers:
        subscriber.scope.cancel()
