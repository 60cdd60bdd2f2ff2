"""What a turn does with what the model says: texts, calls, results, and how it goes on or ends."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

import anyio
import pytest
from narrow import of_type, result_text, results_of

from turnkeeper.core.limits import CALLS_PARALLEL_MAX, CALLS_PER_TURN_MAX, EMPTY_TURNS_MAX
from turnkeeper.core.transcribe import NO_RESULT
from turnkeeper.model import event as e
from turnkeeper.model import stream as s
from turnkeeper.model.failure import ContentFilterFailure, OutputLengthFailure, UnknownFailure
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.parts import Part, ReasoningPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelRequest,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import TOOLS, Play, Told, a_tool
from turnkeeper.tools.tool import Attachment, ToolContext, ToolOutput

ON_DISK_TOO = pytest.mark.parametrize("engine", ["memory", "sqlite"])


def texts(parts: Sequence[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, TextPart)]


def calls(parts: Sequence[Part]) -> list[ToolPart]:
    return [part for part in parts if isinstance(part, ToolPart)]


@ON_DISK_TOO
async def test_a_call_is_run_and_its_result_goes_back_to_the_model(play: Play) -> None:
    provider = Scripted().says("Looking.").calls("echo", text="hi").then().says("It says hi.")
    async with play(provider) as stage:
        session = await stage.session()
        outcome = await stage.ask(session, "What does it say?")
        assert (outcome.kind, outcome.reason) == ("rested", "answered")
        (first, parts), (second, answer) = await stage.turns(session)
        assert [type(part) for part in parts] == [StepStartPart, TextPart, ToolPart, StepFinishPart]
        assert of_type(ToolCompleted, calls(parts)[0].state).output == "hi"
        assert (first.finish, second.finish) == ("tool-calls", "stop")
        assert texts(answer) == ["It says hi."]
        asked = provider.requests[1].messages
        assert [type(message).__name__ for message in asked] == ["UserTurn", "AssistantTurn", "ToolTurn"]
        assert of_type(AssistantTurn, asked[1]).content[1] == Call(id="call_1", name="echo", input={"text": "hi"})
        assert results_of(asked[2])[0].output == (Text(text="hi"),)
        assert await stage.is_sound(session)


class Watching(Scripted):
    """Notes, whenever it is asked, the turns that are on record."""

    def __init__(self) -> None:
        super().__init__()
        self.turns_begun: Callable[[], Awaitable[list[str]]] | None = None
        self.seen: list[list[str]] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[s.StreamEvent], None]:
        assert self.turns_begun is not None
        self.seen.append(await self.turns_begun())
        async with aclosing(super().stream(request)) as portions:
            async for portion in portions:
                yield portion


@ON_DISK_TOO
async def test_a_request_is_sent_when_its_turn_is_on_record(play: Play) -> None:
    provider = Watching()
    provider.calls("echo", text="hi").then().says("Done.")
    async with play(provider) as stage:
        session = await stage.session()

        async def turns_begun() -> list[str]:
            return [one.message.id for one in await stage.events(session) if isinstance(one, e.TurnStarted)]

        provider.turns_begun = turns_begun
        await stage.ask(session, "go")
        turns = [message.id for message, _ in await stage.turns(session)]
        assert provider.seen == [turns[:1], turns]


@ON_DISK_TOO
async def test_a_turn_is_recorded_in_the_order_in_which_it_happens(play: Play) -> None:
    provider = Scripted().calls("echo", text="hi").then().says("Done.")
    async with play(provider) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        kinds = [event.KIND for event in await stage.events(session)]
        turn = ["turn.started", "part.recorded"]  # The step begins.
        # Pending and running; the tokens that the answer took, for a process that is killed now; completed.
        call = ["part.recorded", "part.recorded", "message.recorded", "part.recorded"]
        end = ["usage.recorded", "part.recorded", "turn.ended"]
        answer = ["part.recorded"] * 2  # Open and closed.
        begin = ["status.changed", "prompt.promoted", "epoch.started"]
        assert kinds[4:] == [*begin, *turn, *call, *end, *turn, *answer, *end, "status.changed"]
        states = [
            event.part.state
            for event in await stage.events(session)
            if isinstance(event, e.PartRecorded) and isinstance(event.part, ToolPart)
        ]
        assert [type(state).__name__ for state in states] == ["ToolPending", "ToolRunning", "ToolCompleted"]


async def test_a_call_begins_before_the_answer_is_over_and_several_run_at_once(play: Play) -> None:
    begun: list[str] = []
    both = anyio.Event()
    gate = Gate()

    async def meet(text: str, context: ToolContext) -> str:
        begun.append(text)
        if len(begun) == 2:
            both.set()
            gate.open()
        await both.wait()
        return text

    script = Scripted().calls("meet", text="a").calls("meet", text="b").waits(gate).says("more").then().says("end")
    async with play(script, tools=(a_tool("meet", meet),)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert begun == ["a", "b"]
        [result] = [one for one in script.requests[1].messages if isinstance(one, ToolTurn)]
        assert [each.call_id for each in result.results] == ["call_1", "call_2"]


async def test_results_stand_in_the_order_of_the_calls_whichever_came_first(play: Play) -> None:
    second_is_done = anyio.Event()

    async def slow(text: str, context: ToolContext) -> str:
        await second_is_done.wait()
        return "slow"

    async def quick(text: str, context: ToolContext) -> str:
        second_is_done.set()
        return "quick"

    script = Scripted().calls("slow").calls("quick").then().says("end")
    async with play(script, tools=(a_tool("slow", slow), a_tool("quick", quick))) as stage:
        await stage.ask(await stage.session(), "go")
        [turn] = [one for one in script.requests[1].messages if isinstance(one, ToolTurn)]
        assert [result_text(turn, place) for place in range(len(turn.results))] == ["slow", "quick"]


async def test_the_input_of_a_call_is_kept_as_the_model_wrote_it(play: Play) -> None:
    raw = '{ "text" : "h\\u0069" }'
    async with play(Scripted().calls_raw("echo", raw).then().says("ok")) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [call] = calls((await stage.turns(session))[0][1])
        state = of_type(ToolCompleted, call.state)
        assert (state.raw, state.input, state.output) == (raw, {"text": "hi"}, "hi")


async def test_an_input_that_is_no_object_is_wrapped(play: Play) -> None:
    made = s.ToolCall(id="c", name="echo", input=7)
    answer: list[list[s.StreamEvent]] = [[s.Start(), s.StartStep(), made, s.FinishStep(reason="tool-calls")]]
    done: list[list[s.StreamEvent]] = [
        [s.StartStep(), s.TextDelta(id="t", text="ok"), s.FinishStep(reason="stop")],
    ]
    async with play(Told(answer, done)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [call] = calls((await stage.turns(session))[0][1])
        assert call.state.input == {"value": 7}


async def test_a_call_that_cannot_be_understood_goes_back_to_the_model_as_an_error(play: Play) -> None:
    script = Scripted().calls_raw("echo", '{"text": ').then().says("Sorry.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        (_, parts), (_, answer) = await stage.turns(session)
        [call] = calls(parts)
        assert isinstance(call.state, ToolError)
        assert call.state.raw == '{"text": '
        assert "not a JSON object" in call.state.error
        assert "Its arguments must fit this schema: {" in call.state.error
        assert texts(answer) == ["Sorry."]
        assert results_of(script.requests[1].messages[-1])[0].is_error


async def test_an_unknown_tool_and_a_wrong_input_are_told_to_the_model(play: Play) -> None:
    script = Scripted().calls("nothing").calls("echo", text=3).then().says("ok")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        unknown, wrong = calls((await stage.turns(session))[0][1])
        assert "There is no tool named 'nothing'" in of_type(ToolError, unknown.state).error
        assert "does not fit its schema" in of_type(ToolError, wrong.state).error


async def test_a_tool_with_a_bug_fails_its_call_and_nothing_else(play: Play) -> None:
    async def breaks(text: str, context: ToolContext) -> str:
        raise ZeroDivisionError("1 / 0")

    async with play(Scripted().calls("breaks").then().says("Well."), tools=(a_tool("breaks", breaks),)) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).kind == "rested"
        (_, parts), (_, answer) = await stage.turns(session)
        assert "ZeroDivisionError: 1 / 0" in of_type(ToolError, calls(parts)[0].state).error
        assert texts(answer) == ["Well."]


@ON_DISK_TOO
async def test_outputs_with_half_characters_are_kept_whole(play: Play) -> None:
    async def lists(text: str, context: ToolContext) -> ToolOutput:
        await context.progress(title="\udcff", metadata={"output": "\udcfe"})
        return ToolOutput(title="a\udc80", output="name\udc80.txt", metadata={"f\udc80": ["\udc80"]})

    async with play(Scripted().calls("lists").then().says("ok"), tools=(a_tool("lists", lists),)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [call] = calls((await stage.turns(session))[0][1])
        assert isinstance(call.state, ToolCompleted)
        assert call.state.output == "name\ufffd.txt"


async def test_attachments_become_parts_of_their_own_and_are_shown_to_the_model(play: Play) -> None:
    async def draws(text: str, context: ToolContext) -> ToolOutput:
        image = Attachment(mime="image/png", url="data:image/png;base64,AAAA", filename="dot.png")
        return ToolOutput(title="drawn", output="a dot", attachments=(image,))

    script = Scripted().calls("draws").then().says("nice")
    async with play(script, tools=(a_tool("draws", draws),)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [call] = calls((await stage.turns(session))[0][1])
        [file] = of_type(ToolCompleted, call.state).attachments or ()
        assert file.id.startswith("prt_")
        assert (file.mime, file.message_id, file.filename) == ("image/png", call.message_id, "dot.png")
        shown = script.requests[1].messages[-1]
        assert isinstance(shown, UserTurn)
        assert of_type(Media, shown.content[1]).data == "AAAA"


async def test_blocks_that_interleave_stay_apart_and_keep_the_order_in_which_they_began(play: Play) -> None:
    events: list[s.StreamEvent] = [
        s.Start(),
        s.StartStep(),
        s.TextStart(id="a"),
        s.TextDelta(id="a", text="one "),
        s.TextStart(id="b"),
        s.TextDelta(id="b", text="two "),
        s.ToolInputStart(id="c", name="echo"),
        s.TextDelta(id="a", text="ONE"),
        s.ToolCall(id="c", name="echo", input={"text": "hi"}),
        s.TextEnd(id="b"),
        s.TextEnd(id="a"),
        s.FinishStep(reason="tool-calls"),
        s.Finish(),
    ]
    done: list[list[s.StreamEvent]] = [[s.StartStep(), s.TextDelta(id="x", text="end"), s.FinishStep(reason="stop")]]
    answers: tuple[list[list[s.StreamEvent]], ...] = ([events], [[event] for event in events])
    for answer in answers:
        provider = Told(answer, done)
        async with play(provider) as stage:
            session = await stage.session()
            await stage.ask(session, "go")
            (_, parts), _ = (await stage.turns(session))[-2:]
            assert texts(parts) == ["one ONE", "two "]
            assert [type(part) for part in parts[1:4]] == [TextPart, TextPart, ToolPart]
            spans = [of_type(TextPart, part).time for part in parts[1:3]]
            assert all(span is not None and span.end is not None for span in spans)
            assert await stage.is_sound(session)


async def test_tools_the_provider_runs_are_recorded_with_their_results_and_do_not_continue_the_turn(play: Play) -> None:
    script = Scripted().runs("web_search", output={"hits": 2}, q="x").says("Found two.").then().says("Again.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "search")
        [(message, parts)] = await stage.turns(session)
        [call] = calls(parts)
        assert call.provider is not None
        assert call.provider.executed
        state = of_type(ToolCompleted, call.state)
        assert (state.structured, state.output) == ({"hits": 2}, '{"hits":2}')
        assert message.finish == "stop"
        await stage.ask(session, "and?")
        hosted = of_type(AssistantTurn, script.requests[1].messages[1]).content
        assert [type(part) for part in hosted] == [Call, Result, Text]
        assert of_type(Result, hosted[1]).raw == {"hits": 2}


async def test_a_hosted_call_without_a_result_is_settled_when_the_answer_ends(play: Play) -> None:
    answer: list[list[s.StreamEvent]] = [
        [
            s.StartStep(),
            s.ToolCall(id="c", name="web", input={}, executed=True),
            s.TextDelta(id="t", text="Hm."),
            s.FinishStep(reason="stop"),
        ]
    ]
    async with play(Told(answer)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [(_, parts)] = await stage.turns(session)
        [call] = calls(parts)
        assert isinstance(call.state, ToolCompleted)
        assert call.state.output == NO_RESULT


async def test_results_that_come_late_or_for_nothing_are_ignored(play: Play) -> None:
    answer: list[list[s.StreamEvent]] = [
        [
            s.StartStep(),
            s.ToolResult(id="unknown", name="web", output="?"),
            s.ToolCall(id="c", name="web", input={}, executed=True),
            s.ToolResult(id="c", name="web", output="first"),
            s.ToolResult(id="c", name="web", output="second"),
            s.ToolFailed(id="c", name="web", error="third"),
            s.TextEnd(id="never begun"),
            s.TextDelta(id="t", text="Hm."),
            s.FinishStep(reason="stop"),
        ]
    ]
    async with play(Told(answer)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [(_, parts)] = await stage.turns(session)
        [call] = calls(parts)
        assert of_type(ToolCompleted, call.state).output == "first"
        assert await stage.is_sound(session)


async def test_a_call_that_is_said_twice_is_run_once(play: Play) -> None:
    ran: list[str] = []

    async def count(text: str, context: ToolContext) -> str:
        ran.append(text)
        return text

    call: list[s.StreamEvent] = [
        s.ToolInputStart(id="c", name="count"),
        s.ToolInputDelta(id="c", text='{"text":"a"}'),
        s.ToolCall(id="c", name="count", input={"text": "a"}),
    ]
    other = s.ToolCall(id="c", name="count", input={"text": "b"})
    end = s.FinishStep(reason="tool-calls")
    done: list[list[s.StreamEvent]] = [[s.StartStep(), s.TextDelta(id="x", text="end"), s.FinishStep(reason="stop")]]
    async with play(
        Told([[s.StartStep()], call, call, [other], [end]], done), tools=(a_tool("count", count),)
    ) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert ran == ["a", "b"]
        assert await stage.is_sound(session)


async def test_only_so_many_calls_run_at_once(play: Play) -> None:
    begun: list[str] = []
    release = anyio.Event()

    async def holds(text: str, context: ToolContext) -> str:
        begun.append(text)
        await release.wait()
        return text

    script = Scripted()
    for number in range(CALLS_PARALLEL_MAX + 4):
        script.calls("holds", text=str(number))
    async with play(script.then().says("ok"), tools=(a_tool("holds", holds),)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await anyio.wait_all_tasks_blocked()
        assert len(begun) == CALLS_PARALLEL_MAX
        release.set()
        await stage.tk.wait(session)
        assert len(begun) == CALLS_PARALLEL_MAX + 4


async def test_more_calls_than_one_answer_may_make_are_refused_with_advice(play: Play) -> None:
    script = Scripted()
    for number in range(CALLS_PER_TURN_MAX + 1):
        script.calls("echo", text=str(number))
    async with play(script.then().says("ok")) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        settled = calls((await stage.turns(session))[0][1])
        assert sum(isinstance(call.state, ToolCompleted) for call in settled) == CALLS_PER_TURN_MAX
        assert "Do the rest in your next answer" in of_type(ToolError, settled[-1].state).error


async def test_reasoning_keeps_its_signature_and_goes_back_with_it(play: Play) -> None:
    script = Scripted().thinks("Hm, well.", signature="sig").says("Yes.").then().says("Still yes.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "Is it?")
        [(_, parts)] = await stage.turns(session)
        [thought] = [part for part in parts if isinstance(part, ReasoningPart)]
        assert (thought.text, thought.metadata) == ("Hm, well.", {"scripted": {"signature": "sig"}})
        await stage.ask(session, "Sure?")
        again = of_type(AssistantTurn, script.requests[1].messages[1])
        assert again.content[0] == Reasoning(text=thought.text, metadata=thought.metadata)


async def test_the_last_step_may_use_no_tools_and_is_told_so(play: Play) -> None:
    script = Scripted().calls("echo", text="a").then().calls("echo", text="b").says("So far.")
    async with play(script, config={"agent": {"build": {"steps": 2}}}) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).kind == "rested"
        first, last = script.requests
        assert (first.tool_choice, last.tool_choice) == ("auto", "none")
        assert first.tools == last.tools  # Kept for the provider's cache; a call of them is refused.
        assert isinstance(last.messages[-1], SystemTurn)
        stray = calls((await stage.turns(session))[1][1])[0]
        assert "step limit" in of_type(ToolError, stray.state).error
        assert len(await stage.turns(session)) == 2


async def test_the_allowance_of_steps_begins_anew_with_each_prompt(play: Play) -> None:
    script = Scripted().calls("echo", text="a").then().says("End.").then().calls("echo", text="b").then().says("End.")
    async with play(script, config={"agent": {"build": {"steps": 2}}}) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        await stage.ask(session, "two")
        assert [request.tool_choice for request in script.requests] == ["auto", "none", "auto", "none"]


async def test_an_answer_without_a_word_is_asked_for_again_but_not_for_ever(play: Play) -> None:
    script = Scripted().usage(input=1).forever()
    async with play(script) as stage:
        session = await stage.session()
        outcome = await stage.ask(session, "go")
        assert outcome.kind == "rested"
        assert len(script.requests) == 1 + EMPTY_TURNS_MAX


async def test_a_refusal_is_recorded_with_the_provider_s_explanation(play: Play) -> None:
    metadata = {"anthropic": {"stopReason": "refusal", "stopDetails": {"explanation": "Blocked under the policy."}}}
    told = Told([[s.StartStep(), s.FinishStep(reason="content-filter", metadata=metadata), s.Finish()]])
    async with play(told) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, ContentFilterFailure)
        assert message.error.data.message == "the provider refused the content: Blocked under the policy."


async def test_an_answer_that_the_provider_paused_is_asked_for_the_rest(play: Play) -> None:
    script = Scripted().says("Half").finishes("pause").then().says("and half.")
    async with play(script) as stage:
        session = await stage.session()
        outcome = await stage.ask(session, "go")
        (first, parts), (second, answer) = await stage.turns(session)
        assert (first.finish, second.finish, outcome.reason) == ("pause", "stop", "answered")
        assert texts(parts) + texts(answer) == ["Half", "and half."]
        assert isinstance(parts[-1], StepFinishPart)
        assert await stage.is_sound(session)


async def test_content_that_the_provider_refuses_is_a_typed_failure(play: Play) -> None:
    async with play(Scripted().says("I").finishes("content-filter")) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, ContentFilterFailure)
        assert message.finish == "content-filter"


@pytest.mark.parametrize(
    ("script", "fails"),
    [
        (lambda: Scripted(), True),
        (lambda: Scripted().thinks("On and on"), True),
        (lambda: Scripted().says("   "), True),
        (lambda: Scripted().says("Half a sen"), False),
    ],
    ids=["nothing", "only thoughts", "only blanks", "words"],
)
async def test_an_answer_cut_before_it_said_anything_is_a_typed_failure(
    play: Play, script: Callable[[], Scripted], fails: bool
) -> None:
    async with play(script().finishes("length")) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, OutputLengthFailure) is fails


async def test_a_provider_with_a_bug_ends_the_turn_and_the_session_goes_on(play: Play) -> None:
    class Broken(Scripted):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            if not self.requests:
                self.requests.append(request)
                yield [s.StartStep(), s.TextDelta(id="t", text="half")]
                raise KeyError("a bug")
            async for batch in super().stream(request):
                yield batch

    async with play(Broken().says("Better.")) as stage:
        session = await stage.session()
        outcome = await stage.ask(session, "go")
        assert (outcome.kind, outcome.reason) == ("crashed", "KeyError: 'a bug'")
        [(message, parts)] = await stage.turns(session)
        assert isinstance(message.error, UnknownFailure)
        assert (message.error.data.message, texts(parts)) == ("KeyError: 'a bug'", ["half"])
        assert await stage.is_sound(session)
        assert (await stage.ask(session, "again")).kind == "rested"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"model": ModelChoice(provider_id="acme", model_id="none")}, "none"),
        ({"model": ModelChoice(provider_id="nobody", model_id="none")}, "nobody"),
        ({"model": ModelChoice(provider_id="anthropic", model_id="claude-sonnet-4-5")}, "auth login anthropic"),
        ({"agent": "none"}, "none"),
    ],
)
async def test_a_prompt_for_a_model_or_an_agent_that_cannot_answer_is_refused_and_leaves_no_trace(
    play: Play, named: dict[str, object], why: str
) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        before = await stage.tk.store.journal.view(session)
        with pytest.raises(Invalid, match=why):
            await stage.ask(session, "go", **named)
        assert await stage.tk.store.journal.view(session) == before


async def test_a_prompt_whose_model_is_gone_when_its_turn_comes_is_answered_with_why(play: Play) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        await stage.say(session, "go", model=ModelChoice(provider_id="acme", model_id="other"), resume=False)
        settings = stage.directory / "turnkeeper.json"
        settings.write_text(settings.read_text().replace('"other"', '"another"'))
        await stage.tk.run(session)
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, UnknownFailure)
        assert "other" in message.error.data.message
        assert await stage.is_sound(session)


@ON_DISK_TOO
async def test_two_sessions_run_at_the_same_time(play: Play) -> None:
    met = 0
    both = anyio.Event()

    async def meet(text: str, context: ToolContext) -> str:
        nonlocal met
        met += 1
        if met == 2:
            both.set()
        await both.wait()
        return "met"

    script = Scripted().calls("meet").then().calls("meet").then().says("a").then().says("b")
    async with play(script, tools=(*TOOLS, a_tool("meet", meet))) as stage:
        one, two = await stage.session(), await stage.session()
        await stage.say(one, "go")
        await stage.say(two, "go")
        await stage.tk.wait(one)
        await stage.tk.wait(two)
        assert met == 2
