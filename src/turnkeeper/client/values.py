"""What only clients know of: questions that wait, and durable events as the second generation spells them."""

from typing import Literal, TypeAlias

from turnkeeper.model.value import JsonObject, Value

Answer: TypeAlias = Literal["once", "always", "reject"]


class AskedBy(Value):
    """The call that asks."""

    message_id: str
    call_id: str


class PendingPermission(Value):
    """A question for permission that waits for somebody's answer."""

    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: JsonObject
    always: tuple[str, ...]
    tool: AskedBy | None = None


class SessionEvent(Value):
    """One durable event of a session. ``number`` is its place, for ever: go on behind it with ``after``."""

    id: str
    type: str
    number: int
    version: int
    data: JsonObject


class Health(Value):
    """Whether a server is well, and its version."""

    healthy: bool
    version: str
