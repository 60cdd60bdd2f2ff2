"""Turns whose calls wait for the user: what they need, how they are left, and how they end."""

import pytest

from turnkeeper.core.asks import TurnState, turn_state, waiting_calls
from turnkeeper.core.entry import Recorded
from turnkeeper.core.next_action import WAITS, Abandon, Rest, ResumeTurn, next_action
from turnkeeper.core.projector import apply
from turnkeeper.core.turn_ends import close_resumed_turn, leave_turn
from turnkeeper.core.view import OpenAsk, OpenTurn, PermissionAsk, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.parts import Part, StepFinishPart, StepStartPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import ToolError
from turnkeeper.model.permission import Reply
from turnkeeper.testing.builders import (
    NOW,
    SOME_TOKENS,
    a_call,
    a_history,
    a_permission,
    a_session,
    a_text,
    an_assistant,
    completed,
    running,
)

TURN = an_assistant("ses_one", "msg_a", "msg_u", seq=1, cost=0.5, tokens=SOME_TOKENS)
TEXT = a_text(TURN, "prt_t", "Half", time=Span(start=NOW), seq=1)
CALL, OTHER = a_call(TURN, "prt_c", running(), seq=1), a_call(TURN, "prt_d", running(), seq=1)
DONE = CALL.but(state=completed())
STEP = StepStartPart(id="prt_s", session_id="ses_one", message_id="msg_a", seq=1)
MARK = StepFinishPart(
    id="prt_m", session_id="ses_one", message_id="msg_a", reason="tool-calls", cost=0.5, tokens=SOME_TOKENS, seq=1
)
ASK = PermissionAsk(request=a_permission(CALL))
ANSWERED = ASK.but(reply=Reply(answer="once"))
APPLIED = ANSWERED.but(is_applied=True)


def view(parts: tuple[Part, ...], *asks: OpenAsk) -> SessionView:
    turn = OpenTurn(message=TURN, parts={part.id: part for part in parts})
    return SessionView(session=a_session("ses_one"), seq=9, asks=asks, turn=turn)


def after(before: SessionView, events: list[Event]) -> SessionView:
    for seq, event in enumerate(events, before.seq + 1):
        before = apply(before, Recorded(seq, NOW, event)).view
    return before


TABLE: list[tuple[str, SessionView, TurnState]] = [
    ("as a kill leaves it", view((TEXT, CALL), ASK), "lost"),
    ("nothing of it waits", view((TEXT, CALL)), "lost"),
    ("suspended, asked", view((TEXT, CALL, MARK), ASK), "waits"),
    ("suspended, answered", view((CALL, MARK), ANSWERED), "answered"),
    ("the answer was applied", view((CALL, MARK), APPLIED), "lost"),
    ("one of two is applied", view((CALL, OTHER, MARK), APPLIED, PermissionAsk(request=a_permission(OTHER))), "lost"),
    (
        "one of two is answered",
        view((CALL, OTHER, MARK), ANSWERED, PermissionAsk(request=a_permission(OTHER, "per_2"))),
        "answered",
    ),
    ("another call runs", view((CALL, OTHER, MARK), ASK), "lost"),
    (
        "the first of two asks is applied",
        view((CALL, MARK), APPLIED, ASK.but(request=ASK.request.but(id="p2"))),
        "lost",
    ),
    ("the call may have acted before it asked", view((CALL, MARK), ASK.but(restarts=False)), "lost"),
    ("a deadline", view((CALL, MARK), ASK.but(request=ASK.request.but(deadline=NOW))), "answered"),
    ("all calls are settled", view((DONE, MARK)), "answered"),
]


@pytest.mark.parametrize(("shown", "state"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_an_open_turn_needs(shown: SessionView, state: TurnState) -> None:
    assert turn_state(shown) == state
    expected = {"lost": Abandon(), "waits": Rest(reason=WAITS), "answered": ResumeTurn()}[state]
    assert next_action(shown, a_history()) == expected
    resumed = ResumeTurn() if state == "waits" else expected
    assert next_action(shown, a_history(), resume=True) == resumed


def test_a_turn_is_left_with_its_waiting_calls_and_is_billed_and_marked_once() -> None:
    lost = view((STEP, TEXT, CALL, OTHER), ASK)
    events = leave_turn(lost, NOW + 5, part_id=lambda: "prt_new")
    assert [type(one) for one in events] == [
        *(e.UsageRecorded, e.PartRecorded, e.PartRecorded, e.MessageRecorded, e.PartRecorded)
    ]
    left = after(lost, events)
    assert (turn_state(left), waiting_calls(left), left.asks) == ("waits", [CALL], (ASK,))
    assert left.turn is not None
    assert isinstance(left.turn.parts["prt_d"], type(OTHER))
    assert isinstance(getattr(left.turn.parts["prt_d"], "state", None), ToolError)
    assert left.session.cost == 0.5
    assert leave_turn(left, NOW + 9, part_id=lambda: "prt_newer") == []


def test_a_turn_without_waiting_calls_is_closed() -> None:
    closed = after(view((TEXT, CALL), APPLIED), leave_turn(view((TEXT, CALL), APPLIED), NOW, part_id=lambda: "prt_n"))
    assert (closed.turn, closed.asks) == (None, ())


def test_a_resumed_turn_ends_like_one_with_tool_calls_and_costs_nothing_more() -> None:
    before = view((DONE, MARK))
    events = close_resumed_turn(before, NOW + 9)
    [ended] = events
    assert isinstance(ended, e.TurnEnded)
    assert (ended.message.finish, ended.message.error, ended.message.cost) == ("tool-calls", None, 0.5)
    assert after(before, events).turn is None


def test_a_suspended_turn_that_is_lost_later_is_not_billed_again() -> None:
    lost = view((CALL, MARK), APPLIED)
    events = leave_turn(lost, NOW, part_id=lambda: "prt_n", billed=[0.5])
    assert not any(isinstance(one, e.UsageRecorded) for one in events)
    ended = after(lost, events)
    assert (ended.turn, ended.session.cost) == (None, 0)
