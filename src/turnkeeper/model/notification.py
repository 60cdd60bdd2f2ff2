"""Notification: a message to subscribers about a session. Derived from events, not stored."""

from typing import Literal

from turnkeeper.model.value import JsonObject, Value


class Notification(Value):
    """A change of a session, under its API name. ``seq`` is the seq of its event.

    ``id`` and ``time`` are derived from the event; both are empty for a notification without an event.
    """

    type: str
    session_id: str
    directory: str
    seq: int
    properties: JsonObject
    id: str = ""
    time: int = 0
    project_id: str | None = None

    @property
    def droppable(self) -> bool:
        """Whether a slow subscriber may miss it: no, it announces a durable change."""
        return False


class Delta(Value):
    """A fragment of streaming text, not stored; the next ``message.part.updated`` has the whole text."""

    session_id: str
    directory: str
    message_id: str
    part_id: str
    field: str
    delta: str
    offset: int
    kind: Literal["text", "reasoning"] = "text"
    """The type of the part."""
    type: str = "message.part.delta"

    @property
    def droppable(self) -> bool:
        """Whether a slow subscriber may miss it: yes, the text is in the part."""
        return True
