"""Fan-out: live deltas reach the subscribers of other processes too, if the engine carries messages between them.

Deltas are sent as transient messages: many at a time, without waiting, and dropped rather than queued up. Their text is
in the log a moment later, and followers publish it from there if it did not arrive as a message.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, TypeGuard

import msgspec

from turnkeeper.core.live_texts import LiveTexts, joined
from turnkeeper.core.notify import open_part
from turnkeeper.core.view import SessionView
from turnkeeper.model.notification import Delta, Notification, PartDeleted, PartUpdated, SessionIdle
from turnkeeper.model.parts import Part, ReasoningPart, TextPart
from turnkeeper.model.value import UNREADABLE, Value, encode
from turnkeeper.store.engine import Engine, Messenger

PACE_S: Final = 0.01
"""Seconds for which deltas are collected before they are sent together."""
WAITING_CHARS_MAX: Final = 256 * 1024
"""Characters that are collected; further deltas are dropped."""


class Passing(Value, array_like=True):
    """A delta on its way to other processes. Its directory is that of the session, which they know."""

    session_id: str
    message_id: str
    part_id: str
    field: str
    kind: Literal["text", "reasoning"]
    offset: int
    delta: str


_read = msgspec.json.Decoder(Passing).decode


class FanoutCounts(msgspec.Struct):
    """Counters for the metrics."""

    sent: int = 0
    heard: int = 0
    dropped: int = 0


class Fanout:
    """Publishes deltas: those of this process to all, those of others here."""

    def __init__(
        self,
        engine: Engine,
        publish: Callable[[Notification], None],
        publish_delta: Callable[[Delta], None],
        view: Callable[[str], SessionView | None],
    ) -> None:
        """``view`` is the view of a session that is in memory."""
        self._messenger = engine if isinstance(engine, Messenger) else None
        self._publish, self._publish_delta, self._view = publish, publish_delta, view
        self.counts = FanoutCounts()
        self._texts = LiveTexts()
        self._waiting: list[Delta] = []
        self._waiting_chars = 0
        self._stop_hearing: Callable[[], None] | None = None

    def tell(self, delta: Delta) -> None:
        """Publish a delta of a session that this process runs, here and to other processes. Never waits."""
        self._publish_delta(delta)
        self._texts.streamed(delta)
        if self._messenger is None or not self._messenger.is_heard():
            return
        if self._waiting_chars + len(delta.delta) > WAITING_CHARS_MAX and self._waiting:
            self.counts.dropped += 1
            return
        if not self._waiting:
            asyncio.get_running_loop().call_later(PACE_S, self._send)
        self._waiting.append(delta)
        self._waiting_chars += len(delta.delta)

    def publish(self, one: Notification | Delta) -> None:
        """Publish a notification derived from the log. Text of a delta that arrived as a message is left out."""
        match one:
            case Delta():
                self._announce(one.session_id, one.message_id, one.part_id)
                self._publish_all(self._texts.logged(one))
                return
            case PartUpdated(part=TextPart() | ReasoningPart() as part):
                self._publish(one)
                if is_growing(part):
                    self._publish_all(self._texts.began(part.id, len(part.text)))
                else:
                    self._texts.ended(part.id)
                return
            case PartDeleted(part_id=part_id):
                self._texts.ended(part_id)
            case SessionIdle(session_id=session_id):
                self._texts.rested(session_id)
            case _:
                pass
        self._publish(one)

    def announce(self, view: SessionView) -> None:
        """Publish the open parts of a session that was read for the first time."""
        if view.turn is not None:
            for part_id in view.turn.parts:
                self._announce(view.session.id, view.turn.message.id, part_id)

    def hear(self, *, wanted: bool) -> None:
        """Begin or stop publishing the deltas of other processes."""
        if self._messenger is None or wanted == (self._stop_hearing is not None):
            return
        if self._stop_hearing is not None:
            self._stop_hearing()
            self._stop_hearing = None
        else:
            self._stop_hearing = self._messenger.hear(self._receive)

    def _send(self) -> None:
        waiting, self._waiting, self._waiting_chars = self._waiting, [], 0
        if self._messenger is None:
            return
        messages = [message for one in joined(waiting) for message in _messages(one, self._messenger.message_bytes_max)]
        dropped = self._messenger.send(messages)
        self.counts.sent += len(messages) - dropped
        self.counts.dropped += dropped

    def _receive(self, messages: Sequence[str]) -> None:
        for message in messages:
            try:
                passing = _read(message)
            except UNREADABLE:
                continue  # From a newer version, or from another program on this channel.
            if passing.offset < 0:
                continue
            self.counts.heard += 1
            durable = self._announce(passing.session_id, passing.message_id, passing.part_id)
            delta = Delta(directory="", **msgspec.structs.asdict(passing))  # It is filled in when it is published.
            self._publish_all(self._texts.heard(delta, durable))

    def _announce(self, session_id: str, message_id: str, part_id: str) -> int | None:
        """Publish an open part if it was not published before.

        Returns how many characters of it are in the log, as far as this process has read; None if it is not open there.
        """
        view = self._view(session_id)
        if view is None or view.turn is None or view.turn.message.id != message_id:
            return None
        part = view.turn.parts.get(part_id)
        if part is None or not is_growing(part):
            return None
        if not self._texts.is_told(part_id):
            for one in open_part(view.session, view.turn, part):
                self._publish(one)
            self._publish_all(self._texts.began(part_id, len(part.text)))
        return len(part.text)

    def _publish_all(self, deltas: Sequence[Delta]) -> None:
        for one in deltas:
            view = self._view(one.session_id) if not one.directory else None
            self._publish_delta(one.but(directory=view.session.directory) if view is not None else one)


def is_growing(part: Part) -> TypeGuard[TextPart | ReasoningPart]:
    """Whether more text may be added to a part."""
    return isinstance(part, TextPart | ReasoningPart) and part.time is not None and part.time.end is None


def _messages(delta: Delta, bytes_max: int) -> Iterator[str]:
    """A delta as messages of at most so many bytes; a long text becomes several."""
    try:
        body = encode(msgspec.convert(delta, Passing, from_attributes=True))
    except UnicodeEncodeError:
        return  # Half a character. The log will say what becomes of it.
    if len(body) <= bytes_max:
        yield body.decode()
    elif len(delta.delta) > 1:
        half = len(delta.delta) // 2
        yield from _messages(delta.but(delta=delta.delta[:half]), bytes_max)
        yield from _messages(delta.but(delta=delta.delta[half:], offset=delta.offset + half), bytes_max)
