"""The history: messages and parts that come, change, go, or are left out of requests."""

from turnkeeper.model.events.base import EventBase
from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part


class MessageRecorded(EventBase):
    """A message was added, or (with a ``seq``) replaced; ``parts`` are its new parts."""

    KIND = "message.recorded"
    message: Message
    parts: tuple[Part, ...] = ()


class MessageRemoved(EventBase):
    """A message and its parts left the history. ``seq`` is its place."""

    KIND = "message.removed"
    message_id: str
    seq: int
    part_ids: tuple[str, ...] = ()


class PartRecorded(EventBase):
    """A part was added or replaced; ``part`` is the whole part."""

    KIND = "part.recorded"
    part: Part


class PartExtended(EventBase):
    """Text was added to an open part, so that it survives a kill. ``PartRecorded`` closes the part."""

    KIND = "part.extended"
    message_id: str
    part_id: str
    offset: int
    text: str


class PartRemoved(EventBase):
    """A part left its message."""

    KIND = "part.removed"
    message_id: str
    part_id: str


class OutputsPruned(EventBase):
    """Old tool outputs are left out of requests. Their parts, recorded with this event, keep them."""

    KIND = "outputs.pruned"
    part_ids: tuple[str, ...]
    tokens: int
    """An estimate of the tokens saved in each request."""
    reason: str


class PartsQuarantined(EventBase):
    """Requests leave out these parts, which a provider rejected or which are too large. The history keeps them."""

    KIND = "parts.quarantined"
    message_id: str
    part_ids: tuple[str, ...]
    reason: str
