"""SessionView: the current state of a session, the fold of its log (projector.py).

It holds the session, its inbox, its open turn and counts of messages and parts, but not the history. So the cost of an
append does not depend on the length of the history.
"""

from collections.abc import Mapping

from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.event import Delivery
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Session
from turnkeeper.model.status import IDLE, Owner, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value


class Admitted(Value):
    """A prompt in the inbox, not yet promoted. ``seq`` is the seq of its admission."""

    seq: int
    message: UserMessage
    parts: tuple[Part, ...]
    delivery: Delivery


class OpenTurn(Value):
    """A turn that has started and not ended, with its parts in order.

    ``extended`` has, for each open part, the offsets at which text was added since the part was recorded.
    """

    message: AssistantMessage
    parts: Mapping[str, Part]
    extended: Mapping[str, tuple[int, ...]] = {}


class Rewritten(Value):
    """A pruning or quarantine: requests after event ``seq`` differ from earlier ones."""

    seq: int
    reason: str
    is_remedy: bool = False
    """It removes the cause of a failed request, so the failed turn is tried again."""


class ViewState(Value):
    """The small fields of a view, which the state document stores (store/documents.py)."""

    seq: int
    instructions: tuple[str, ...] = ()
    prefix: Prefix | None = None
    """The measured prefix of the newest request."""
    rewritten: Rewritten | None = None
    """The newest pruning or quarantine: the first request after it need not extend the one before."""
    quarantined: tuple[str, ...] = ()
    """Parts that requests leave out, because a provider rejected them or they are too large."""
    status: Status = IDLE
    owner: Owner | None = None
    messages: int = 0
    parts: int = 0


class SessionView(ViewState):
    """The state of a session after event ``seq``.

    A new field belongs in ``ViewState`` unless it can grow with the history; then it needs a document of its own.
    """

    session: Session
    todos: tuple[Todo, ...] = ()
    inbox: tuple[Admitted, ...] = ()
    epoch: Epoch | None = None
    turn: OpenTurn | None = None
