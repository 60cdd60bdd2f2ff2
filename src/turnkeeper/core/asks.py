"""Requests to the user: how the fold keeps them, and what they mean for the turn whose calls wait.

A call that has handed its work to a Child Session (``child_tasks``) waits likewise.

An ask belongs to a running call of the open turn. It leaves the view when the call is settled, its part or message is
removed, or the turn ends. A turn is **suspended** once its answer is closed and paid for and only calls that wait are
left; the mark of the step in an open turn says so. A suspended turn needs no process: its calls are run again from
their beginning as soon as one of them has its answer.
"""

from collections.abc import Callable, Collection
from typing import Literal, TypeAlias

from turnkeeper.core.changes import AskAnswered, AskGone, AskPut, Change
from turnkeeper.core.child_tasks import task_of
from turnkeeper.core.entry import Damaged
from turnkeeper.core.open_calls import has_open_call, is_open
from turnkeeper.core.view import OpenAsk, OpenTurn, PermissionAsk, SessionView
from turnkeeper.model.parts import Part, StepFinishPart, ToolPart
from turnkeeper.model.permission import Reply
from turnkeeper.model.question import QuestionReply

Step: TypeAlias = tuple[SessionView, tuple[Change, ...]]

TurnState: TypeAlias = Literal["lost", "waits", "answered"]
"""What an open turn that no process runs needs: to be closed, an answer of the user, or to be resumed."""


# The fold.


def asked(view: SessionView, seq: int, ask: OpenAsk) -> Step:
    """The view with one more ask. A call that asks again has done nothing yet, so its earlier answers are unused."""
    by, turn = ask.request.tool, view.turn
    if not has_open_call(turn, by.message_id, by.call_id):
        raise Damaged(seq, f"asks for the call {by.call_id}, which is not running")
    earlier = view.asks
    if ask.restarts:
        earlier = tuple(one.but(is_applied=False) if one.request.tool == by else one for one in earlier)
    return view.but(asks=(*earlier, ask)), (AskPut(ask),)


def replied(view: SessionView, seq: int, request_id: str, reply: Reply | QuestionReply) -> Step:
    """The view with an answer."""
    ask = _find(view, seq, request_id)
    if ask.reply is not None or isinstance(ask, PermissionAsk) is not isinstance(reply, Reply):
        raise Damaged(seq, f"answers {request_id}, which does not wait for such an answer")
    answered = ask.but(reply=reply)
    return _with(view, answered), (AskAnswered(answered),)


def applied(view: SessionView, seq: int, request_id: str) -> Step:
    """The view in which a call has gone on with its answer."""
    ask = _find(view, seq, request_id)
    if ask.reply is None or ask.is_applied:
        raise Damaged(seq, f"applies the answer to {request_id}, which has none that is unused")
    return _with(view, ask.but(is_applied=True)), ()


def without(view: SessionView, is_gone: Callable[[OpenAsk], bool]) -> Step:
    """The view without some asks. Those that were never answered are changes, so that clients stop showing them."""
    gone = [ask for ask in view.asks if is_gone(ask)]
    if not gone:
        return view, ()
    kept = tuple(ask for ask in view.asks if ask not in gone)
    return view.but(asks=kept), tuple(AskGone(ask) for ask in gone if ask.reply is None)


def without_call(view: SessionView, part: Part | None) -> Step:
    """The view without the asks of one call."""
    if not view.asks or not isinstance(part, ToolPart):
        return view, ()
    return without(view, lambda ask: is_of(ask, part))


# What they mean for a turn.


def is_of(ask: OpenAsk, part: Part) -> bool:
    """Whether an ask is one of this call."""
    by = ask.request.tool
    return isinstance(part, ToolPart) and (part.message_id, part.call_id) == (by.message_id, by.call_id)


def is_waiting(view: SessionView, part: Part) -> bool:
    """Whether a call waits for the user, for its Child Session, or for a process to go on with what came of that.

    It can be run again from its beginning: it has done nothing yet, or finds the Child Session that does its work.
    """
    if is_open(part) and task_of(view, part) is not None:
        return True
    own = [ask for ask in view.asks if is_of(ask, part)]
    return bool(own) and is_open(part) and all(ask.restarts and not ask.is_applied for ask in own)


def waiting_calls(view: SessionView) -> list[ToolPart]:
    """The calls of the open turn that wait, in order."""
    parts = view.turn.parts.values() if view.turn is not None else ()
    return [part for part in parts if isinstance(part, ToolPart) and is_waiting(view, part)]


def is_suspended(turn: OpenTurn) -> bool:
    """Whether a turn was closed but for its waiting calls."""
    return any(isinstance(part, StepFinishPart) for part in turn.parts.values())


def turn_state(view: SessionView, held: Collection[str] = ()) -> TurnState:
    """What the open turn needs, if no process runs it. An ask with a deadline needs a process that keeps it.

    ``held`` are the Child Sessions that only the user can help on. The calls that wait for others run again.
    """
    turn = view.turn
    assert turn is not None, "only an open turn is judged"
    if not is_suspended(turn):
        return "lost"
    calls = [part for part in turn.parts.values() if is_open(part)]
    if not all(is_waiting(view, part) for part in calls):
        return "lost"
    is_due = any(ask.reply is not None or ask.request.deadline is not None for ask in view.asks)
    tasks = [task for part in calls if (task := task_of(view, part)) is not None]
    is_due = is_due or any(task.session_id not in held for task in tasks)
    return "answered" if is_due or not calls else "waits"


def is_held(view: SessionView, below: Collection[str], *, is_attended: bool) -> bool:
    """Whether a session waits for the user, and no process runs it. ``below`` are its Child Sessions that do."""
    if view.turn is None or view.owner is not None:
        return False
    is_unanswered = not is_attended and (below or any(ask.reply is None for ask in view.asks))
    return bool(is_unanswered) or turn_state(view, below) == "waits"


def _find(view: SessionView, seq: int, request_id: str) -> OpenAsk:
    for ask in view.asks:
        if ask.request.id == request_id:
            return ask
    raise Damaged(seq, f"names the request {request_id}, which is not open")


def _with(view: SessionView, changed: OpenAsk) -> SessionView:
    same = changed.request.id
    return view.but(asks=tuple(changed if ask.request.id == same else ask for ask in view.asks))
