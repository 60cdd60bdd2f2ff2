"""Change: what an event does to a session, in a small closed vocabulary.

The projector is the only code that matches events; it gives the new view and these changes. Documents, the history,
notifications and the second generation of the API read the changes, each in a ``match`` that ends in
``assert_never``: a change that one of them does not handle is a type error.

Messages and parts in a change carry their place in the log (``seq``, ``nth``).
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
    """The session record is new or differs. It comes first if the session is new, else last."""

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
    """Nothing is set aside any more. ``removed_from`` is the message from which on it was removed; None: it is back."""

    removed_from: str | None = None


class DiffsPut(NamedTuple):
    """The file changes of the session were counted anew."""

    diffs: tuple[FileDiff, ...] | None


class TodosPut(NamedTuple):
    """The task list was replaced."""

    todos: tuple[Todo, ...]


class StatusPut(NamedTuple):
    """The status differs from the one before."""

    status: Status


class Spent(NamedTuple):
    """An attempt was paid for."""

    row: LedgerRow


class PromptPut(NamedTuple):
    """A prompt is in the inbox. ``digest`` is the hash of what the caller sent."""

    prompt: Admitted
    digest: str


class PromptGone(NamedTuple):
    """A prompt left the inbox and was never part of the history."""

    message_id: str


class MessagePut(NamedTuple):
    """A message is new or differs; ``parts`` are new parts of it. ``delivery`` is that of a promoted prompt."""

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
    """A turn is over. ``turn`` is how it stood before."""

    message: AssistantMessage
    turn: OpenTurn


class MessageGone(NamedTuple):
    """A message and its parts left the history. ``turn`` is the open turn before, if the message was its own."""

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
