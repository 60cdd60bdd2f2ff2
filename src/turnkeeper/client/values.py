"""Values that only clients use: agents, models, saved approvals, and durable events of the second generation."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from turnkeeper.model.permission import SavedApproval
from turnkeeper.model.value import JsonObject, Value


def is_near(url: str) -> bool:
    """Whether a URL leads to this machine, so that paths mean the same on both sides."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


class AgentSummary(Value):
    """An agent of a server: its name, and who may use it."""

    name: str
    mode: str
    hidden: bool | None = None
    description: str | None = None


class ModelLimit(Value):
    """The limits of a model in tokens; 0 is unknown."""

    context: int = 0


class ModelSummary(Value):
    """A model of a server."""

    id: str
    name: str = ""
    limit: ModelLimit = ModelLimit()


class ProviderSummary(Value):
    """A provider that a server can use, with its models by their ids."""

    id: str
    models: Mapping[str, ModelSummary]


class UsableProviders(Value):
    """The providers that a server can use."""

    providers: tuple[ProviderSummary, ...]


class SavedPermission(Value):
    """A saved approval in the wire format of a server, which has no time."""

    id: str
    project_id: str
    action: str
    resource: str

    def approval(self) -> SavedApproval:
        """The value as a store gives it."""
        return SavedApproval(
            id=self.id, project_id=self.project_id, permission=self.action, pattern=self.resource, created=0
        )


class SavedPermissions(Value):
    """A list of saved permissions."""

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
