"""Event: one durable fact about one session, in the past tense. A log consists of events.

The name on disk is ``KIND`` and the version of the shape: ``part.recorded.1``. A changed shape gets the next version,
an upcast from the old version (core/entry.py) and a golden log of the old version in the tests.
"""

from typing import ClassVar, Literal, TypeAlias

from turnkeeper.model.child import ChildTask
from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.message import AssistantMessage, Message, SystemMessage, UserMessage
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import PermissionAnswer, PermissionRequest, Ruleset
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.restore import FileRestore
from turnkeeper.model.session import FileDiff, Revert, Session, SessionModel, Share, Summary, Tokens
from turnkeeper.model.status import Owner, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject, Value

Delivery: TypeAlias = Literal["steer", "queue"]


class EventBase(Value):
    """Base of all events: the name in the log and the version of the shape."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1


# The session and its settings.


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


class SessionArchived(EventBase):
    """The session was archived: it left the list and kept its data."""

    KIND = "session.archived"
    at: int | float


class SessionRestored(EventBase):
    """The session came back to the list."""

    KIND = "session.restored"


class SessionMoved(EventBase):
    """The session works in another directory from now on."""

    KIND = "session.moved"
    project_id: str
    directory: str
    path: str | None = None
    workspace_id: str | None = None


class SessionShared(EventBase):
    """The session has a public link."""

    KIND = "session.shared"
    share: Share


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


class RestoreBegun(EventBase):
    """Files below ``root`` are about to be written. ``revert`` is what is staged then; None: the revert is cleared.

    ``RevertStaged`` or ``RevertCleared`` follows when all are written. If the process dies before, the next one that
    works on the session writes the rest.
    """

    KIND = "restore.begun"
    root: str
    files: tuple[FileRestore, ...]
    revert: Revert | None = None


class RevertStaged(EventBase):
    """History from a message on was set aside."""

    KIND = "revert.staged"
    revert: Revert


class RevertCleared(EventBase):
    """The history that was set aside came back. ``unwritten``: files that could not be written; a redo tries again."""

    KIND = "revert.cleared"
    unwritten: tuple[str, ...] = ()


class RevertCommitted(EventBase):
    """The history that was set aside was removed. ``ends_epoch``: also what came before the epoch's baseline."""

    KIND = "revert.committed"
    message_id: str
    ends_epoch: bool = False


# The history.


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


# Input.


class PromptAdmitted(EventBase):
    """A prompt is durable in the inbox; requests do not include it yet.

    ``digest`` is the hash of the caller's prompt, by which a repeated prompt is detected.
    """

    KIND = "prompt.admitted"
    message: UserMessage
    parts: tuple[Part, ...]
    delivery: Delivery
    digest: str = ""


class PromptPromoted(EventBase):
    """An admitted prompt became part of the history."""

    KIND = "prompt.promoted"
    message_id: str


class PromptWithdrawn(EventBase):
    """An admitted prompt was withdrawn before it was promoted."""

    KIND = "prompt.withdrawn"
    message_id: str


# System Context.


class EpochStarted(EventBase):
    """A Context Epoch began with this baseline."""

    KIND = "epoch.started"
    epoch: Epoch


class ContextAdmitted(EventBase):
    """Changed components were announced to the model, with the checkpoint that includes them."""

    KIND = "context.admitted"
    message: SystemMessage
    checkpoint: dict[str, str]


class InstructionDiscovered(EventBase):
    """A nested instruction file was found while reading files; it applies from the next boundary on."""

    KIND = "instruction.discovered"
    path: str


# Turns.


class TurnStarted(EventBase):
    """A request is about to be sent; its answer belongs to this message."""

    KIND = "turn.started"
    message: AssistantMessage
    prefix: Prefix | None = None


class TurnEnded(EventBase):
    """The turn ended; the message is final."""

    KIND = "turn.ended"
    message: AssistantMessage


# Requests to the user.


class PermissionAsked(EventBase):
    """A running call waits for the user's permission.

    ``restarts``: the call has done nothing yet, so it may be run again from its beginning.
    """

    KIND = "permission.asked"
    request: PermissionRequest
    restarts: bool = True


class PermissionReplied(EventBase):
    """A permission request was answered, by the user, by another answer that covers it, or at its deadline."""

    KIND = "permission.replied"
    request_id: str
    reply: PermissionAnswer
    feedback: str | None = None


class QuestionAsked(EventBase):
    """A running call waits for the user's answers. ``restarts`` is as in ``PermissionAsked``."""

    KIND = "question.asked"
    request: QuestionRequest
    restarts: bool = True


class QuestionReplied(EventBase):
    """The user answered: for each question the chosen labels or the typed text."""

    KIND = "question.replied"
    request_id: str
    answers: tuple[tuple[str, ...], ...]


class QuestionRejected(EventBase):
    """The user dismissed the questions."""

    KIND = "question.rejected"
    request_id: str


class AnswerApplied(EventBase):
    """The waiting call goes on with its answer. From here on it may have acted, so it is never run again."""

    KIND = "answer.applied"
    request_id: str


# Child Sessions.


class ChildBegun(EventBase):
    """A running call hands its work to a Child Session, which is created and given its prompt after this."""

    KIND = "child.begun"
    task: ChildTask


class ChildEnded(EventBase):
    """The background work of a Child Session is over for this session. A prompt with its result may come with this."""

    KIND = "child.ended"
    session_id: str


class UsageRecorded(EventBase):
    """One row of the ledger: the usage and cost of one attempt, also of a failed one."""

    KIND = "usage.recorded"
    purpose: Literal["turn", "title", "compaction", "summary", "child"]
    provider_id: str
    model_id: str
    message_id: str | None = None
    attempt: int = 1
    tokens: Tokens
    cost: int | float


class StatusChanged(EventBase):
    """The session became idle or busy, or waits to retry. ``owner`` is the process that runs it, if any."""

    KIND = "status.changed"
    status: Status
    owner: Owner | None = None


Event: TypeAlias = (
    SessionCreated
    | SessionTitled
    | SessionTouched
    | SessionArchived
    | SessionRestored
    | SessionMoved
    | SessionShared
    | SessionUnshared
    | PermissionsSet
    | MetadataSet
    | AgentSelected
    | ModelSelected
    | SummaryRecorded
    | TodosSet
    | CompactingSet
    | RestoreBegun
    | RevertStaged
    | RevertCleared
    | RevertCommitted
    | MessageRecorded
    | MessageRemoved
    | PartRecorded
    | PartExtended
    | PartRemoved
    | OutputsPruned
    | PartsQuarantined
    | PromptAdmitted
    | PromptPromoted
    | PromptWithdrawn
    | EpochStarted
    | ContextAdmitted
    | InstructionDiscovered
    | TurnStarted
    | TurnEnded
    | PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
    | AnswerApplied
    | ChildBegun
    | ChildEnded
    | UsageRecorded
    | StatusChanged
)
