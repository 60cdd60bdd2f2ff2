"""Attempts at a turn: what becomes of each, whether there is another, and what is on record of its cost."""

from collections.abc import Callable

import pytest

from turnkeeper.core.attempts import Attempts, Retry
from turnkeeper.core.limits import RETRIES_MAX, USAGE_MS
from turnkeeper.core.turn_ends import Ending
from turnkeeper.model import event as e
from turnkeeper.model import stream as s
from turnkeeper.model.catalog import ModelInfo, Price
from turnkeeper.model.failure import ApiData, ApiFailure, NoData, OutputLengthFailure, StructuredOutputFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import RetryPart, StepStartPart
from turnkeeper.testing.builders import NOW, an_assistant

MESSAGE = an_assistant("ses_one", "msg_2", "msg_1")
PRICE = Price(input=1_000_000)  # A dollar a token.
MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="openai-chat", price=PRICE)
MAY_PASS = ApiFailure(data=ApiData(message="busy", is_retryable=True))
STAYS = ApiFailure(data=ApiData(message="no", is_retryable=False))
TEXT = s.TextDelta(id="t", text="words")
CALL = s.ToolCall(id="c", name="bash", input={})


def after(*said: s.StreamEvent, number: int = 1, tries_left: int | None = None) -> Attempts:
    """A turn whose newest attempt said this."""
    attempts = Attempts(MESSAGE, MODEL, "/", iter_ids(), tries=1, tries_left=tries_left)
    for _ in range(number):
        attempts.begin()
    attempts.scribe.feed(said, NOW)
    return attempts


def iter_ids() -> Callable[[], str]:
    ids = (f"prt_{number}" for number in range(1000))
    return lambda: next(ids)


def finish(reason: str, **more: object) -> s.FinishStep:
    return s.FinishStep(reason=reason).but(**more)


@pytest.mark.parametrize(
    ("attempts", "outcome"),
    [
        (after(TEXT, finish("stop")), Ending(finish="stop", reason="stop")),
        (after(TEXT, finish("stop", is_paused=True)), Ending(finish="pause", reason="stop")),
        (after(TEXT, finish("length")), Ending(finish="length", reason="length")),
        (
            after(finish("length")),
            Ending(failure=OutputLengthFailure(data=NoData()), finish="length", reason="length"),
        ),
        (after(TEXT, s.StreamError(failure=MAY_PASS)), Retry(failure=MAY_PASS, words="busy")),
        (
            after(TEXT, s.StreamError(failure=MAY_PASS), number=RETRIES_MAX + 1),
            Ending(failure=MAY_PASS, finish="error"),
        ),
        (after(TEXT, s.StreamError(failure=STAYS)), Ending(failure=STAYS, finish="error")),
        (after(CALL, s.StreamError(failure=MAY_PASS)), Ending(finish="error", reason="error")),
        (after(CALL, finish("tool-calls"), tries_left=0), Ending(finish="tool-calls", reason="tool-calls")),
        (after(TEXT, finish("stop"), tries_left=1), Ending(finish="stop", reason="stop")),
    ],
)
def test_an_attempt_ends_its_turn_or_there_is_another(attempts: Attempts, outcome: Retry | Ending) -> None:
    assert attempts.outcome(None) == outcome


def test_an_answer_that_a_filter_stopped_is_a_refusal() -> None:
    outcome = after(TEXT, finish("content-filter")).outcome(None)
    assert isinstance(outcome, Ending)
    assert outcome.failure is not None


def test_the_last_try_at_a_structured_answer_fails_if_there_is_none() -> None:
    attempts = after(TEXT, finish("stop"), tries_left=0)
    outcome = attempts.outcome(None)
    assert isinstance(outcome, Ending)
    assert isinstance(outcome.failure, StructuredOutputFailure)
    assert outcome.failure.data.retries == 1
    assert attempts.outcome({"a": 1}) == Ending(finish="stop", reason="stop", structured={"a": 1})


def test_a_failed_attempt_is_billed_and_takes_back_only_what_the_log_has() -> None:
    attempts = after()
    step = attempts.scribe.feed([s.StartStep()], NOW)
    attempts.scribe.feed([TEXT, s.StreamError(failure=MAY_PASS, usage=s.Usage(input=3, output=0))], NOW)
    retry = Retry(failure=MAY_PASS, words="busy")
    unwritten = [one for one in step if isinstance(one, e.PartRecorded)]
    bill, gone, mark = attempts.take_back(retry, unwritten, NOW)
    assert isinstance(bill, e.UsageRecorded)
    assert (bill.attempt, bill.cost) == (1, 3)
    assert isinstance(gone, e.PartRemoved)
    assert gone.part_id != unwritten[0].part.id
    assert isinstance(mark, e.PartRecorded)
    assert isinstance(mark.part, RetryPart)
    attempts.begin()
    attempts.scribe.feed([finish("stop", usage=s.Usage(input=4, output=0))], NOW)
    ended = attempts.close(Ending(finish="stop"), NOW)[-1]
    assert isinstance(ended, e.TurnEnded)
    assert ended.message.cost == 7, "the turn cost what both of its attempts cost"


def test_a_turn_that_is_closed_while_it_waits_to_retry_is_not_billed_twice() -> None:
    attempts = after(s.StreamError(failure=MAY_PASS, usage=s.Usage(input=3, output=0)))
    attempts.take_back(Retry(failure=MAY_PASS, words="busy"), (), NOW)
    [ended] = attempts.close(Ending(), NOW)
    assert isinstance(ended, e.TurnEnded)
    assert ended.message.cost == 3


def test_what_a_provider_counts_is_recorded_once_in_a_while_and_reset_by_a_retry() -> None:
    attempts = after(s.UsageCounted(usage=s.Usage(input=3, output=0)))
    [counted] = attempts.newly_counted(NOW)
    assert isinstance(counted, e.MessageRecorded)
    attempts.scribe.feed([s.UsageCounted(usage=s.Usage(input=5, output=0))], NOW)
    assert attempts.newly_counted(NOW + USAGE_MS - 1) == []
    assert len(attempts.newly_counted(NOW + USAGE_MS)) == 1
    assert attempts.newly_counted(NOW + 9 * USAGE_MS) == [], "nothing new was counted"
    events = attempts.take_back(Retry(failure=MAY_PASS, words="busy"), (), NOW)
    assert [type(one) for one in events] == [e.UsageRecorded, e.MessageRecorded, e.PartRecorded]


def test_what_an_answer_with_calls_took_is_recorded_when_it_ends_and_before_its_calls_do() -> None:
    counted = s.UsageCounted(usage=s.Usage(input=3, output=0))
    attempts = after(counted)
    attempts.newly_counted(NOW)
    attempts.scribe.feed([CALL, finish("tool-calls", usage=s.Usage(input=3, output=2))], NOW)
    [recorded] = attempts.newly_counted(NOW)
    assert isinstance(recorded, e.MessageRecorded)
    assert isinstance(recorded.message, AssistantMessage)
    assert recorded.message.tokens.output == 2
    assert attempts.newly_counted(NOW + USAGE_MS) == [], "nothing new was counted"
    assert after(TEXT, finish("stop", usage=s.Usage(input=3, output=2))).newly_counted(NOW) == [], "its bill follows"


@pytest.mark.parametrize(
    ("said", "holds_text", "may_wait"),
    [
        ((), False, True),
        ((), True, False),
        ((TEXT, finish("stop")), True, True),
        ((CALL, finish("tool-calls")), True, False),
    ],
)
def test_events_wait_for_the_first_word_or_for_an_end_that_comes_at_once(
    said: tuple[s.StreamEvent, ...], holds_text: bool, may_wait: bool
) -> None:
    step = e.PartRecorded(part=StepStartPart(id="prt_s", session_id="ses_one", message_id="msg_2"))
    more = [e.SessionTouched()] if holds_text else []
    assert after(*said).may_wait([step, *more]) is may_wait
