"""Stream: one open event stream as an ASGI application. It ends with its client, its hub, or when it is too slow."""

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Final, TypeAlias

import anyio

from turnkeeper.server.asgi import ABORT, Receive, Scope, Send
from turnkeeper.server.streams.channel import StreamFilter
from turnkeeper.server.streams.frame import COMMENT
from turnkeeper.server.streams.hub import Hub, Membership
from turnkeeper.server.streams.subscriber import Subscriber

HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]

HEARTBEAT_S: Final = 10
HEARTBEAT_SECOND_S: Final = 15

FrameSource: TypeAlias = Callable[[], AsyncIterator[bytes]]
"""Frames of a stream that has a source of its own, one by one."""


class Stream:
    """What everybody hears who wants to hear the same."""

    def __init__(self, hub: Hub, tune: StreamFilter, *, since: str | None = None) -> None:
        self._hub, self._tune, self._since = hub, tune, since

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        # First subscribed, then answered: nothing that happens after a client sees the first byte is missed.
        member = self._hub.join(self._tune, since=self._since)
        try:
            await _serve(member.subscriber, lambda: self._beat(member), scope, receive, send)
        finally:
            self._hub.leave(member)

    async def _beat(self, member: Membership) -> None:
        is_second = self._tune.voice == "second"
        if is_second:
            member.subscriber.offer(COMMENT)
        while True:
            await self._hub.metre.sleep(HEARTBEAT_SECOND_S if is_second else HEARTBEAT_S)
            member.subscriber.offer(
                COMMENT if is_second else member.channel.plain("server.heartbeat", self._hub.event_id(), {})
            )


class Tail:
    """A stream with a source of its own, which waits for its reader."""

    def __init__(self, hub: Hub, feed: FrameSource) -> None:
        self._hub, self._feed = hub, feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        subscriber = self._hub.join_alone()
        try:
            await _serve(subscriber, lambda: self._fill(subscriber), scope, receive, send)
        finally:
            self._hub.leave_alone(subscriber)

    async def _fill(self, subscriber: Subscriber) -> None:
        async for chunk in self._feed():
            await subscriber.put(chunk)
        subscriber.end()


async def _serve(
    subscriber: Subscriber, fill: Callable[[], Coroutine[None, None, None]], scope: Scope, receive: Receive, send: Send
) -> None:
    """Send a subscriber's queue, which ``fill`` adds to, until the stream ends or the client disconnects."""
    async with anyio.create_task_group() as group:
        group.start_soon(_until_disconnected, receive, subscriber)
        group.start_soon(fill)
        await _send_all(subscriber, scope, send)
        group.cancel_scope.cancel()


async def _send_all(subscriber: Subscriber, scope: Scope, send: Send) -> None:
    with subscriber.scope:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        while (chunk := await subscriber.take()) is not None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not subscriber.is_dropped:
            await send({"type": "http.response.body", "body": b""})
            return
    # Stopped in the middle: its client has gone or does not read. What waits in the connection would wait for ever.
    if (abort := scope.get("extensions", {}).get(ABORT)) is not None:
        abort()


async def _until_disconnected(receive: Receive, subscriber: Subscriber) -> None:
    """What a client that goes away wanted to hear is sent to nobody."""
    while (await receive())["type"] != "http.disconnect":
        pass
    subscriber.end()
    subscriber.scope.cancel()
