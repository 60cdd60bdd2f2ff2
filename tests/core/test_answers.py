"""Answers to requests of calls: which are taken, which are refused, and what else they answer."""

import pytest

from turnkeeper.core.answers import NotAsked, answer_to, reply_to
from turnkeeper.core.view import OpenAsk, OpenTurn, PermissionAsk, QuestionAsk, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.permission import PermissionAnswer, Reply, Rule
from turnkeeper.model.question import QuestionReply
from turnkeeper.model.refusal import Conflict, Invalid
from turnkeeper.testing.builders import a_call, a_permission, a_question, a_session, an_assistant, running

TURN = an_assistant("ses_one", "msg_a", "msg_u", seq=1)
CALL = a_call(TURN, "prt_c", running())
LS = PermissionAsk(request=a_permission(CALL, "per_ls"))
LS_ALL = PermissionAsk(request=a_permission(CALL, "per_ls_all", patterns=("ls -la", "ls"), always=()))
RM = PermissionAsk(request=a_permission(CALL, "per_rm", patterns=("ls", "rm"), always=("rm *",)))
EDIT = PermissionAsk(request=a_permission(CALL, "per_edit", permission="edit", patterns=("ls",)))
ANSWERED = PermissionAsk(request=a_permission(CALL, "per_done"), reply=Reply(answer="once"))
QUESTION = QuestionAsk(request=a_question(CALL))
ALL: tuple[OpenAsk, ...] = (LS, LS_ALL, RM, EDIT, ANSWERED, QUESTION)


def view(*asks: OpenAsk) -> SessionView:
    return SessionView(
        session=a_session("ses_one"), seq=9, asks=asks, turn=OpenTurn(message=TURN, parts={CALL.id: CALL})
    )


def replied(request_id: str, reply: PermissionAnswer, feedback: str | None = None) -> Event:
    return e.PermissionReplied(request_id=request_id, reply=reply, feedback=feedback)


RM_ALLOWED = (Rule(permission="bash", pattern="rm *", action="allow"),)
TABLE: list[tuple[str, Reply, tuple[Rule, ...], list[Event]]] = [
    ("per_ls", Reply(answer="once"), (), [replied("per_ls", "once")]),
    # "ls *" covers both patterns of the second request, and not "rm".
    ("per_ls", Reply(answer="always"), (), [replied("per_ls", "always"), replied("per_ls_all", "always")]),
    (
        "per_ls",
        Reply(answer="always"),
        RM_ALLOWED,
        [replied("per_ls", "always"), replied("per_ls_all", "always"), replied("per_rm", "always")],
    ),
    # Without patterns for good, an approval holds for what was asked.
    ("per_ls_all", Reply(answer="always"), (), [replied("per_ls_all", "always"), replied("per_ls", "always")]),
    ("per_rm", Reply(answer="always"), (), [replied("per_rm", "always")]),
    ("per_edit", Reply(answer="always"), (), [replied("per_edit", "always")]),
    (
        "per_rm",
        Reply(answer="reject", feedback="No."),
        (),
        [replied("per_rm", "reject", "No."), *(replied(f"per_{one}", "reject") for one in ("ls", "ls_all", "edit"))],
    ),
    (
        "per_rm",
        Reply(answer="reject", absence="nobody"),
        (),
        [
            e.PermissionReplied(request_id=f"per_{one}", reply="reject", absence="nobody")
            for one in ("rm", "ls", "ls_all", "edit")
        ],
    ),
    ("per_done", Reply(answer="once"), (), []),
]


@pytest.mark.parametrize(("request_id", "reply", "approvals", "events"), TABLE)
def test_a_reply_answers_its_request_and_what_follows_from_it(
    request_id: str, reply: Reply, approvals: tuple[Rule, ...], events: list[Event]
) -> None:
    assert reply_to(view(*ALL), request_id, reply, approvals) == events


@pytest.mark.parametrize("reply", [Reply(answer="always"), Reply(answer="reject"), Reply(answer="once", feedback="x")])
def test_another_answer_than_the_first_is_refused(reply: Reply) -> None:
    with pytest.raises(Conflict, match="answered already"):
        reply_to(view(*ALL), "per_done", reply)


@pytest.mark.parametrize("request_id", ["per_unknown", "que_1", ""])
def test_what_was_not_asked_cannot_be_permitted(request_id: str) -> None:
    with pytest.raises(NotAsked):
        reply_to(view(*ALL), request_id, Reply(answer="once"))


def test_questions_are_answered_one_by_one_or_dismissed() -> None:
    asking = view(*ALL)
    answers = (("Red",),)
    replied = e.QuestionReplied(request_id="que_1", answers=answers)
    assert answer_to(asking, "que_1", QuestionReply(answers=answers)) == [replied]
    assert answer_to(asking, "que_1", QuestionReply(answers=((),))) == [replied.but(answers=((),))]
    assert answer_to(asking, "que_1", QuestionReply()) == [e.QuestionRejected(request_id="que_1")]
    with pytest.raises(Invalid, match="takes one answer, and 2 are given"):
        answer_to(asking, "que_1", QuestionReply(answers=(("Red", "Blue"),)))
    for wrong in ((), answers * 2):
        with pytest.raises(Invalid, match=f"{len(wrong)} are answered"):
            answer_to(asking, "que_1", QuestionReply(answers=wrong))
    with pytest.raises(NotAsked):
        answer_to(asking, "per_ls", QuestionReply(answers=answers))
    done = view(QUESTION.but(reply=QuestionReply(answers=answers)))
    assert answer_to(done, "que_1", QuestionReply(answers=answers)) == []
    with pytest.raises(Conflict):
        answer_to(done, "que_1", QuestionReply())
