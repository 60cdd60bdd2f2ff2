"""What only clients know of: questions that wait, and durable events as the second generation spells them."""

from typing import TypeAlias
from urllib.parse import urlsplit

from turnkeeper.model.permission import Answer, AskedBy, SavedApproval
from turnkeeper.model.value import JsonObject, Value

PermissionAnswer: TypeAlias = Answer


def is_near(url: str) -> bool:
    """Whether an address leads to this machine, where paths mean what they mean here."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


class PendingPermission(Value):
    """A question for permission that waits for somebody's answer."""

    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: JsonObject
    always: tuple[str, ...]
    tool: AskedBy | None = None


class SavedPermission(Value):
    """What was allowed for good, as a server spells it. It does not say since when."""

    id: str
    project_id: str
    action: str
    resource: str

    def approval(self) -> SavedApproval:
        """The same in the words of a store."""
        return SavedApproval(
            id=self.id, project_id=self.project_id, permission=self.action, pattern=self.resource, created=0
        )


class SavedPermissions(Value):
    """All of these."""

    data: tuple[SavedPermission, ...]


class SessionEvent(Value):
    """One durable event of a session. ``number`` is its place, for ever: go on behind it with ``after``."""

    id: str
    type: str
    number: int
    version: int
    data: JsonObject


class StreamPosition(Value):
    """Where an event stands, on the wire."""

    seq: int
    version: int


class WireEvent(Value):
    """A durable event as it comes."""

    id: str
    type: str
    durable: StreamPosition
    data: JsonObject

    def event(self) -> SessionEvent:
        """The same as a caller gets it."""
        place = self.durable
        return SessionEvent(id=self.id, type=self.type, number=place.seq, version=place.version, data=self.data)


class MessagePage(Value):
    """A page of them."""

    data: tuple[WireEvent, ...]
    has_more: bool


class Health(Value):
    """Whether a server is well, and its version."""

    healthy: bool
    version: str
