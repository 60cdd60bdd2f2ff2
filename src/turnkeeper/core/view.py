"""SessionView: what can be known of a session without reading its past. The fold of its log (projector.py).

It holds the session, its input and its open turn, and counts of the rest, so that appending an event costs the
same however long the history is. The history itself is read from documents by those who need it.
"""

from collections.abc import Mapping
from typing import TypeAlias

from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.event import Delivery
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import QuestionReply, QuestionRequest
from turnkeeper.model.session import Session
from turnkeeper.model.status import IDLE, Owner, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value


class Admitted(Value):
    """A prompt in the inbox: safe, not yet promoted. ``seq`` is its place in the order of admission."""

    seq: int
    message: UserMessage
    parts: tuple[Part, ...]
    delivery: Delivery


class OpenTurn(Value):
    """A turn that has started and not ended, with its parts in the order they came.

    ``extended`` names, for each open part, the offsets at which text was added since it was recorded whole.
    """

    message: AssistantMessage
    parts: Mapping[str, Part]
    extended: Mapping[str, tuple[int, ...]] = {}


class PermissionAsk(Value, tag_field="kind", tag="permission"):
    """A permission request of a running call, with its answer once there is one.

    ``restarts``: the call has done nothing yet. ``is_applied``: the call went on with the answer and may have acted.
    """

    request: PermissionRequest
    reply: Reply | None = None
    restarts: bool = True
    is_applied: bool = False


class QuestionAsk(Value, tag_field="kind", tag="question"):
    """Questions of a running call, with their answers once there are any. The flags are those of a permission."""

    request: QuestionRequest
    reply: QuestionReply | None = None
    restarts: bool = True
    is_applied: bool = False


OpenAsk: TypeAlias = PermissionAsk | QuestionAsk
"""A request to the user, from the moment it is asked until its call is settled."""


class Rewritten(Value):
    """A declared change of what requests had already said: where in the log, and why."""

    seq: int
    reason: str
    is_remedy: bool = False
    """It takes away what made a request fail, so the turn that failed is tried again."""


class ViewState(Value):
    """The fields of a view that are small. They are stored as they are, in the state document (store/documents.py)."""

    seq: int
    instructions: tuple[str, ...] = ()
    prefix: Prefix | None = None
    """The newest request, against which the next one is measured."""
    rewritten: Rewritten | None = None
    """The newest pruning or quarantine: the first request after it need not extend the one before."""
    quarantined: tuple[str, ...] = ()
    """Parts that no request has any more, because a provider rejected them or they are too large."""
    status: Status = IDLE
    owner: Owner | None = None
    messages: int = 0
    parts: int = 0


class SessionView(ViewState):
    """A session as it stands after event ``seq``.

    A new field belongs in ``ViewState`` unless it can grow with the history; then it needs a document of its own.
    """

    session: Session
    todos: tuple[Todo, ...] = ()
    inbox: tuple[Admitted, ...] = ()
    epoch: Epoch | None = None
    turn: OpenTurn | None = None
    asks: tuple[OpenAsk, ...] = ()
    """Requests to the user of calls that are not settled, in the order they were asked."""
