"""Tools, components, providers and askers of a caller end their own call, never another session or the program."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import anyio
import pytest
from narrow import of_type

from turnkeeper.context.component import ContextComponent, Sample, Sampling
from turnkeeper.model import stream as s
from turnkeeper.model.failure import AbortedFailure, UnknownData, UnknownFailure
from turnkeeper.model.parts import ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import Option, Question, QuestionReply
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import TOOLS, EachSession, Play, Stage, Told, a_tool
from turnkeeper.tools.tool import ToolContext


async def cancel_a_task_of_its_own() -> None:
    """What a library does whose inner task was cancelled."""
    task = asyncio.ensure_future(anyio.sleep_forever())
    await asyncio.sleep(0)
    task.cancel()
    await task


async def exit_the_program() -> None:
    sys.exit(3)


async def exit_in_a_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(cancel_a_task_of_its_own)
        sys.exit(3)


Misbehave: TypeAlias = Callable[[], Awaitable[None]]
FOREIGN: list[Misbehave] = [cancel_a_task_of_its_own, exit_the_program, exit_in_a_group]


async def others_go_on(stage: Stage, other: str) -> None:
    """Another session answers, and the block that opened the store goes on."""
    assert (await stage.ask(other, "and you?")).reason == "answered"
    assert await stage.is_sound(other)


@pytest.mark.parametrize("misbehave", FOREIGN)
async def test_a_tool_that_does_it_is_a_failed_call_and_the_model_goes_on(play: Play, misbehave: Misbehave) -> None:
    async def run(text: str, context: ToolContext) -> str:
        await misbehave()
        return "never"

    script = Scripted().calls("mine", text="x").then().says("Well.").forever()
    async with play(script, tools=(a_tool("mine", run),)) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        (_, parts), (_, said) = await stage.turns(session)
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolError)
        assert call.state.metadata is None  # Nothing was interrupted.
        assert "The tool failed" in call.state.error
        assert [part.text for part in said if isinstance(part, TextPart)] == ["Well."]
        await others_go_on(stage, await stage.session())


@pytest.mark.parametrize("misbehave", FOREIGN)
async def test_an_asker_that_does_it_is_a_failed_call_and_the_model_goes_on(play: Play, misbehave: Misbehave) -> None:
    async def ask(request: PermissionRequest) -> Reply:
        await misbehave()
        return Reply(answer="once")

    script = Scripted().calls("asks", text="x").then().says("Well.").forever()
    async with play(script, ask=ask, tools=TOOLS, config={"permission": {"asks": "ask"}}) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        (_, parts), _ = await stage.turns(session)
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolError)
        assert call.state.metadata is None
        await others_go_on(stage, await stage.session())


@pytest.mark.parametrize("misbehave", FOREIGN)
async def test_a_component_that_does_it_is_unavailable(play: Play, misbehave: Misbehave) -> None:
    async def load(sampling: Sampling) -> Sample:
        await misbehave()
        raise AssertionError("it came back")

    async with play(Scripted().says("Well.").forever()) as stage:
        with stage.tk.context(ContextComponent("acme/x", load)):
            session = await stage.session()
            assert (await stage.ask(session, "go")).reason == "answered"
        await others_go_on(stage, await stage.session())


@pytest.mark.parametrize("misbehave", FOREIGN)
async def test_a_provider_that_does_it_fails_the_turn_of_its_session_alone(play: Play, misbehave: Misbehave) -> None:
    class Misbehaving:
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            yield [s.Start()]
            await misbehave()

    good = Scripted().says("Well.").forever()
    scripts = iter(list[Provider]([Misbehaving(), good]))
    async with play(EachSession(lambda: next(scripts))) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).kind == "crashed"
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, UnknownFailure)
        assert await stage.is_sound(session)
        await others_go_on(stage, await stage.session())


async def test_a_title_that_cannot_be_had_for_it_ends_nothing(play: Play) -> None:
    class Provider:
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            if request.tools:
                async for batch in Scripted().says("Well.").stream(request):
                    yield batch
            else:
                await cancel_a_task_of_its_own()

    async with play(Provider(), titles=True) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        await stage.tk.wait_upkeep(session)
        await others_go_on(stage, session)


async def test_an_interrupt_while_a_tool_waits_is_no_failure_of_the_tool(play: Play) -> None:
    begun = anyio.Event()

    async def run(text: str, context: ToolContext) -> str:
        begun.set()
        await asyncio.ensure_future(anyio.sleep_forever())
        return "never"

    async with play(Scripted().calls("mine", text="x"), tools=(a_tool("mine", run),)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await begun.wait()
        assert await stage.tk.stop(session)
        [(message, parts)] = await stage.turns(session)
        assert isinstance(message.error, AbortedFailure)
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        assert of_type(ToolError, call.state).metadata == {"interrupted": True}


async def test_a_tool_that_cancels_the_task_it_runs_in_ends_its_session_s_run_alone(play: Play) -> None:
    async def run(text: str, context: ToolContext) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "never"

    script = Scripted().calls("mine", text="x").then().says("Well.").forever()
    async with play(script, tools=(a_tool("mine", run),)) as stage:
        session = await stage.session()
        outcome = await stage.ask(session, "go")
        assert outcome.kind == "crashed"
        await others_go_on(stage, await stage.session())


async def test_lone_surrogates_of_a_provider_are_replaced(play: Play) -> None:
    lone = "a\ud800b"
    call = s.ToolCall(id="c\udc00", name="echo", input={"text": lone}, raw=f'{{"text": "{lone}"}}')
    words = (s.ReasoningDelta(id="r", text=lone), s.TextDelta(id="t", text=lone))
    first: list[s.StreamEvent] = [s.StartStep(), *words, call]
    last: list[s.StreamEvent] = [
        s.StartStep(),
        s.TextDelta(id="t", text="ok"),
        s.FinishStep(reason="stop", metadata={lone: lone}),
    ]
    async with play(Told([first, [s.FinishStep(reason="tool-calls")]], [last])) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        (_, parts), _ = await stage.turns(session)
        assert [part.text for part in parts if isinstance(part, TextPart | ReasoningPart)] == ["a\ufffdb"] * 2
        [called] = [part for part in parts if isinstance(part, ToolPart)]
        assert isinstance(called.state, ToolCompleted)
        assert (called.state.input, called.state.output) == ({"text": "a\ufffdb"}, "a\ufffdb")
        assert await stage.is_sound(session)


async def test_lone_surrogates_of_a_failure_and_of_a_title_are_replaced(play: Play) -> None:
    class Provider:
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            if request.tools:
                yield [s.StreamError(failure=UnknownFailure(data=UnknownData(message="no\ud800")))]
            else:
                yield [s.StartStep(), s.TextDelta(id="t", text="A\ud800"), s.FinishStep(reason="stop")]

    async with play(Provider(), titles=True) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.tk.wait_upkeep(session)
        [(message, _)] = await stage.turns(session)
        assert message.error == UnknownFailure(data=UnknownData(message="no\ufffd"))
        assert (await stage.tk.get(session)).title == "A\ufffd"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, r"The call timed out after [\d.]+ s\."),
        (TimeoutError("no answer within 3 s"), r"No answer within 3 s"),
        (OSError(), r"OSError"),
        (ConnectionResetError(), r"ConnectionResetError"),
        (ValueError(), r"The tool failed: ValueError"),
        (ValueError("boom"), r"The tool failed: ValueError: boom"),
    ],
    ids=repr,
)
async def test_the_model_reads_why_a_call_failed(play: Play, error: Exception | None, said: str) -> None:
    async def run(text: str, context: ToolContext) -> str:
        if error is not None:
            raise error
        async with asyncio.timeout(0):
            await anyio.sleep_forever()
        return "never"

    script = Scripted().calls("mine", text="x").then().says("Well.")
    async with play(script, tools=(a_tool("mine", run),)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [call] = [part for part in (await stage.turns(session))[0][1] if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolError)
        assert re.fullmatch(said, call.state.error)


async def question(text: str, context: ToolContext) -> str:
    asked = Question(question="Which?", header="Colour", options=(Option(label="Red", description=""),))
    return str(await context.question([asked]))


class Answering:
    """Callbacks that fail in one way each."""

    @staticmethod
    async def raises(request: object) -> Any:
        raise ValueError("boom")

    @staticmethod
    async def gives_text(request: object) -> Any:
        return "Red"

    @staticmethod
    async def gives_too_many(request: object) -> Any:
        return QuestionReply(answers=(("Red",), ("Blue",)))

    @staticmethod
    def is_no_coroutine(request: object) -> Any:
        return QuestionReply(answers=(("Red",),))


@pytest.mark.parametrize(
    ("name", "callback", "said"),
    [
        ("ask", Answering.raises, "The user could not be asked: the callback `ask` failed: ValueError: boom"),
        ("ask", Answering.is_no_coroutine, "The user could not be asked: the callback `ask` failed: TypeError"),
        ("question", Answering.raises, "The user could not be asked: the callback `question` failed: ValueError: boom"),
        ("question", Answering.gives_text, "The callback `question` gave 'Red'; it must give a QuestionReply."),
        ("question", Answering.gives_too_many, "The callback `question` gave no answer that fits: que_"),
    ],
)
async def test_a_callback_that_fails_is_named_and_the_tool_is_not_blamed(
    play: Play, name: str, callback: Any, said: str
) -> None:
    script = Scripted().calls("question" if name == "question" else "asks", text="x").then().says("Well.").forever()
    tools = (*TOOLS, a_tool("question", question))
    given = {"ask": callback} if name == "ask" else {"question": callback}
    async with play(script, tools=tools, config={"permission": {"asks": "ask"}}, **given) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        [call] = [part for _, parts in await stage.turns(session) for part in parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolError)
        assert call.state.error.startswith(said)
        assert await stage.is_sound(session)
