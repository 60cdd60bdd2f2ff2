"""Values that only clients use: saved approvals, and durable events of the second generation."""

from urllib.parse import urlsplit

from turnkeeper.model.permission import SavedApproval
from turnkeeper.model.value import JsonObject, Value


def is_near(url: str) -> bool:
    """Whether a URL leads to this machine, so that paths mean the same on both sides."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


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
    """A durable event of a session. ``number`` is its permanent position: pass it as ``after`` to continue."""

    id: str
    type: str
    number: int
    version: int
    data: JsonObject


class StreamPosition(Value):
    """The position of an event on the wire."""

    seq: int
    version: int


class WireEvent(Value):
    """A durable event on the wire."""

    id: str
    type: str
    durable: StreamPosition
    data: JsonObject

    def event(self) -> SessionEvent:
        """The event as callers receive it."""
        place = self.durable
        return SessionEvent(id=self.id, type=self.type, number=place.seq, version=place.version, data=self.data)


class MessagePage(Value):
    """A page of durable events."""

    data: tuple[WireEvent, ...]
    has_more: bool


class Health(Value):
    """The answer to a health check."""

    healthy: bool
    version: str
