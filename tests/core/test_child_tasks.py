"""Child tasks: what the fold keeps of the work that calls have handed on, and what came of it."""

import msgspec
import pytest

from turnkeeper.core.asks import TurnState, turn_state
from turnkeeper.core.child_results import (
    ChildReport,
    ChildResult,
    child_result,
    delivery_events,
    prompt_of,
    report_of,
    task_block,
)
from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.core.family import family, total_cost
from turnkeeper.core.projector import apply
from turnkeeper.core.view import OpenTurn, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.child import ChildTask
from turnkeeper.model.event import Event
from turnkeeper.model.failure import AbortedFailure, MessageData, UnknownData, UnknownFailure
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, StepFinishPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import SettledTime, ToolError
from turnkeeper.model.session import Revert, SessionModel
from turnkeeper.testing.builders import NOW, SOME_TOKENS, a_call, a_session, a_text, an_assistant, completed, running

TURN = an_assistant("ses_one", "msg_a", "msg_u", seq=1)
CALL: ToolPart = a_call(TURN, "prt_c", running(), seq=1)
DONE = CALL.but(state=completed())
MARK = StepFinishPart(
    id="prt_m", session_id="ses_one", message_id="msg_a", reason="tool-calls", cost=0, tokens=SOME_TOKENS, seq=1
)
TASK = ChildTask(session_id="ses_child", prompt_id="msg_p", message_id="msg_a", call_id=CALL.call_id, agent="helper")
BEHIND = TASK.but(background=True)
BEGUN, BEGUN_BEHIND, ENDED = e.ChildBegun(task=TASK), e.ChildBegun(task=BEHIND), e.ChildEnded(session_id="ses_child")
SETTLED, TURN_ENDED = e.PartRecorded(part=DONE), e.TurnEnded(message=TURN.but(seq=0))


def view(*parts: Part) -> SessionView:
    turn = OpenTurn(message=TURN, parts={part.id: part for part in parts})
    return SessionView(session=a_session("ses_one"), seq=9, turn=turn)


def after(before: SessionView, *events: Event) -> SessionView:
    for seq, event in enumerate(events, before.seq + 1):
        before = apply(before, Recorded(seq, NOW, event)).view
    return before


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ((BEGUN,), (TASK,)),
        ((BEGUN, SETTLED), ()),
        ((BEGUN, TURN_ENDED), ()),
        ((BEGUN, e.PartRemoved(message_id="msg_a", part_id="prt_c")), ()),
        ((BEGUN_BEHIND, SETTLED, TURN_ENDED), (BEHIND,)),
        ((BEGUN_BEHIND, SETTLED, ENDED), ()),
        ((BEGUN_BEHIND, ENDED), (BEHIND.but(is_over=True),)),
        ((BEGUN_BEHIND, ENDED, SETTLED), ()),
        ((BEGUN, ENDED), (TASK,)),
    ],
    ids=[
        "begun",
        "settled",
        "the turn ended",
        "the call was removed",
        "goes on in the background",
        "reported",
        "reported before its call is settled",
        "and then settled",
        "waited for, and not in the background",
    ],
)
def test_a_task_stays_until_the_session_has_its_result(events: tuple[Event, ...], left: tuple[ChildTask, ...]) -> None:
    assert after(view(CALL), *events).children == left


def test_a_task_of_a_call_that_does_not_run_is_damage() -> None:
    with pytest.raises(Damaged, match="hands on the work of the call"):
        after(view(DONE), BEGUN)


@pytest.mark.parametrize(
    ("parts", "held", "expected"),
    [
        ((CALL,), (), "lost"),
        ((CALL, MARK), (), "answered"),
        ((CALL, MARK), ("ses_child",), "waits"),
        ((CALL, MARK), ("ses_other",), "answered"),
    ],
    ids=["as a kill leaves it", "the child can go on", "the child waits for the user", "another child waits"],
)
def test_a_call_that_waits_for_a_child_session_can_be_run_again(
    parts: tuple[Part, ...], held: tuple[str, ...], expected: TurnState
) -> None:
    assert turn_state(after(view(*parts), BEGUN), held) == expected


ANSWER = an_assistant("ses_child", "msg_b", "msg_p", seq=2)
REJECTED = ToolError(input={}, error="no", metadata={"rejected": True}, time=SettledTime(start=1, end=2))


@pytest.mark.parametrize(
    ("answer", "state", "text"),
    [
        (None, "stopped", "was stopped before it was done"),
        (MessageWithParts(info=ANSWER, parts=()), "completed", ""),
        (
            MessageWithParts(info=ANSWER, parts=(a_text(ANSWER, "prt_1", "first"), a_text(ANSWER, "prt_2", "last"))),
            "completed",
            "last",
        ),
        (
            MessageWithParts(info=ANSWER.but(error=AbortedFailure(data=MessageData(message="x"))), parts=()),
            "stopped",
            "was stopped before it was done",
        ),
        (
            MessageWithParts(info=ANSWER.but(error=UnknownFailure(data=UnknownData(message="no key"))), parts=()),
            "failed",
            "no key",
        ),
        (MessageWithParts(info=ANSWER, parts=(a_call(ANSWER, "prt_c", REJECTED),)), "rejected", "The user rejected"),
    ],
    ids=["nothing", "no text", "the last text", "aborted", "failed", "rejected"],
)
def test_the_result_of_a_child_session_is_what_it_said_last(
    answer: MessageWithParts | None, state: str, text: str
) -> None:
    found: ChildResult = child_result(answer)
    assert found.state == state
    assert text in found.text


def test_the_text_about_a_task_has_the_shape_that_clients_know() -> None:
    assert task_block("ses_x", "error", "no key", summary="It failed") == (
        '<task id="ses_x" state="error">\n<summary>It failed</summary>\n<task_error>\nno key\n</task_error>\n</task>'
    )


def test_every_cost_of_a_family_counts_once() -> None:
    root = a_session("ses_root").but(cost=0.1)
    one = a_session("ses_one").but(parent_id="ses_root", cost=0.2)
    two = a_session("ses_two").but(parent_id="ses_one", cost=0.4)
    tree = family(root, [two, one, one], {"ses_two": "busy"})
    [child] = tree.children
    [grandchild] = child.children
    assert (tree.cost, tree.total_cost, child.total_cost, grandchild.total_cost) == (0.1, 0.7, 0.6, 0.4)
    assert (tree.status, grandchild.status) == ("idle", "busy")
    assert total_cost(root, [two, one, one]) == 0.7


ASIDE = Revert(message_id="msg_u")


@pytest.mark.parametrize(
    ("children", "revert", "is_active", "is_wanted", "report"),
    [
        ((), None, False, True, ChildReport(is_delivered=False, wakes=False)),
        ((TASK,), None, True, True, ChildReport(is_delivered=False, wakes=False)),
        ((TASK,), None, False, True, ChildReport(is_delivered=False, wakes=True)),
        ((TASK,), None, False, False, ChildReport(is_delivered=False, wakes=False)),
        ((BEHIND,), None, True, True, ChildReport(is_delivered=True, wakes=True)),
        ((BEHIND,), None, False, False, ChildReport(is_delivered=True, wakes=False)),
        ((BEHIND,), ASIDE, False, True, ChildReport(is_delivered=True, wakes=False)),
        ((BEHIND.but(is_over=True),), None, True, True, ChildReport(is_delivered=False, wakes=False)),
    ],
    ids=[
        "nobody wants it",
        "a call of this process waits",
        "a call waits that no process runs",
        "the parent was stopped",
        "in the background",
        "in the background, and the parent was stopped",
        "in the background, and the user has undone",
        "the task is over",
    ],
)
def test_a_parent_is_told_of_a_child_session_that_rests_if_it_wants_its_result(
    children: tuple[ChildTask, ...], revert: Revert | None, is_active: bool, is_wanted: bool, report: ChildReport
) -> None:
    parent = SessionView(session=a_session("ses_one", revert=revert), seq=9, children=children)
    assert report_of(parent, "ses_child", is_active=is_active, is_wanted=is_wanted) == report


@pytest.mark.parametrize(("state", "word"), [("completed", "completed"), ("failed", "failed"), ("stopped", "failed")])
def test_the_result_of_a_background_task_comes_as_a_prompt_with_the_end_of_the_task(state: str, word: str) -> None:
    child, parent = a_session("ses_child", title="Look"), SessionView(session=a_session(), seq=9, children=(BEHIND,))
    prompt = prompt_of(parent.session.but(agent="build", model=SessionModel(provider_id="a", id="b")), "msg_r", NOW)
    result = msgspec.convert({"state": state, "text": "so"}, ChildResult)
    assert prompt is not None
    admitted, ended = delivery_events(parent, child, result, prompt, "prt_r")
    assert isinstance(admitted, e.PromptAdmitted)
    assert isinstance(admitted.parts[0], TextPart)
    assert f"<summary>Background task {word}: Look</summary>" in admitted.parts[0].text
    assert (admitted.message, ended) == (prompt, ENDED)
    assert delivery_events(parent, child, result, None, "prt_r") == [ENDED]
    assert delivery_events(parent.but(children=()), child, result, prompt, "prt_r") == []


def test_a_session_that_never_had_an_agent_gets_no_prompt() -> None:
    assert prompt_of(a_session("ses_one", agent=None), "msg_r", NOW) is None
