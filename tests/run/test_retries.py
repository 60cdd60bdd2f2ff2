"""Failed attempts: which are tried again, when, what is recorded, and what is never repeated."""

from collections.abc import Callable

import pytest
from narrow import of_type, result_text

from turnkeeper.core.limits import RETRIES_MAX
from turnkeeper.model import event as e
from turnkeeper.model import stream as s
from turnkeeper.model.failure import AbortedFailure, ApiFailure, AuthFailure, OverflowFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import RetryPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.status import BUSY, Retrying
from turnkeeper.model.stream import Usage
from turnkeeper.providers.script import Gate, lost_connection
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Told, a_tool
from turnkeeper.tools.tool import ToolContext

ON_DISK_TOO = pytest.mark.parametrize("engine", ["memory", "sqlite"])


@ON_DISK_TOO
async def test_a_failed_attempt_is_tried_again_after_a_while_and_leaves_a_mark_and_no_words(play: Play) -> None:
    script = Scripted().says("Half an ans").fails(529, message="Overloaded").then().says("Whole.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(2.0)
        status = await stage.tk.status(session)
        assert status == Retrying(attempt=1, message="Provider is overloaded", next=stage.mint.now() + 2000)
        [(_, waiting)] = await stage.turns(session)
        assert [type(part) for part in waiting] == [RetryPart]
        stage.time.advance(2000)
        await stage.tk.wait(session)
        [(message, parts)] = await stage.turns(session)
        assert message.error is None
        assert [part.text for part in parts if isinstance(part, TextPart)] == ["Whole."]
        [retry] = [part for part in parts if isinstance(part, RetryPart)]
        assert (retry.attempt, retry.error.data.status_code) == (1, 529)
        assert retry == waiting[0]
        assert script.requests[0] == script.requests[1]
        assert await stage.is_sound(session)


@pytest.mark.parametrize(
    ("script", "last"),
    [
        (lambda: Scripted().cuts(), 30.0),
        (lambda: Scripted().says("Half").finishes("error"), 30.0),
        (lambda: Scripted().fails(500), 32.0),
    ],
    ids=["without headers", "a finish that is an error", "with headers"],
)
async def test_the_waits_double_and_after_five_retries_it_is_over(
    play: Play, script: Callable[[], Scripted], last: float
) -> None:
    scripted, waits = script().forever(), [2.0, 4.0, 8.0, 16.0, last]
    async with play(scripted) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        for seconds in waits:
            await stage.time.asleep(seconds)
            stage.time.advance(round(seconds * 1000))
        await stage.tk.wait(session)
        assert len(scripted.requests) == 1 + RETRIES_MAX
        [(message, parts)] = await stage.turns(session)
        assert isinstance(message.error, ApiFailure)
        assert message.finish == "error"
        assert [part.attempt for part in parts if isinstance(part, RetryPart)] == [1, 2, 3, 4, 5]
        assert [seconds for seconds in stage.time.slept if seconds >= 2] == waits


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "Sun, 15 Nov 2026 18:32:15 GMT"}, 9.31),
        ({"retry-after": "Sun, 15 Nov 2020 18:32:15 GMT"}, 2.0),
        ({"retry-after": "soon"}, 2.0),
    ],
    ids=["milliseconds", "seconds", "a date", "a date that has passed", "nonsense"],
)
async def test_the_provider_may_say_how_long_to_wait(play: Play, headers: dict[str, str], seconds: float) -> None:
    async with play(Scripted().fails(429, headers=headers).then().says("ok")) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(1.0)
        assert stage.time.slept[-1] == pytest.approx(seconds)
        stage.time.advance(30_000)
        assert (await stage.tk.wait(session)).reason == "answered"


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (lambda: Scripted().fails(401), AuthFailure),
        (lambda: Scripted().fails(400, message="bad request"), ApiFailure),
        (lambda: Scripted().says("a").overflows(), OverflowFailure),
        (lambda: Scripted().garbles("scrambled"), ApiFailure),
    ],
    ids=["no key", "a bad request", "an overflow", "events out of order"],
)
async def test_failures_that_another_try_would_not_cure_end_the_turn(
    play: Play, script: Callable[[], Scripted], failure: type[object]
) -> None:
    scripted = script()
    async with play(scripted, config={"compaction": {"auto": False}}) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, failure)
        assert len(scripted.requests) == 1
        assert await stage.is_sound(session)


@pytest.mark.parametrize(
    "script",
    [lambda: Scripted().says("a").cuts(), lambda: Scripted().says("a").garbles()],
    ids=["a lost connection", "an event that is not JSON"],
)
async def test_an_answer_that_was_damaged_on_its_way_is_tried_again(play: Play, script: Callable[[], Scripted]) -> None:
    async with play(script().then().says("b")) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(2.0)
        stage.time.advance(2000)
        assert (await stage.tk.wait(session)).reason == "answered"


@ON_DISK_TOO
async def test_once_a_tool_has_begun_the_request_is_never_sent_again(play: Play) -> None:
    ran: list[str] = []

    async def once(text: str, context: ToolContext) -> str:
        ran.append(text)
        return "done"

    script = Scripted().says("Doing it.").calls("once", text="x").fails(500).then().says("It is done.")
    async with play(script, tools=(a_tool("once", once),)) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        assert ran == ["x"]
        (first, parts), (_, answer) = await stage.turns(session)
        assert (first.finish, first.error) == ("error", None)
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolCompleted)
        assert [part.text for part in answer if isinstance(part, TextPart)] == ["It is done."]
        assert result_text(script.requests[1].messages[-1]) == "done"
        assert not any(isinstance(part, RetryPart) for part in parts)


async def test_a_call_that_was_only_half_written_does_not_keep_an_attempt_from_being_tried_again(play: Play) -> None:
    half: list[list[s.StreamEvent]] = [
        [s.StartStep()],
        [s.ToolInputStart(id="c", name="echo"), s.ToolInputDelta(id="c", text='{"te')],
        [s.StreamError(failure=lost_connection(), usage=Usage(input=4))],
    ]
    end = s.FinishStep(reason="stop", usage=Usage(input=6))
    whole: list[list[s.StreamEvent]] = [[s.StartStep(), s.TextDelta(id="t", text="ok"), end]]
    async with play(Told(half, whole)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(2.0)
        stage.time.advance(2000)
        await stage.tk.wait(session)
        [(message, parts)] = await stage.turns(session)
        assert not any(isinstance(part, ToolPart) for part in parts)
        assert message.tokens.input == 6
        stored = await stage.tk.get(session)
        assert stored.tokens.input == 10
        assert message.cost == pytest.approx(stored.cost) == pytest.approx(10 * 3 / 1_000_000)


@ON_DISK_TOO
async def test_an_interrupt_ends_the_wait_for_another_try(play: Play) -> None:
    script = Scripted().says("a").fails(503).then().says("never")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(2.0)
        assert await stage.tk.stop(session)
        [(message, parts)] = await stage.turns(session)
        assert isinstance(message.error, AbortedFailure)
        assert [type(part) for part in parts] == [RetryPart]
        assert len(script.requests) == 1
        assert await stage.is_sound(session)


async def test_status_goes_from_busy_to_retry_and_back(play: Play) -> None:
    script = Scripted().fails(503).then().says("a")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(2.0)
        stage.time.advance(2000)
        await stage.tk.wait(session)
        told = [one.status for one in await stage.events(session) if isinstance(one, e.StatusChanged)]
        assert [type(status).__name__ for status in told] == ["Busy", "Retrying", "Busy", "Idle"]
        assert told[2] == BUSY


async def test_the_bill_of_every_attempt_is_in_the_ledger_and_sums_to_the_totals(play: Play) -> None:
    gate = Gate()
    script = (
        Scripted()
        .says("x")
        .cuts()
        .then()
        .calls("echo", text="a")
        .usage(input=100_000, output=10_000, reasoning=2_000, cache_read=40_000, cache_write=10_000)
        .then()
        .says("b")
        .usage(input=120_000, output=0)
        .then()
        .says("half")
        .waits(gate)
    )
    async with play(script, config={"compaction": {"auto": False}}) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(2.0)
        stage.time.advance(2000)
        await stage.tk.wait(session)
        await stage.say(session, "more")
        await gate.wait_reached()
        await stage.tk.stop(session)
        rows = [one for one in await stage.events(session) if isinstance(one, e.UsageRecorded)]
        assert [(row.attempt, row.purpose) for row in rows] == [(1, "turn"), (2, "turn"), (1, "turn"), (1, "turn")]
        # 50,000 new input at 3, 10,000 output at 15, 40,000 read at 0.3, 10,000 written at 3.75 for a million. Of an
        # attempt that was cut off or interrupted before the provider counted anything, it is known that there was one.
        assert [row.cost for row in rows] == [0, 0.3495, 0.36, 0]
        stored = await stage.tk.get(session)
        assert stored.cost == 0.7095
        assert stored.tokens.input == sum(row.tokens.input for row in rows)
        costs = [message.cost for message, _ in await stage.turns(session)]
        assert costs == [0.3495, 0.36, 0]


async def test_what_was_counted_before_an_attempt_failed_is_billed_once_and_not_shown_as_the_next_attempt_s(
    play: Play,
) -> None:
    """The message of an open turn has the tokens of the attempt under way, and the cost of all of them."""
    counted = s.UsageCounted(usage=Usage(input=1000))
    failed = s.StreamError(failure=lost_connection())
    failing: list[list[s.StreamEvent]] = [[s.StartStep(), counted], [s.TextDelta(id="t", text="x")], [failed]]
    said: list[s.StreamEvent] = [s.TextDelta(id="t", text="ok"), s.FinishStep(reason="stop")]
    whole: list[list[s.StreamEvent]] = [[s.StartStep(), counted], said]
    async with play(Told(failing, whole)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await stage.time.asleep(2.0)
        [(message, _)] = await stage.turns(session)
        assert (message.tokens, message.cost) == (ZERO_TOKENS, 0.003)
        stage.time.advance(2000)
        await stage.tk.wait(session)
        rows = [(one.attempt, one.tokens.input, one.cost) async for one in stage.tk.ledger(session)]
        assert rows == [(1, 1000, 0.003), (2, 1000, 0.003)]
        [(message, _)] = await stage.turns(session)
        assert (message.tokens.input, message.cost) == (1000, 0.006)
        amended = [event for event in await stage.events(session) if isinstance(event, e.MessageRecorded)]
        messages = [of_type(AssistantMessage, one.message) for one in amended]
        assert [(one.tokens.input, one.cost) for one in messages] == [
            (1000, 0.003),
            (0, 0.003),
            (1000, 0.006),
        ]
        assert await stage.is_sound(session)


HALF: list[list[s.StreamEvent]] = [[s.Start(), s.StartStep(), s.TextStart(id="t"), s.TextDelta(id="t", text="It is")]]


@pytest.mark.parametrize(
    "answer", [HALF, [], [[]], [[s.Start()]], [[5]], [None]], ids=["half", "nothing", "empty", "start", "5", "None"]
)
async def test_an_answer_that_ends_without_a_finish_is_incomplete_and_tried_again(
    play: Play, answer: list[list[s.StreamEvent]]
) -> None:
    said: list[s.StreamEvent] = [s.TextDelta(id="t", text="It is 4."), s.FinishStep(reason="stop")]
    whole = [[s.StartStep(), *said]]
    async with play(Told(answer, whole), in_a_hurry=True) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        [(message, parts)] = await stage.turns(session)
        assert message.error is None
        assert [part.text for part in parts if isinstance(part, TextPart)] == ["It is 4."]
        [retry] = [part for part in parts if isinstance(part, RetryPart)]
        assert retry.error.data.metadata == {"code": "incomplete_stream"}


async def test_an_answer_that_never_finishes_is_a_failed_turn(play: Play) -> None:
    async with play(Told(*[HALF] * (RETRIES_MAX + 1)), in_a_hurry=True) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "the last turn failed: ApiFailure"
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, ApiFailure)
        assert message.error.data.metadata == {"code": "incomplete_stream"}
        assert await stage.is_sound(session)
