"""Subscription: notifications of a server from now on. For one session nothing is missed on a connection error."""

import math
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeAlias

import anyio

from turnkeeper.client.event_decoder import CONNECTED, EventDecoder
from turnkeeper.client.frames import Frames
from turnkeeper.client.replay_state import ReplayState
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.page import Page
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import Idle, Status

Read: TypeAlias = Callable[[str | None], Awaitable[Page[MessageWithParts]]]
"""A page of the session's newest messages, or of those before a cursor."""

LINGER_S: Final = 1.0
"""How long a closed subscription waits for the session's last notification before it reads the stored state."""


class Subscription:
    """``async with`` subscribes, ``async for`` receives the values that ``Turnkeeper.subscribe`` gives.

    After a connection error the stream resumes after the last frame received. If the server cannot resume (it was
    restarted, or too much happened), ``server.connected`` comes with ``resumed`` false. A subscription to one session
    then receives what it missed, made from the stored state: whole messages and parts, each once.
    """

    def __init__(
        self, frames: Frames, session_id: str | None, read: Read, status: Callable[[], Awaitable[Status]]
    ) -> None:
        self._frames, self._session_id, self._read, self._status = frames, session_id, read, status
        self._name = session_id.encode() if session_id is not None else b""
        self._decoder, self._state = EventDecoder(), ReplayState(session_id or "")
        self._ready: deque[Notification | Delta] = deque()
        self._scope: anyio.CancelScope | None = None
        self._lost = 0
        self._is_closing = self._is_over = self._is_idle = False

    async def __aenter__(self) -> "Subscription":
        await self._frames.open()
        await self._frames.next()  # ``server.connected``: from here on nothing is missed.
        self._lost = self._frames.lost
        if self._session_id is not None:
            self._state.begin((await self._read(None)).items)
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
        """Whether the stream is disconnected now and being retried."""
        return self._frames.is_lost

    def close(self) -> None:
        """End the subscription. Notifications of the session so far are still received, then the iterator ends."""
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
            await self._reconnected(self._decoder.decode(frame.data))
        elif self._name in frame.data and b'"server.' not in frame.data[:200]:
            self._take(self._decoder.decode(frame.data))

    def _take(self, one: Notification | Delta) -> None:
        if self._session_id is None:
            self._ready.append(one)
        elif one.session_id == self._session_id:
            if isinstance(one, Notification):
                self._state.note(one)
                if one.type in ("session.status", "session.idle"):
                    self._is_idle = one.type == "session.idle"  # The last notification of a run.
            self._ready.append(one)

    async def _reconnected(self, connected: Notification | Delta) -> None:
        """If the server could not resume the stream, read the missed state of the session."""
        assert isinstance(connected, Notification)
        assert connected.type == CONNECTED
        if connected.properties.get("resumed") is True:
            return
        self._ready.append(connected.but(properties={"resumed": False}))
        if self._session_id is not None:
            await self._read_missed()

    async def _read_missed(self) -> None:
        """Queue notifications for everything stored that was not received."""
        try:
            status, page = await self._status(), await self._read(None)
            messages = list(page.items)
            while page.older is not None and not any(self._state.has(one) for one in page.items):
                page = await self._read(page.older)
                messages[:0] = page.items
        except NotFound:  # The session was removed.
            return
        self._ready.extend(self._state.news(messages, status))
        self._is_idle = isinstance(status, Idle)

    async def _finish(self) -> None:
        if self._session_id is not None:
            await self._read_missed()
        self._is_over = True
