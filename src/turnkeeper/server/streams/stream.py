"""Stream: an open event stream as an ASGI application. It ends with its client or its hub, or when it is too slow."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Final, TypeAlias

import anyio

from turnkeeper.server.asgi import ABORT, Receive, Scope, Send
from turnkeeper.server.response import Pairs
from turnkeeper.server.streams.announce import announce
from turnkeeper.server.streams.channel import StreamFilter
from turnkeeper.server.streams.frame import COMMENT
from turnkeeper.server.streams.hub import Hub, Membership
from turnkeeper.server.streams.subscriber import Subscriber
from turnkeeper.store.engine import EngineError

HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]

CATCH_UP_S: Final = 1
"""Time limit for the first subscriber to wait for a slow or unavailable store."""
HEARTBEAT_S: Final = 10
HEARTBEAT_SECOND_S: Final = 15

FrameSource: TypeAlias = Callable[[], AsyncIterator[bytes]]
"""Makes the frames of a stream that does not use a channel."""


class Stream:
    """A stream of the frames of a channel."""

    def __init__(self, hub: Hub, filter: StreamFilter, *, since: str | None = None) -> None:
        self._hub, self._filter, self._since = hub, filter, since

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream (the ASGI entry point)."""
        with suppress(EngineError), anyio.move_on_after(CATCH_UP_S):
            await self._hub.turnkeeper.catch_up()
        # Subscribe before the response: a client that has received the first byte misses no later event.
        member = self._hub.join(self._filter, since=self._since)
        try:
            await _serve(member.subscriber, lambda: self._beat(member), scope, receive, send)
        finally:
            self._hub.leave(member)

    async def _beat(self, member: Membership) -> None:
        is_second = self._filter.format == "second"
        if is_second:
            member.subscriber.offer(COMMENT)
        is_announced = member.is_resumed
        while True:
            is_announced = is_announced or await announce(self._hub, member)
            await self._hub.settings.sleep(HEARTBEAT_SECOND_S if is_second else HEARTBEAT_S)
            member.subscriber.offer(
                COMMENT if is_second else member.channel.plain("server.heartbeat", self._hub.event_id(), {})
            )


class Tail:
    """A stream with its own source of frames, which waits while the client is slow."""

    def __init__(self, hub: Hub, feed: FrameSource, headers: Pairs = ()) -> None:
        """``headers`` are sent beside those of every stream, and in the place of those with the same name."""
        self._hub, self._feed, self._headers = hub, feed, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream (the ASGI entry point)."""
        subscriber = self._hub.join_alone()
        try:
            await _serve(subscriber, lambda: self._fill(subscriber), scope, receive, send, self._headers)
        finally:
            self._hub.leave_alone(subscriber)

    async def _fill(self, subscriber: Subscriber) -> None:
        async for chunk in self._feed():
            await subscriber.put(chunk)
        subscriber.end()


async def _serve(
    subscriber: Subscriber,
    fill: Callable[[], Coroutine[None, None, None]],
    scope: Scope,
    receive: Receive,
    send: Send,
    more: Pairs = (),
) -> None:
    """Send a subscriber's queue, which ``fill`` adds to, until the stream ends or the client disconnects."""
    async with anyio.create_task_group() as group:
        group.start_soon(_until_disconnected, receive, subscriber)
        group.start_soon(fill)
        await _send_all(subscriber, scope, send, more)
        group.cancel_scope.cancel()


async def _send_all(subscriber: Subscriber, scope: Scope, send: Send, more: Pairs) -> None:
    names = {name for name, _ in more}
    headers = [*(one for one in HEADERS if one[0] not in names), *more]
    with subscriber.scope:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while (chunk := await subscriber.take()) is not None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not subscriber.is_dropped:
            await send({"type": "http.response.body", "body": b""})
            return
    # Stopped in the middle: the client has disconnected or does not read, and unsent data would be kept for ever.
    if (abort := scope.get("extensions", {}).get(ABORT)) is not None:
        abort()


async def _until_disconnected(receive: Receive, subscriber: Subscriber) -> None:
    """Wait until the client disconnects, then end the stream and stop sending."""
    while (await receive())["type"] != "http.disconnect":
        pass
    subscriber.end()
    subscriber.scope.cancel()
