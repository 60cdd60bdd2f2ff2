"""BasePart: the fields of every part, and values that several parts share."""

import msgspec

from turnkeeper.model.value import JsonObject, Private, Value


class BasePart(Value):
    """The smallest piece of a message with an id.

    ``seq`` is the seq of the event that added it (0 until recorded), ``nth`` its index among the parts of that event.
    Parts of a message are ordered by both, not by id.
    """

    id: str
    session_id: str
    message_id: str
    seq: Private[int] = 0
    nth: Private[int] = 0
    extra: Private[JsonObject | None] = msgspec.field(default=None, name="$extra")


class Span(Value):
    """A time span; open without an end."""

    start: int
    end: int | None = None


class Mention(Value):
    """The range of a prompt's text that mentions an attachment."""

    value: str
    start: int
    end: int
