"""The scripted provider says what a test wrote, keeps the order of events, and waits for gates and nothing else."""

import anyio
import pytest

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import ApiFailure, AuthFailure, OverflowFailure
from turnkeeper.model.request import ModelRequest, Text, ToolDefinition, UserTurn
from turnkeeper.model.stream import (
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StartStep,
    StreamError,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolFailed,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    Usage,
)
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.script import DEFAULT_USAGE, Gate
from turnkeeper.providers.scripted import Scripted

MODEL = ModelInfo(provider_id="scripted", id="m", name="M", api_id="m", protocol="scripted")


def a_request(
    text: str = "hi", *, system: tuple[str, ...] = (), tools: tuple[ToolDefinition, ...] = ()
) -> ModelRequest:
    return ModelRequest(model=MODEL, system=system, messages=(UserTurn(content=(Text(text=text),)),), tools=tools)


async def answer(provider: Provider, request: ModelRequest | None = None) -> list[StreamEvent]:
    return [event async for events in provider.stream(request or a_request()) for event in events]


async def test_text_comes_word_by_word() -> None:
    assert await answer(Scripted().says("one two")) == [
        Start(request_id="req_1"),
        StartStep(),
        TextStart(id="text-0"),
        TextDelta(id="text-0", text="one "),
        TextDelta(id="text-0", text="two"),
        TextEnd(id="text-0"),
        FinishStep(reason="stop", usage=DEFAULT_USAGE),
        Finish(),
    ]


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("abcdef", 3, ["ab", "cd", "ef"]),
        ("abcde", 2, ["abc", "de"]),
        ("ab", 5, ["a", "b"]),
        ("  a  b ", None, [" ", " ", "a ", " ", "b "]),
        ("a\nb c", None, ["a\nb ", "c"]),
        ("", None, []),
        ("", 3, []),
    ],
)
async def test_text_comes_in_pieces_that_are_never_empty(text: str, pieces: int | None, expected: list[str]) -> None:
    events = await answer(Scripted().says(text, pieces=pieces))
    assert [event.text for event in events if isinstance(event, TextDelta)] == expected


async def test_reasoning_calls_and_the_providers_own_tools() -> None:
    script = Scripted().thinks("hm", signature="sig").calls("bash", command="ls").runs("web_search", output=[1], q="x")
    raw = '{"command":"ls"}'
    assert (await answer(script))[2:] == [
        ReasoningStart(id="reasoning-0"),
        ReasoningDelta(id="reasoning-0", text="hm"),
        ReasoningEnd(id="reasoning-0", metadata={"scripted": {"signature": "sig"}}),
        ToolInputStart(id="call_1", name="bash"),
        ToolInputDelta(id="call_1", text=raw),
        ToolInputEnd(id="call_1"),
        ToolCall(id="call_1", name="bash", input={"command": "ls"}, raw=raw),
        ToolInputStart(id="call_2", name="web_search", executed=True),
        ToolInputDelta(id="call_2", text='{"q":"x"}'),
        ToolInputEnd(id="call_2"),
        ToolCall(id="call_2", name="web_search", input={"q": "x"}, raw='{"q":"x"}', executed=True),
        ToolResult(id="call_2", name="web_search", output=[1]),
        FinishStep(reason="tool-calls", usage=DEFAULT_USAGE),
        Finish(),
    ]


async def test_an_argument_may_have_any_name() -> None:
    events = await answer(Scripted().calls("x", call_id="c9", name="n", self=1))
    [call] = [event for event in events if isinstance(event, ToolCall)]
    assert (call.id, call.input) == ("c9", {"name": "n", "self": 1})


async def test_input_that_is_no_json_is_a_failed_call() -> None:
    events = await answer(Scripted().calls_raw("bash", '{"command": ', call_id="c"))
    [failed] = [event for event in events if isinstance(event, ToolFailed)]
    assert (failed.id, failed.name) == ("c", "bash")
    assert not [event for event in events if isinstance(event, ToolCall)]


async def test_answers_come_in_order_and_call_ids_go_on() -> None:
    provider = Scripted().calls("a").then().calls("b").usage(input=7).then().says("end").finishes("length").usage(None)
    answers = [await answer(provider) for _ in range(3)]
    calls = [event.id for events in answers for event in events if isinstance(event, ToolCall)]
    assert calls == ["call_1", "call_2"]
    assert [events[-2] for events in answers] == [
        FinishStep(reason="tool-calls", usage=DEFAULT_USAGE),
        FinishStep(reason="tool-calls", usage=Usage(input=7)),
        FinishStep(reason="length", usage=None),
    ]
    assert provider.is_over


async def test_a_script_without_a_further_answer_is_a_mistake_in_the_test() -> None:
    provider = Scripted().says("once")
    await answer(provider)
    with pytest.raises(AssertionError, match="one more was asked for"):
        await answer(provider)


async def test_the_last_answer_can_be_given_for_ever() -> None:
    provider = Scripted().says("one").then().says("two").forever()
    texts = [(await answer(provider))[3] for _ in range(4)]
    assert texts == [TextDelta(id="text-0", text=word) for word in ("one", "two", "two", "two")]


async def test_the_requests_are_remembered() -> None:
    provider = Scripted().says("a").then().says("b")
    await answer(provider, a_request("first"))
    await answer(provider, a_request("second"))
    assert provider.requests == [a_request("first"), a_request("second")]


async def test_a_request_for_a_title_takes_no_answer_from_the_others() -> None:
    provider = Scripted().titles("Wind").says("an answer")
    titled = await answer(provider, a_request(system=("You are a title generator.",)))
    tool = ToolDefinition(name="bash", description="", schema={})
    talked = await answer(provider, a_request(system=("Title case.",), tools=(tool,)))
    assert titled[3] == TextDelta(id="text-0", text="Wind")
    assert talked[3] == TextDelta(id="text-0", text="an ")


async def test_a_failure_is_the_last_event() -> None:
    provider = Scripted().says("half").fails(429, headers={"retry-after-ms": "20"}).says("never")
    events = await answer(provider)
    last = events[-1]
    assert isinstance(last, StreamError)
    assert isinstance(last.failure, ApiFailure)
    assert last.failure.data.status_code == 429
    assert last.failure.data.is_retryable
    assert last.failure.data.response_headers == {"retry-after-ms": "20"}
    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta(id="text-0", text="half")]


@pytest.mark.parametrize(
    ("provider", "kind", "is_retryable"),
    [
        (Scripted().fails(401), AuthFailure, None),
        (Scripted().fails(500), ApiFailure, True),
        (Scripted().fails(400), ApiFailure, False),
        (Scripted().overflows(), OverflowFailure, None),
        (Scripted().cuts(), ApiFailure, True),
        (Scripted().garbles(), ApiFailure, True),
        (Scripted().garbles("scrambled"), ApiFailure, False),
        (Scripted().garbles("truncated"), ApiFailure, True),
    ],
)
async def test_every_fault_is_typed(provider: Scripted, kind: type, is_retryable: bool | None) -> None:
    last = (await answer(provider))[-1]
    assert isinstance(last, StreamError)
    assert type(last.failure) is kind
    assert getattr(last.failure.data, "is_retryable", None) == is_retryable


async def test_a_gate_holds_the_answer_until_it_is_opened() -> None:
    gate, seen = Gate(), list[StreamEvent]()
    provider = Scripted().says("before").waits(gate).says("after")

    async def read() -> None:
        async for [event] in provider.stream(a_request()):
            seen.append(event)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await gate.wait_reached()
        assert seen[-1] == TextEnd(id="text-0")
        gate.open()
    assert seen[-1] == Finish()


async def test_a_gate_opened_beforehand_holds_nothing() -> None:
    gate = Gate()
    gate.open()
    assert (await answer(Scripted().waits(gate).says("x")))[-1] == Finish()


async def test_a_hanging_answer_ends_when_its_reader_is_cancelled() -> None:
    provider, said = Scripted().says("half").hangs(), anyio.Event()

    async def read() -> None:
        async for [event] in provider.stream(a_request()):
            if isinstance(event, TextEnd):
                said.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await said.wait()
        assert provider.closed == 0
        group.cancel_scope.cancel()
    assert provider.closed == 1
