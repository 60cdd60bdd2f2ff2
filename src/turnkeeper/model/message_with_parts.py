"""MessageWithParts: a message in the API."""

from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part
from turnkeeper.model.value import Value


class MessageWithParts(Value):
    """A message and its parts in order."""

    info: Message
    parts: tuple[Part, ...]
