"""Notification: what a subscriber hears of a session. Derived from events; never stored."""

from typing import Literal

from turnkeeper.model.value import JsonObject, Value


class Notification(Value):
    """One thing that happened, under the name clients know it by. ``seq`` is the event it comes from.

    ``id`` is derived from that event, and ``time`` is when it happened; what no log holds has neither.
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
        """Whether a slow subscriber may miss it: no, it tells of a durable change."""
        return False


class Delta(Value):
    """A stream fragment on its way to a screen: live only, made good by the next ``message.part.updated``."""

    session_id: str
    directory: str
    message_id: str
    part_id: str
    field: str
    delta: str
    offset: int
    kind: Literal["text", "reasoning"] = "text"
    """What the part is, for clients that keep the two apart."""
    type: str = "message.part.delta"

    @property
    def droppable(self) -> bool:
        """Whether a slow subscriber may miss it: yes, the text is in the part."""
        return True
