"""Change: what an event does to a session, one of a closed set of types.

Only the projector matches events; it gives the new view and these changes. Documents, the history, notifications and
the second generation of the API match changes and end in ``assert_never``, so that an unhandled change is a type error.

Messages and parts in a change have their ``seq`` and ``nth``.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from turnkeeper.core.view import Admitted, OpenAsk, OpenTurn
from turnkeeper.model.event import Delivery
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.message import AssistantMessage, Message, SystemMessage
from turnkeeper.model.parts import Part
from turnkeeper.model.session import FileDiff, Revert, Session, SessionModel
from turnkeeper.model.status import Status
from turnkeeper.model.todo import Todo


class SessionPut(NamedTuple):
    """The session record is new or differs. It is the first change if the session is new, else the last."""

    session: Session
    is_new: bool = False


class DirectoryPut(NamedTuple):
    """The session works in another directory."""

    directory: str


class AgentPut(NamedTuple):
    """The session's agent was selected. ``is_for_prompt``: as part of the admission of a prompt."""

    agent: str | None
    is_for_prompt: bool


class ModelPut(NamedTuple):
    """The session's model was selected. ``is_for_prompt``: as part of the admission of a prompt."""

    model: SessionModel | None
    is_for_prompt: bool


class RevertPut(NamedTuple):
    """History from a message on is set aside."""

    revert: Revert


class RevertGone(NamedTuple):
    """A revert ended. ``removed_from`` is the first message that was removed; None if the history is back."""

    removed_from: str | None = None


class DiffsPut(NamedTuple):
    """The file changes of the session were computed again."""

    diffs: tuple[FileDiff, ...] | None


class TodosPut(NamedTuple):
    """The task list was replaced."""

    todos: tuple[Todo, ...]


class StatusPut(NamedTuple):
    """The status differs from the one before."""

    status: Status


class Spent(NamedTuple):
    """A ledger row was added."""

    row: LedgerRow


class PromptPut(NamedTuple):
    """A prompt is in the inbox. ``digest`` is the hash of the caller's prompt."""

    prompt: Admitted
    digest: str


class PromptGone(NamedTuple):
    """A prompt was withdrawn from the inbox."""

    message_id: str


class MessagePut(NamedTuple):
    """A message is new or differs; ``parts`` are its new parts. ``delivery`` is set for a promoted prompt."""

    message: Message
    parts: Sequence[Part]
    is_new: bool
    delivery: Delivery | None = None


class ContextPut(NamedTuple):
    """A message announces changed components of the System Context."""

    message: SystemMessage


class TurnOpened(NamedTuple):
    """A turn began. ``is_asked``: a request is sent to a model for it."""

    message: AssistantMessage
    is_asked: bool


class TurnClosed(NamedTuple):
    """A turn ended. ``turn`` is the open turn before."""

    message: AssistantMessage
    turn: OpenTurn


class MessageGone(NamedTuple):
    """A message and its parts left the history. ``turn`` is the open turn before, if the message belonged to it."""

    message_id: str
    seq: int
    part_ids: tuple[str, ...]
    turn: OpenTurn | None


class PartPut(NamedTuple):
    """A part is new or differs. ``turn`` is the open turn before, if the part belongs to it."""

    part: Part
    turn: OpenTurn | None


class PartGrown(NamedTuple):
    """Text was added to an open part."""

    message_id: str
    part_id: str
    offset: int
    text: str


class PartGone(NamedTuple):
    """A part left its message. ``turn`` is the open turn before, if the part belonged to it."""

    message_id: str
    part_id: str
    turn: OpenTurn | None


class PartsRejected(NamedTuple):
    """A provider rejected parts; requests no longer have them. ``is_running``: a turn goes on without them."""

    reason: str
    is_running: bool


class AskPut(NamedTuple):
    """A call waits for the user."""

    ask: OpenAsk


class AskAnswered(NamedTuple):
    """A request to the user has its answer."""

    ask: OpenAsk


class AskGone(NamedTuple):
    """A call no longer waits for the user, and was never answered."""

    ask: OpenAsk


Change: TypeAlias = (
    SessionPut
    | DirectoryPut
    | AgentPut
    | ModelPut
    | RevertPut
    | RevertGone
    | DiffsPut
    | TodosPut
    | StatusPut
    | Spent
    | PromptPut
    | PromptGone
    | MessagePut
    | ContextPut
    | TurnOpened
    | TurnClosed
    | MessageGone
    | PartPut
    | PartGrown
    | PartGone
    | PartsRejected
    | AskPut
    | AskAnswered
    | AskGone
)
