"""Fitting: whether a request is sent, pruned or waits for a compaction, and what helps after a failure."""

import pytest

from turnkeeper.core.fitting import CompactFirst, SendRequest, fit, prune_after_run, remedy
from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.lowering import Lowered
from turnkeeper.core.next_action import RunTurn
from turnkeeper.core.pruning import ALWAYS, BEGINS, FULL, Pruning
from turnkeeper.core.turn_request import PreparedRequest, TurnInputs, build_request
from turnkeeper.core.view import Rewritten, SessionView
from turnkeeper.core.window import Window
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import Limits, ModelInfo
from turnkeeper.model.event import PartsQuarantined
from turnkeeper.model.failure import ApiData, ApiFailure, Failure, OverflowData, OverflowFailure
from turnkeeper.testing.builders import (
    NOW,
    a_call,
    a_history,
    a_session,
    a_text,
    a_user,
    an_assistant,
    an_epoch,
    completed,
)

MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="openai-chat")
TOO_LARGE = OverflowFailure(data=OverflowData(message="too large"))
REJECTED = ApiFailure(data=ApiData(message="messages.1.content.0: no", is_retryable=False, status_code=400))


def history(outputs: int = 0, *, answers: int = 3) -> History:
    """Prompts and answers, of which the first has a call with so many characters of output."""
    entries: list[HistoryItem] = []
    for number in range(answers):
        user = a_user("ses_one", f"msg_u{number}").but(seq=10 * number + 1)
        answer = an_assistant("ses_one", f"msg_a{number}", user.id).but(seq=10 * number + 2, finish="stop")
        call = a_call(answer, f"prt_c{number}", completed("x" * outputs if number == 0 else "short"))
        entries += [
            HistoryItem(message=user, parts=(a_text(user, f"prt_u{number}", "go"),)),
            HistoryItem(message=answer, parts=(call,)),
        ]
    return a_history(tuple(entries), seq=99)


def ready(past: History, *, context: int = 0, is_new_epoch: bool = False, **view: object) -> PreparedRequest:
    model = MODEL.but(limits=Limits(context=context, output=100))
    lowered = Lowered(model)
    lowered.add(past.entries)
    session = SessionView(seq=99, session=a_session()).but(**view)
    inputs = TurnInputs(
        session, past, RunTurn(user=past.entries[0], step=1), a_user("ses_one", "msg_u0"), model, Agent(name="build"),
        an_epoch(), (),
    )  # fmt: skip
    first = build_request(inputs, lowered, str, now=NOW)
    if not is_new_epoch:
        return first
    before = first.prefix.but(epoch=7, hash="of another request")
    again = TurnInputs(
        session.but(prefix=before), past, inputs.action, inputs.user, model, inputs.agent, inputs.epoch, ()
    )
    return build_request(again, lowered, str, now=NOW)


LONG = 400_000
SHORT = ready(history())
EPOCH = ready(history(LONG), is_new_epoch=True)
FULL_OF_OUTPUT = ready(history(LONG), context=50_000)
FULL_OF_WORDS = ready(history(), context=10)


@pytest.mark.parametrize(
    ("request_", "settings", "expected"),
    [
        (SHORT, Window(), "SendRequest"),
        (EPOCH, Window(), BEGINS),
        (EPOCH, Window(prune="never"), "SendRequest"),
        (FULL_OF_OUTPUT, Window(), FULL),
        (FULL_OF_OUTPUT, Window(prune="never"), "CompactFirst"),
        (FULL_OF_OUTPUT, Window(auto=False), "SendRequest"),
        (FULL_OF_WORDS, Window(), "CompactFirst"),
        (SHORT, Window(max_messages=2), "CompactFirst"),
        (ready(history(answers=0).but(entries=history().entries[:1]), context=10), Window(), "SendRequest"),
    ],
)
def test_a_request_is_sent_pruned_or_compacted_first(
    request_: PreparedRequest, settings: Window, expected: str
) -> None:
    found = fit(request_, settings, None, NOW)
    assert (found.reason if isinstance(found, Pruning) else type(found).__name__) == expected


def unanswered(*texts: str, error: Failure | None = TOO_LARGE) -> History:
    """Prompts with these texts, each but the newest followed by a failed turn."""
    entries: list[HistoryItem] = []
    for number, text in enumerate(texts):
        user = a_user("ses_one", f"msg_u{number}").but(seq=10 * number + 1)
        failed = an_assistant("ses_one", f"msg_a{number}", user.id).but(seq=10 * number + 2, error=error)
        failed = failed.but(provider_id=MODEL.provider_id, model_id=MODEL.id)
        entries += [
            HistoryItem(message=user, parts=(a_text(user, f"prt_u{number}", text),)),
            HistoryItem(message=failed, parts=()),
        ]
    return a_history(tuple(entries[:-1]), seq=99)


@pytest.mark.parametrize(
    ("past", "context", "left_out"),
    [
        (unanswered("x" * 9000, "on"), 0, ("prt_u0",)),
        (unanswered("x" * 9000, "on"), 1000, ("prt_u0",)),
        (unanswered("x" * 9000, "on", error=REJECTED), 1000, ("prt_u0",)),
        (unanswered("x" * 9000, "on", error=REJECTED), 0, None),
        (unanswered("x" * 5000, "x" * 9000, "on"), 0, ("prt_u1",)),
        (unanswered("go", "x" * 9000), 1000, None),
        (unanswered("x" * 9000), 1000, None),
        (unanswered(*["go"] * 3), 0, None),
    ],
    ids=[
        "rejected, in a window of unknown size",
        "rejected",
        "certainly too large",
        "failed for another reason",
        "the largest of several",
        "it is the newest that is too large",
        "there is no newer one",
        "they are short",
    ],
)
def test_an_unanswered_prompt_that_is_too_large_is_left_out_once_there_is_a_newer_one(
    past: History, context: int, left_out: tuple[str, ...] | None
) -> None:
    found = fit(ready(past, context=context), Window(), None, NOW)
    assert (found.part_ids if isinstance(found, PartsQuarantined) else None) == left_out


def test_a_request_that_was_pruned_to_fit_is_sent_and_one_pruned_for_its_price_is_looked_at_again() -> None:
    pruned = fit(FULL_OF_OUTPUT, Window(), None, NOW)
    assert isinstance(pruned, Pruning)
    assert fit(FULL_OF_WORDS, Window(), pruned, NOW) == SendRequest()
    assert fit(FULL_OF_WORDS, Window(), pruned.but(reason=BEGINS), NOW) == CompactFirst()


def test_after_a_run_outputs_are_pruned_always_or_where_it_pays() -> None:
    view = SessionView(seq=99, session=a_session())
    always = prune_after_run(view, history(LONG), MODEL.price, Window(prune="always"))
    assert always is not None
    assert always.reason == ALWAYS
    assert prune_after_run(view, history(LONG), MODEL.price, Window()) is None


SPENT = Rewritten(seq=50, reason="pruned", is_remedy=True)


@pytest.mark.parametrize(
    ("failure", "sent", "settings", "is_measuring", "expected"),
    [
        (TOO_LARGE, SHORT, Window(), True, CompactFirst(overflow=True)),
        (TOO_LARGE, SHORT, Window(auto=False), True, None),
        (ApiFailure(data=ApiData(message="no", is_retryable=False)), SHORT, Window(), True, None),
        (REJECTED, SHORT, Window(), False, None),
        (REJECTED, ready(history(), rewritten=SPENT), Window(), True, None),
    ],
)
def test_a_failed_request_is_helped_once_or_not_at_all(
    failure: Failure, sent: PreparedRequest, settings: Window, is_measuring: bool, expected: CompactFirst | None
) -> None:
    measure = (lambda request: len(request.messages)) if is_measuring else None
    assert remedy(failure, sent, settings, measure) == expected


def test_the_part_that_a_provider_points_at_is_quarantined() -> None:
    found = remedy(REJECTED, SHORT, Window(), lambda request: len(request.messages))
    assert isinstance(found, PartsQuarantined)
    assert (found.message_id, found.part_ids) == ("msg_a0", ("prt_c0",))
