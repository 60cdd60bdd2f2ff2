"""BasePart: what every part has."""

import msgspec

from turnkeeper.model.value import JsonObject, Private, Value


class BasePart(Value):
    """The smallest addressed piece of a message.

    ``seq`` is the place of the event that made it (0 until recorded) and ``nth`` its place among the parts of that
    event. Their order is the order of parts in a message; ids say nothing about it.
    """

    id: str
    session_id: str
    message_id: str
    seq: Private[int] = 0
    nth: Private[int] = 0
    extra: Private[JsonObject | None] = msgspec.field(default=None, name="$extra")


class Span(Value):
    """From when to when; without an end it is still open."""

    start: int
    end: int | None = None


class Mention(Value):
    """The stretch of a prompt's text that stands for an attachment."""

    value: str
    start: int
    end: int
