"""SessionView: the current state of a session, the fold of its log (projector.py).

It holds the session, its inbox, its open turn and counts of messages and parts, but not the history. So the cost of an
append does not depend on the length of the history.
"""

from collections.abc import Mapping
from typing import TypeAlias

from turnkeeper.model.child import ChildTask
from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.event import Delivery
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import QuestionReply, QuestionRequest
from turnkeeper.model.restore import FileRestore
from turnkeeper.model.session import Revert, Session
from turnkeeper.model.share import HostedShare
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


class Restore(Value):
    """The files of a revert. ``is_open``: they are being written, or the process that wrote them died.

    Then ``revert`` is what is staged when all are written; None: the revert is cleared. Later, until the revert ends, a
    redo knows by ``files`` what the revert has done to each of them. ``unwritten`` are those that could not be written:
    the same undo or redo tries them again.
    """

    root: str
    files: tuple[FileRestore, ...]
    revert: Revert | None = None
    is_open: bool = True
    unwritten: tuple[str, ...] = ()


class Rewritten(Value):
    """A pruning or quarantine: requests after event ``seq`` differ from earlier ones."""

    seq: int
    reason: str
    is_remedy: bool = False
    """It removes the cause of a failed request, so the failed turn is tried again."""


class FirstPatch(Value):
    """The message of the first turn that changed files, and the snapshot before it."""

    message_id: str
    tree: str


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
    first_patch: FirstPatch | None = None
    """The first turn that changed files: where the diff of the session begins."""
    status: Status = IDLE
    owner: Owner | None = None
    messages: int = 0
    parts: int = 0
    children: tuple[ChildTask, ...] = ()
    """Work of Child Sessions whose results the session does not have yet, in the order it was handed on."""
    turn_ended: int = 0
    """The seq of the event that ended the newest turn."""


class SessionView(ViewState):
    """The state of a session after event ``seq``.

    A new field belongs in ``ViewState`` unless it can grow with the history; then it needs a document of its own.
    """

    session: Session
    todos: tuple[Todo, ...] = ()
    inbox: tuple[Admitted, ...] = ()
    epoch: Epoch | None = None
    turn: OpenTurn | None = None
    asks: tuple[OpenAsk, ...] = ()
    """Requests to the user of calls that are not settled, in the order they were asked."""
    restore: Restore | None = None
    """The files of a pending revert, and of a revert that is being carried out."""
    hosted: HostedShare | None = None
    """The share link of the session, if our own server hosts it."""
