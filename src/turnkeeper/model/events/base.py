"""EventBase: the name of an event in the log, and the version of its shape."""

from typing import ClassVar

from turnkeeper.model.value import Value


class EventBase(Value):
    """Base of all events: the name in the log and the version of the shape."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1
