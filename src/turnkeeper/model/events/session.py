"""The session and its settings: creation, place, title, rules, agent, model, todos."""

from turnkeeper.model.events.base import EventBase
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.session import FileDiff, Session, SessionModel, Share, Summary, Tokens
from turnkeeper.model.share import HostedShare
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject


class SessionCreated(EventBase):
    """A session began. That of an import may have totals."""

    KIND = "session.created"
    session: Session


class SessionTitled(EventBase):
    """The title changed. This is no activity."""

    KIND = "session.titled"
    title: str


class SessionTouched(EventBase):
    """Something happened that counts as activity."""

    KIND = "session.touched"


class SourceFollowed(EventBase):
    """The source of an imported session went on, and the session got these values.

    ``updated`` is the time of the newest activity in the source. ``tokens`` and ``cost`` are the usage of what is new;
    they are added to the totals and not to the ledger, as at the first import.
    """

    KIND = "source.followed"
    updated: int
    title: str
    metadata: JsonObject | None
    agent: str | None
    model: SessionModel | None
    summary: Summary | None
    tokens: Tokens
    cost: int | float


class SessionArchived(EventBase):
    """The session was archived: it left the list and kept its data."""

    KIND = "session.archived"
    at: int | float


class SessionRestored(EventBase):
    """The session came back to the list."""

    KIND = "session.restored"


class SessionMoved(EventBase):
    """The session works in another directory, or on hosts with another label, from now on."""

    KIND = "session.moved"
    project_id: str
    directory: str
    path: str | None = None
    workspace_id: str | None = None
    label: str | None = None


class SessionShared(EventBase):
    """The session has a public link."""

    KIND = "session.shared"
    share: Share
    hosted: HostedShare | None = None
    """What is stored of the link; None for a link of another program."""


class SessionUnshared(EventBase):
    """The public link is gone."""

    KIND = "session.unshared"


class PermissionsSet(EventBase):
    """The session's own permission rules were replaced; None removes them."""

    KIND = "permissions.set"
    rules: Ruleset | None


class MetadataSet(EventBase):
    """The caller's free metadata was replaced as a whole."""

    KIND = "metadata.set"
    metadata: JsonObject | None


class AgentSelected(EventBase):
    """The session's agent changed."""

    KIND = "agent.selected"
    agent: str | None


class ModelSelected(EventBase):
    """The session's model changed."""

    KIND = "model.selected"
    model: SessionModel | None


class SummaryRecorded(EventBase):
    """The file changes of the session were computed again; ``diffs`` have a document of their own."""

    KIND = "summary.recorded"
    summary: Summary | None
    diffs: tuple[FileDiff, ...] | None = None


class TodosSet(EventBase):
    """The task list was replaced."""

    KIND = "todos.set"
    todos: tuple[Todo, ...]


class CompactingSet(EventBase):
    """A compaction began at ``at``, or ended (None)."""

    KIND = "compacting.set"
    at: int | None
