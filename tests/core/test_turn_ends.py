"""Both ends of a turn: every way in which a turn can end, and the events that close it."""

import pytest

from turnkeeper.core.turn_ends import Ending, answered, broken_off, close_lost_turn, close_turn, open_turn, refused
from turnkeeper.core.view import OpenTurn, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.failure import (
    AbortedFailure,
    Failure,
    MessageData,
    NoData,
    OutputLengthFailure,
    UnknownData,
    UnknownFailure,
)
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import Part, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import ToolError
from turnkeeper.model.session import Tokens
from turnkeeper.model.status import BUSY, Retrying
from turnkeeper.model.stream import FinishStep
from turnkeeper.testing.builders import NOW, SOME_TOKENS, a_call, a_session, a_text, a_user, an_assistant, running

MESSAGE = an_assistant("ses_one", "msg_2", "msg_1").but(seq=4)
LATER = NOW + 5
ABORTED = AbortedFailure(data=MessageData(message="the turn was stopped"))
TOO_LONG = OutputLengthFailure(data=NoData())
BILL = e.UsageRecorded(
    purpose="turn", provider_id="acme", model_id="large", message_id="msg_2", tokens=SOME_TOKENS, cost=0.2
)


def ended(events: list[Event]) -> AssistantMessage:
    [end] = [one for one in events if isinstance(one, e.TurnEnded)]
    return end.message


def kinds(events: list[Event]) -> list[str]:
    return [type(one.part).__name__ if isinstance(one, e.PartRecorded) else type(one).__name__ for one in events]


def test_a_turn_opens_with_an_empty_message_for_its_prompt() -> None:
    user = a_user("ses_one", "msg_1")
    message = open_turn(user, "/home/me/prj", "/home/me/prj", id="msg_2", now=NOW)
    assert message == an_assistant("ses_one", "msg_2", "msg_1")


@pytest.mark.parametrize(
    ("finish", "failure", "ending"),
    [
        (FinishStep(reason="stop"), None, Ending(finish="stop", reason="stop")),
        (FinishStep(reason="stop", is_paused=True), None, Ending(finish="pause", reason="stop")),
        (FinishStep(reason="length"), TOO_LONG, Ending(failure=TOO_LONG, finish="length", reason="length")),
        (None, TOO_LONG, Ending(failure=TOO_LONG, finish="error")),
        (None, None, Ending()),
    ],
)
def test_an_answer_ends_a_turn_with_its_own_reason(
    finish: FinishStep | None, failure: Failure | None, ending: Ending
) -> None:
    assert answered(finish, failure) == ending


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (KeyboardInterrupt(), ABORTED),
        (ValueError("no"), UnknownFailure(data=UnknownData(message="ValueError: no"))),
    ],
)
def test_a_turn_that_is_broken_off_says_whether_it_was_stopped_or_a_bug(error: BaseException, failure: Failure) -> None:
    assert broken_off(error, "turn") == Ending(failure=failure)


def test_a_turn_that_an_outage_stopped_says_so() -> None:
    failure = AbortedFailure(data=MessageData(message="the turn was stopped because the store could not be written"))
    assert broken_off(KeyboardInterrupt(), "turn", is_cut_off=True) == Ending(failure=failure)


def test_a_turn_that_cannot_be_asked_for_says_why() -> None:
    assert refused("no key").failure == UnknownFailure(data=UnknownData(message="no key"))


def test_bill_mark_end_and_remedy_come_in_this_order() -> None:
    touched = e.SessionTouched()
    ending = answered(FinishStep(reason="stop"), None, {"a": 1}).but(after=(touched,))
    events = close_turn(MESSAGE, ending, LATER, bills=[BILL], spent=0.1, part_id=lambda: "prt_9")
    assert kinds(events) == ["UsageRecorded", "StepFinishPart", "TurnEnded", "SessionTouched"]
    time = MESSAGE.time.but(completed=LATER)
    assert ended(events) == MESSAGE.but(
        seq=0, finish="stop", structured={"a": 1}, cost=0.3, tokens=SOME_TOKENS, time=time
    )
    mark = StepFinishPart(
        id="prt_9", session_id="ses_one", message_id="msg_2", reason="stop", cost=0.3, tokens=SOME_TOKENS
    )
    assert events[1] == e.PartRecorded(part=mark)


def test_a_turn_without_a_bill_keeps_what_was_spent_before() -> None:
    message = ended(close_turn(MESSAGE, Ending(failure=ABORTED), LATER, spent=0.5))
    assert (message.cost, message.tokens, message.finish, message.error) == (0.5, MESSAGE.tokens, None, ABORTED)


def lost(*parts: Part, message: AssistantMessage = MESSAGE, **changes: object) -> SessionView:
    turn = OpenTurn(message=message, parts={part.id: part for part in parts})
    return SessionView(seq=9, session=a_session(), turn=turn, status=BUSY).but(**changes)


STEP = StepStartPart(id="prt_1", session_id="ses_one", message_id="msg_2")
OPEN_TEXT = a_text(MESSAGE, "prt_2", "as far as", time=Span(start=NOW))
CALL = a_call(MESSAGE, "prt_3", running())


def test_a_lost_turn_without_output_is_removed_and_its_attempt_is_billed() -> None:
    events = close_lost_turn(lost(STEP), LATER)
    assert kinds(events) == ["UsageRecorded", "TurnEnded", "MessageRemoved"]
    assert events[-1] == e.MessageRemoved(message_id="msg_2", seq=4, part_ids=("prt_1",))


def test_a_lost_turn_with_output_keeps_it_and_never_runs_its_calls_again() -> None:
    events = close_lost_turn(lost(STEP, OPEN_TEXT, CALL), LATER)
    assert kinds(events) == ["TextPart", "ToolPart", "UsageRecorded", "TurnEnded"]
    recorded = [one.part for one in events if isinstance(one, e.PartRecorded)]
    assert isinstance(recorded[0], TextPart)
    assert recorded[0].time == Span(start=NOW, end=LATER)
    assert isinstance(recorded[1], ToolPart)
    assert isinstance(recorded[1].state, ToolError)
    assert (recorded[1].state.metadata or {})["interrupted"] is True


def test_a_lost_compaction_has_no_bill_and_is_compacting_no_longer() -> None:
    session = a_session().but(time=a_session().time.but(compacting=NOW))
    events = close_lost_turn(lost(message=MESSAGE.but(summary=True), session=session), LATER)
    assert kinds(events) == ["TurnEnded", "MessageRemoved", "CompactingSet"]


def test_a_lost_command_of_the_user_has_no_bill() -> None:
    assert kinds(close_lost_turn(lost(CALL), LATER)) == ["ToolPart", "TurnEnded"]


def test_a_turn_lost_while_it_waited_to_retry_has_its_bill_already() -> None:
    status = Retrying(attempt=1, message="busy", next=NOW)
    events = close_lost_turn(lost(STEP, message=MESSAGE.but(cost=0.2), status=status), LATER, billed=[0.2])
    assert kinds(events) == ["TurnEnded", "MessageRemoved"]
    assert ended(events).cost == 0.2


@pytest.mark.parametrize(
    ("cost", "tokens", "billed", "row"),
    [
        (0.5, SOME_TOKENS, [0.2], 0.3),
        # The first attempt's usage came with its failure: the ledger has it, the message has not.
        (0, Tokens(input=0, output=0, reasoning=0, cache=SOME_TOKENS.cache), [0.2], 0),
    ],
)
def test_the_bill_of_a_lost_attempt_is_what_its_turn_cost_beyond_the_ledger(
    cost: float, tokens: Tokens, billed: list[float], row: float
) -> None:
    events = close_lost_turn(lost(STEP, message=MESSAGE.but(cost=cost, tokens=tokens)), LATER, billed=billed)
    [bill] = [one for one in events if isinstance(one, e.UsageRecorded)]
    assert (bill.cost, bill.attempt, bill.tokens) == (row, len(billed) + 1, tokens)
    assert ended(events).cost == pytest.approx(sum(billed) + row)
