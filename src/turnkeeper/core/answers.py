"""Answers to requests of calls, decided on the view of a session: what is recorded, or why it is refused.

| The answer | Recorded |
|---|---|
| once | the reply |
| always | the reply, and one for every other request of the session that the approvals now allow |
| reject | the reply, and a rejection without feedback of every other permission request of the session |
| answers to questions, or their dismissal | just that |
| to a request that has the same answer | nothing |
| to a request that has another answer | refused: Conflict |
| to a request that is not open | refused: NotFound |
"""

from collections.abc import Mapping, Sequence
from typing import Final

from turnkeeper.core.permission import Allow, decide
from turnkeeper.core.view import OpenAsk, PermissionAsk, QuestionAsk, SessionView
from turnkeeper.model.event import Event, PermissionReplied, QuestionRejected, QuestionReplied
from turnkeeper.model.permission import Absence, PermissionRequest, Reply, Rule
from turnkeeper.model.question import QuestionReply
from turnkeeper.model.refusal import Conflict, Invalid, NotFound

REJECTED: Final[Mapping[Absence | None, str]] = {
    None: "The user rejected this call.",
    "nobody": "This call needs the user's permission, and nobody could be asked.",
    "late": "This call needs the user's permission, and nobody answered in time.",
}
"""The text of a rejected call for the model, by the reason."""

DISMISSED: Final[Mapping[Absence | None, str]] = {
    None: "The user dismissed the questions.",
    "nobody": "Nobody could be asked the questions.",
    "late": "Nobody answered the questions in time.",
}
"""The text of unanswered questions for the model, by the reason."""


class NotAsked(NotFound):
    """There is no such request, or no longer."""


def reply_to(view: SessionView, request_id: str, reply: Reply, approvals: Sequence[Rule] = ()) -> list[Event]:
    """The events of a reply to a permission request. ``approvals`` are those that hold besides this reply.

    The view must have long patterns in full, as ``whole`` gives it.
    """
    ask = next((one for one in view.asks if isinstance(one, PermissionAsk) and one.request.id == request_id), None)
    if ask is None:
        raise NotAsked(f"there is no permission request {request_id!r} that waits for an answer")
    if ask.reply is not None:
        return _again(ask, reply)
    first = PermissionReplied(request_id=request_id, reply=reply.answer, feedback=reply.feedback, absence=reply.absence)
    others = [one for one in view.asks if isinstance(one, PermissionAsk) and one is not ask and one.reply is None]
    match reply.answer:
        case "once":
            return [first]
        case "reject":
            return [first, *_all(others, reply)]
        case "always":
            allowed = (*approvals, *approved_by(ask.request))
            return [first, *_all([one for one in others if _is_allowed(one.request, allowed)], reply)]


def answer_to(view: SessionView, request_id: str, reply: QuestionReply) -> list[Event]:
    """The events of an answer to questions, or of their dismissal."""
    ask = next((one for one in view.asks if isinstance(one, QuestionAsk) and one.request.id == request_id), None)
    if ask is None:
        raise NotAsked(f"there is no question {request_id!r} that waits for an answer")
    if ask.reply is not None:
        return _again(ask, reply)
    if reply.answers is None:
        return [QuestionRejected(request_id=request_id, absence=reply.absence)]
    if len(reply.answers) != len(ask.request.questions):
        asked, given = len(ask.request.questions), len(reply.answers)
        raise Invalid(f"{request_id} asks {asked} question(s) and {given} are answered; give one answer for each")
    for question, chosen in zip(ask.request.questions, reply.answers, strict=True):
        if len(chosen) > 1 and not question.multiple:
            raise Invalid(f"{question.question!r:.80} takes one answer, and {len(chosen)} are given; give one")
    return [QuestionReplied(request_id=request_id, answers=reply.answers)]


def approved_by(request: PermissionRequest) -> tuple[Rule, ...]:
    """The rules that an answer "always" to this request adds."""
    patterns = request.always or request.patterns
    return tuple(Rule(permission=request.permission, pattern=pattern, action="allow") for pattern in patterns)


def _is_allowed(request: PermissionRequest, approvals: Sequence[Rule]) -> bool:
    return isinstance(decide((), request.permission, request.patterns, approvals), Allow)


def _all(asks: Sequence[PermissionAsk], reply: Reply) -> list[Event]:
    return [PermissionReplied(request_id=ask.request.id, reply=reply.answer, absence=reply.absence) for ask in asks]


def _again(ask: OpenAsk, reply: Reply | QuestionReply) -> list[Event]:
    """An answer that is repeated changes nothing, so that a client may send it again."""
    if ask.reply == reply:
        return []
    raise Conflict(f"{ask.request.id} was answered already, and not like this; its call goes on by the first answer")
