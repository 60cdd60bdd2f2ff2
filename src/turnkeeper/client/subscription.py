"""Subscription: what happens on a server from now on. Of one session nothing is missed, even on a broken line."""

import math
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeAlias

import anyio

from turnkeeper.client.frames import Frames
from turnkeeper.client.heard import CONNECTED, EventDecoder
from turnkeeper.client.known import ReplayState
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.page import Page
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import Idle, Status

Read: TypeAlias = Callable[[str | None], Awaitable[Page[MessageWithParts]]]
"""A page of the session's newest messages, or of those before a cursor."""

LINGER_S: Final = 1.0
"""How long the end of a stream is waited for before what is missing is read instead."""


class Subscription:
    """``async with`` to be subscribed, ``async for`` to listen. The same values as ``Turnkeeper.subscribe`` gives.

    The line may break: the server is then told what was heard last, and tells the rest. Where it cannot (it was
    started anew, or it was too long ago), ``server.connected`` comes with ``resumed`` false; of a single session what
    was missed then follows, made from what is stored: whole messages and parts, none of them twice.
    """

    def __init__(
        self, frames: Frames, session_id: str | None, read: Read, status: Callable[[], Awaitable[Status]]
    ) -> None:
        self._frames, self._session_id, self._read, self._status = frames, session_id, read, status
        self._name = session_id.encode() if session_id is not None else b""
        self._ear, self._known = EventDecoder(), ReplayState(session_id or "")
        self._ready: deque[Notification | Delta] = deque()
        self._scope: anyio.CancelScope | None = None
        self._lost = 0
        self._is_closing = self._is_over = self._is_idle = False

    async def __aenter__(self) -> "Subscription":
        await self._frames.open()
        await self._frames.next()  # That we are connected: from here on nothing is missed.
        self._lost = self._frames.lost
        if self._session_id is not None:
            self._known.begin((await self._read(None)).items)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = True
        with anyio.CancelScope(shield=True):
            await self._frames.aclose()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Notification | Delta:
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            if self._is_closing and (self._is_idle or self._session_id is None):
                await self._finish()
            else:
                await self._hear()
        return self._ready.popleft()

    @property
    def is_lost(self) -> bool:
        """Whether the server cannot be heard just now; it is tried again."""
        return self._frames.is_lost

    def close(self) -> None:
        """Hear nothing more. What happened in the session so far is still told, then the iterator ends."""
        self._is_closing = True
        if self._scope is not None:
            self._scope.deadline = self._deadline()

    def _deadline(self) -> float:
        if not self._is_closing:
            return math.inf
        return anyio.current_time() + (0 if self._is_idle or self._session_id is None else LINGER_S)

    async def _hear(self) -> None:
        with anyio.CancelScope(deadline=self._deadline()) as self._scope:
            frame = await self._frames.next()
        if self._scope.cancelled_caught:
            await self._finish()
            return
        if self._frames.lost > self._lost and b'"server.connected"' in frame.data:
            self._lost = self._frames.lost
            await self._came_back(self._ear.hear(frame.data))
        elif self._name in frame.data and b'"server.' not in frame.data[:200]:
            self._take(self._ear.hear(frame.data))

    def _take(self, one: Notification | Delta) -> None:
        if self._session_id is None:
            self._ready.append(one)
        elif one.session_id == self._session_id:
            if isinstance(one, Notification):
                self._known.note(one)
                if one.type in ("session.status", "session.idle"):
                    self._is_idle = one.type == "session.idle"  # It comes behind the status: then this was all.
            self._ready.append(one)

    async def _came_back(self, connected: Notification | Delta) -> None:
        """Whether all that was missed comes now; of one session it is read if not."""
        assert isinstance(connected, Notification)
        assert connected.type == CONNECTED
        if connected.properties.get("resumed") is True:
            return
        self._ready.append(connected.but(properties={"resumed": False}))
        if self._session_id is not None:
            await self._make_good()

    async def _make_good(self) -> None:
        """Tell what is stored and was not told."""
        try:
            status, page = await self._status(), await self._read(None)
            messages = list(page.items)
            while page.older is not None and not any(self._known.has(one) for one in page.items):
                page = await self._read(page.older)
                messages[:0] = page.items
        except NotFound:  # It was removed: there is nothing more to tell.
            return
        self._ready.extend(self._known.news(messages, status))
        self._is_idle = isinstance(status, Idle)

    async def _finish(self) -> None:
        if self._session_id is not None:
            await self._make_good()
        self._is_over = True
