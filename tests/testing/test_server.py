"""The scripted server speaks four protocols well enough for our providers and for the official clients."""

import anyio
import httpx2
import pytest

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import ApiFailure, AuthFailure, Failure, OverflowFailure
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    ModelMessage,
    ModelRequest,
    Result,
    Text,
    ToolDefinition,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.stream import (
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    Start,
    StartStep,
    StreamError,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolFailed,
    ToolResult,
    Usage,
)
from turnkeeper.providers import PROVIDERS
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.http import HttpProvider
from turnkeeper.providers.script import Gate, Script, WireFault
from turnkeeper.testing.server import ScriptedServer
from turnkeeper.testing.voices import VOICES

TOOL = ToolDefinition(name="bash", description="Run.", schema={"type": "object", "properties": {"command": {}}})
PROTOCOLS = pytest.mark.parametrize("protocol", sorted(VOICES))


def a_request(
    protocol: str, *messages: ModelMessage, prompt: str = "hi", system: tuple[str, ...] = ("Be brief.",), **more: object
) -> ModelRequest:
    model = ModelInfo(provider_id="p", id="m-1", name="M", api_id="m-1", protocol=protocol, reasoning=True)
    history = messages or (UserTurn(content=(Text(text=prompt),)),)
    return ModelRequest(model=model, system=system, messages=history, tools=(TOOL,)).but(**more)


async def answered(server: ScriptedServer, request: ModelRequest) -> list[StreamEvent]:
    endpoint = Endpoint(protocol=request.model.protocol, provider_id="p", base_url=server.url, api_key="k")
    async with httpx2.AsyncClient(verify=False) as client:
        provider = HttpProvider(endpoint, client)
        return [event async for portion in provider.stream(request) for event in portion]


async def played(script: Script, protocol: str) -> list[StreamEvent]:
    async with ScriptedServer(script) as server:
        return await answered(server, a_request(protocol))


def text(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def failure(events: list[StreamEvent]) -> Failure:
    last = events[-1]
    assert isinstance(last, StreamError)
    return last.failure


def test_every_protocol_we_speak_has_a_voice() -> None:
    assert set(VOICES) == set(PROVIDERS)


@PROTOCOLS
async def test_text_arrives_as_it_was_written(protocol: str) -> None:
    events = await played(Script().says("one two three"), protocol)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["one ", "two ", "three"]
    assert events[0] == Start(request_id="req_1")
    assert events[1] == StartStep()
    assert events[-1] == Finish()


@PROTOCOLS
async def test_reasoning_and_calls_arrive_with_their_input(protocol: str) -> None:
    script = Script().thinks("hm hm", signature="sig").says("so").calls("bash", command="ls -l " * 9).calls("bash")
    events = await played(script, protocol)
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "hm hm"
    calls = [(event.name, event.input) for event in events if isinstance(event, ToolCall)]
    assert calls == [("bash", {"command": "ls -l " * 9}), ("bash", {})]
    finish = events[-2]
    assert isinstance(finish, FinishStep)
    assert finish.reason == "tool-calls"


@pytest.mark.parametrize("protocol", ["anthropic", "openai-responses", "gemini"])
async def test_reasoning_is_signed_where_the_protocol_signs(protocol: str) -> None:
    events = await played(Script().thinks("hm", signature="sig").says("so"), protocol)
    [end] = [event for event in events if isinstance(event, ReasoningEnd)]
    assert "sig" in str(end.metadata)


@PROTOCOLS
async def test_usage_is_counted_as_the_protocol_counts(protocol: str) -> None:
    usage = Usage(input=100, output=20, cache_read=60, total=120)
    if protocol != "anthropic":  # It reports no reasoning.
        usage = usage.but(reasoning=5)
    finish = (await played(Script().says("x").usage(usage), protocol))[-2]
    assert isinstance(finish, FinishStep)
    assert finish.usage == usage


async def test_cache_writes_are_counted_where_they_are_reported() -> None:
    usage = Usage(input=100, output=20, cache_read=60, cache_write=30, total=120)
    finish = (await played(Script().says("x").usage(usage), "anthropic"))[-2]
    assert isinstance(finish, FinishStep)
    assert finish.usage == usage


@PROTOCOLS
@pytest.mark.parametrize("reason", ["stop", "length", "content-filter"])
async def test_an_answer_ends_for_its_reason(protocol: str, reason: str) -> None:
    finish = (await played(Script().says("x").finishes(reason), protocol))[-2]
    assert isinstance(finish, FinishStep)
    assert finish.reason == reason


@PROTOCOLS
async def test_a_refusal_has_its_status_and_headers(protocol: str) -> None:
    found = failure(await played(Script().fails(429, headers={"retry-after-ms": "7"}), protocol))
    assert isinstance(found, ApiFailure)
    assert (found.data.status_code, found.data.is_retryable) == (429, True)
    assert found.data.response_headers is not None
    assert found.data.response_headers["retry-after-ms"] == "7"


@PROTOCOLS
@pytest.mark.parametrize(
    ("script", "kind", "is_retryable"),
    [
        pytest.param(lambda: Script().fails(500), ApiFailure, True, id="500"),
        pytest.param(lambda: Script().fails(503), ApiFailure, True, id="503"),
        pytest.param(lambda: Script().fails(400), ApiFailure, False, id="400"),
        pytest.param(lambda: Script().fails(401), AuthFailure, None, id="401"),
        pytest.param(lambda: Script().overflows(), OverflowFailure, None, id="overflow"),
        pytest.param(lambda: Script().says("half ").cuts(), ApiFailure, True, id="cut"),
        pytest.param(lambda: Script().says("half ").garbles(), ApiFailure, True, id="garbage"),
        pytest.param(lambda: Script().says("half ").garbles("truncated"), ApiFailure, True, id="truncated"),
        pytest.param(lambda: Script().says("half ").fails(503), ApiFailure, True, id="overloaded on the way"),
    ],
)
async def test_every_fault_ends_in_one_typed_error(
    protocol: str, script: object, kind: type, is_retryable: bool | None
) -> None:
    assert callable(script)
    events = await played(script(), protocol)
    found = failure(events)
    assert type(found) is kind
    assert getattr(found.data, "is_retryable", None) == is_retryable
    assert sum(isinstance(event, StreamError) for event in events) == 1


@pytest.mark.parametrize("protocol", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("fault", ["scrambled", "duplicated"])
async def test_events_out_of_order_or_twice_end_in_an_error(protocol: str, fault: WireFault) -> None:
    script = Script().garbles(fault).says("one two").calls("bash", command="ls")
    assert isinstance(failure(await played(script, protocol)), ApiFailure)


@pytest.mark.parametrize("protocol", ["anthropic", "openai-responses", "openai-chat"])
async def test_input_that_is_no_json_is_a_failed_call(protocol: str) -> None:
    events = await played(Script().calls_raw("bash", '{"command": '), protocol)
    assert [event.name for event in events if isinstance(event, ToolFailed)] == ["bash"]


@pytest.mark.parametrize(
    ("protocol", "tool", "output"),
    [
        ("anthropic", "web_search", [{"type": "web_search_result", "url": "u", "title": "t"}]),
        ("openai-responses", "web_search", None),
        ("gemini", "code_execution", {"outcome": "OUTCOME_OK", "output": "3"}),
    ],
)
async def test_a_tool_of_the_provider_comes_with_its_result(protocol: str, tool: str, output: object) -> None:
    events = await played(Script().runs(tool, output=output, query="x").says("found"), protocol)
    [call] = [event for event in events if isinstance(event, ToolCall)]
    [result] = [event for event in events if isinstance(event, ToolResult)]
    assert (call.name, call.executed, result.id) == (tool, True, call.id)
    assert text(events) == "found"


@PROTOCOLS
async def test_the_server_remembers_what_it_was_sent(protocol: str) -> None:
    async with ScriptedServer(Script().says("x")) as server:
        await answered(server, a_request(protocol, prompt="remember me"))
    [received] = server.requests
    assert (received.method, received.protocol) == ("POST", protocol)
    assert "remember me" in str(received.body)
    assert "k" in (
        received.headers.get("x-api-key") or received.headers.get("x-goog-api-key") or received.headers["authorization"]
    )


@PROTOCOLS
async def test_answers_come_in_order_whatever_the_protocol(protocol: str) -> None:
    async with ScriptedServer(Script().titles("Wind").calls("bash", command="ls").then().says("end")) as server:
        first = await answered(server, a_request(protocol))
        title = await answered(server, a_request(protocol, system=("Give a title.",), tools=()))
        second = await answered(server, a_request(protocol))
    assert [event.name for event in first if isinstance(event, ToolCall)] == ["bash"]
    assert (text(title), text(second)) == ("Wind", "end")


async def test_a_gate_holds_the_bytes_back() -> None:
    gate, seen = Gate(), list[StreamEvent]()
    async with (
        ScriptedServer(Script().says("before ").waits(gate).says("after")) as server,
        httpx2.AsyncClient(verify=False) as client,
    ):
        endpoint = Endpoint(protocol="anthropic", provider_id="p", base_url=server.url)
        heard = anyio.Event()

        async def read() -> None:
            async for portion in HttpProvider(endpoint, client).stream(a_request("anthropic")):
                seen.extend(portion)
                if text(seen) == "before ":
                    heard.set()

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await heard.wait()
            assert text(seen) == "before "
            gate.open()
    assert text(seen) == "before after"


async def test_a_hanging_answer_notices_that_its_client_went_away() -> None:
    async with ScriptedServer(Script().says("half ").hangs()) as server:
        async with (
            httpx2.AsyncClient(verify=False) as client,
            client.stream("POST", f"{server.url}/messages", json={}) as response,
        ):
            async for _ in response.aiter_bytes():
                break
            assert not server.requests[0].gone.is_set()
        await server.requests[0].gone.wait()


async def test_a_slow_answer_pauses_before_every_event() -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with ScriptedServer(Script().paces(0.25).says("a b"), pause=pause) as server:
        assert text(await answered(server, a_request("gemini"))) == "a b"
    assert pauses == [0.25] * 3


async def test_one_connection_serves_several_requests() -> None:
    async with ScriptedServer(Script().says("a").then().fails(500).then().says("b")) as server:
        port = int(server.url.rpartition(":")[2].removesuffix("/v1"))
        async with await anyio.connect_tcp("127.0.0.1", port) as connection:
            body = b'{"stream":true}'
            request = b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
            for ending in (b"0\r\n\r\n", b"}", b"0\r\n\r\n"):
                await connection.send(request)
                got = b""
                while not got.endswith(ending):
                    got += await connection.receive()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "request_", [b"GET /v1/messages HTTP/1.1\r\n\r\n", b"POST /v1/nothing HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"]
)
async def test_what_is_no_request_for_an_answer_is_not_found(request_: bytes) -> None:
    async with ScriptedServer() as server:
        port = int(server.url.rpartition(":")[2].removesuffix("/v1"))
        async with await anyio.connect_tcp("127.0.0.1", port) as connection:
            await connection.send(request_)
            assert (await connection.receive()).startswith(b"HTTP/1.1 404")


async def test_a_test_that_fails_inside_fails_by_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError):
        async with ScriptedServer():
            raise ZeroDivisionError


# --- Directives --------------------------------------------------------------------------------------------------


def after(protocol: str, prompt: str, turns: int) -> ModelRequest:
    """A request after so many turns with a call each."""
    history: list[ModelMessage] = [UserTurn(content=(Text(text=prompt),))]
    for turn in range(turns):
        call = Call(id=f"c{turn}", name="bash", input={"command": "ls"})
        history.append(AssistantTurn(content=(Text(text="calling"), call)))
        history.append(ToolTurn(results=(Result(call_id=f"c{turn}", name="bash", output=(Text(text="out"),)),)))
    return a_request(protocol, *history)


@PROTOCOLS
async def test_directives_are_played_one_a_turn(protocol: str) -> None:
    prompt = "go [[bash ls -l]] [[write a.txt|hi]] [[text all done]]"
    async with ScriptedServer() as server:
        answers = [await answered(server, after(protocol, prompt, turns)) for turns in range(4)]
    calls = [[(event.name, event.input) for event in events if isinstance(event, ToolCall)] for events in answers]
    assert calls == [
        [("bash", {"command": "ls -l", "description": "Scripted command"})],
        [("write", {"filePath": "a.txt", "content": "hi"})],
        [],
        [],
    ]
    assert [text(events) for events in answers] == ["", "", "all done", "DONE"]


@PROTOCOLS
async def test_a_fault_in_a_directive_happens_as_often_as_it_says(protocol: str) -> None:
    async with ScriptedServer() as server:
        answers = [await answered(server, a_request(protocol, prompt="[[429 2]] [[text ok]]")) for _ in range(3)]
    assert [isinstance(events[-1], StreamError) for events in answers] == [True, True, False]
    assert text(answers[2]) == "ok"


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("hello", "Hello from the scripted provider."),
        ("[[reason why not]]", "Answer after reasoning."),
        ("[[deltas 3]]", "0     1     2     "),
        ("[[length]]", "cut sho"),
        ("[[empty]]", ""),
        ("[[echo]]", '{"messages":1,"tools":["bash"],"turns":0}'),
        ("[[usage 5000]] [[text x]]", "x"),
    ],
)
async def test_what_a_directive_says(prompt: str, said: str) -> None:
    async with ScriptedServer() as server:
        events = await answered(server, a_request("openai-chat", prompt=prompt))
    assert text(events) == said
    finish = events[-2]
    assert isinstance(finish, FinishStep)
    assert finish.usage is not None
    assert finish.usage.input == (5000 if "usage" in prompt else 10)


@pytest.mark.parametrize(
    ("prompt", "calls"),
    [
        ('[[tool grep {"pattern": "[a]"}]]', [("grep", {"pattern": "[a]"})]),
        ('[[tools [["a", {"x": [1]}], ["b", {}]]]]', [("a", {"x": [1]}), ("b", {})]),
        ("[[read a.py]]", [("read", {"filePath": "a.py"})]),
        ("[[todo x;y]]", None),
        ("[[task go]]", [("task", {"description": "Scripted task", "prompt": "go", "subagent_type": "general"})]),
    ],
)
async def test_what_a_directive_calls(prompt: str, calls: list[tuple[str, object]] | None) -> None:
    async with ScriptedServer() as server:
        events = await answered(server, a_request("anthropic", prompt=prompt))
    made = [(event.name, event.input) for event in events if isinstance(event, ToolCall)]
    if calls is None:
        todos = [{"content": item, "status": "pending", "priority": "medium"} for item in "xy"]
        calls = [("todowrite", {"todos": todos})]
    assert made == calls


# --- The official clients ----------------------------------------------------------------------------------------


def a_script() -> Script:
    return (
        Script()
        .thinks("hm", signature="sig")
        .says("it is so")
        .calls("bash", command="ls")
        .usage(input=9, output=4, total=13)
    )


async def test_anthropics_client_reads_our_messages() -> None:
    anthropic = pytest.importorskip("anthropic")
    options = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    async with (
        ScriptedServer(a_script()) as server,
        anthropic.AsyncAnthropic(api_key="k", base_url=server.url.removesuffix("/v1"), max_retries=0) as client,
        client.messages.stream(**options) as stream,
    ):
        message = await stream.get_final_message()
    thinking, said, call = message.content
    assert (thinking.thinking, thinking.signature, said.text) == ("hm", "sig", "it is so")
    assert (call.name, call.input, message.stop_reason) == ("bash", {"command": "ls"}, "tool_use")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (9, 4)


async def test_openais_client_reads_our_chat_completions() -> None:
    openai = pytest.importorskip("openai")
    options = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with (
        ScriptedServer(a_script()) as server,
        openai.AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as client,
    ):
        chunks = [chunk async for chunk in await client.chat.completions.create(**options)]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "it is so"
    arguments = [call.function.arguments for delta in deltas for call in delta.tool_calls or ()]
    assert "".join(arguments) == '{"command":"ls"}'
    assert chunks[-1].usage.total_tokens == 13


async def test_openais_client_reads_our_responses() -> None:
    openai = pytest.importorskip("openai")
    async with (
        ScriptedServer(a_script()) as server,
        openai.AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as client,
        client.responses.stream(model="m", input="hi") as stream,
    ):
        events = [event async for event in stream]
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "it is so"
    [done] = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert done.arguments == '{"command":"ls"}'
    assert events[-1].response.usage.total_tokens == 13


async def test_openais_client_reads_a_response_that_is_not_streamed() -> None:
    openai = pytest.importorskip("openai")
    async with (
        ScriptedServer(a_script()) as server,
        openai.AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as client,
    ):
        response = await client.responses.create(model="m", input="hi")
    assert response.output_text == "it is so"
    [call] = [item for item in response.output if item.type == "function_call"]
    assert (call.name, call.arguments) == ("bash", '{"command":"ls"}')
    assert response.usage.total_tokens == 13
