"""What recorded answers say, and that the official packages read the same out of them."""

from typing import Any

import msgspec
import pytest
from anthropic._streaming import SSEDecoder
from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseRefusalDeltaEvent, ResponseStreamEvent, ResponseTextDeltaEvent
from pydantic import TypeAdapter
from wire_cases import RECORDINGS, read, read_recording, recording

from turnkeeper.model.failure import ApiFailure, AuthData, AuthFailure, OverflowFailure
from turnkeeper.model.stream import (
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
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
from turnkeeper.providers import PROVIDERS
from turnkeeper.providers.sse import SseParser

USAGE = Usage(input=30, output=12, reasoning=4, cache_read=10, total=42)
ANTHROPIC = TypeAdapter[RawMessageStreamEvent](RawMessageStreamEvent)
RESPONSES = TypeAdapter[ResponseStreamEvent](ResponseStreamEvent)
READ = {"path": "src/main.py", "limit": 10}


def said(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thought(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def calls(events: list[StreamEvent]) -> list[tuple[str, str, object]]:
    return [(event.id, event.name, event.input) for event in events if isinstance(event, ToolCall)]


def last_step(events: list[StreamEvent]) -> FinishStep:
    (step,) = (event for event in events if isinstance(event, FinishStep))
    return step


def test_an_anthropic_text_is_read_event_by_event() -> None:
    usage = Usage(input=1225, output=15, cache_read=1000, cache_write=200, total=1240)
    assert read_recording("anthropic.text") == [
        TextStart(id="text-0"),
        TextDelta(id="text-0", text="Hello"),
        TextDelta(id="text-0", text=", wörld"),
        TextDelta(id="text-0", text=" 🌍!"),
        TextEnd(id="text-0"),
        FinishStep(reason="stop", usage=usage),
        Finish(),
    ]


def test_an_anthropic_call_is_read_event_by_event() -> None:
    raw = '{"path": "src/main.py", "limit": 10}'
    assert read_recording("anthropic.tool")[3:-2] == [
        ToolInputStart(id="toolu_01A", name="read"),
        ToolInputDelta(id="toolu_01A", text='{"path": "src/'),
        ToolInputDelta(id="toolu_01A", text='main.py", "limit"'),
        ToolInputDelta(id="toolu_01A", text=": 10}"),
        ToolInputEnd(id="toolu_01A"),
        ToolCall(id="toolu_01A", name="read", input=READ, raw=raw),
    ]


def test_anthropic_thinking_keeps_its_signature_and_what_is_redacted() -> None:
    redacted = {"anthropic": {"redactedData": "EmwKAhgB"}}
    assert read_recording("anthropic.reasoning")[:6] == [
        ReasoningStart(id="reasoning-0"),
        ReasoningDelta(id="reasoning-0", text="Let me"),
        ReasoningDelta(id="reasoning-0", text=" see."),
        ReasoningEnd(id="reasoning-0", metadata={"anthropic": {"signature": "EqQBCgIYAhIM=="}}),
        ReasoningStart(id="reasoning-1", metadata=redacted),
        ReasoningEnd(id="reasoning-1", metadata=redacted),
    ]


def test_openai_reasoning_keeps_its_encrypted_form_with_its_last_part() -> None:
    item = {"openai": {"itemId": "rs_1"}}
    sealed = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAAAABo"}}
    assert read_recording("openai-responses.reasoning")[:7] == [
        ReasoningStart(id="rs_1:0", metadata=item),
        ReasoningDelta(id="rs_1:0", text="Let me"),
        ReasoningDelta(id="rs_1:0", text=" see."),
        ReasoningEnd(id="rs_1:0", metadata=item),
        ReasoningStart(id="rs_1:1", metadata=item),
        ReasoningDelta(id="rs_1:1", text="Now add."),
        ReasoningEnd(id="rs_1:1", metadata=sealed),
    ]


def test_reasoning_without_a_word_is_kept_for_its_encrypted_form() -> None:
    sealed = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAAAABo"}}
    assert read_recording("openai-responses.sealed")[:2] == [
        ReasoningStart(id="rs_1:0", metadata={"openai": {"itemId": "rs_1"}}),
        ReasoningEnd(id="rs_1:0", metadata=sealed),
    ]


def test_a_gemini_signature_is_kept_with_the_block_it_comes_behind() -> None:
    signed = {"google": {"thoughtSignature": "CvUBAXLI"}}
    assert TextEnd(id="text-1", metadata=signed) in read_recording("gemini.reasoning")
    (call,) = (event for event in read_recording("gemini.tool") if isinstance(event, ToolCall))
    assert call.metadata == signed


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_a_text_is_the_same_from_every_provider(protocol: str) -> None:
    events = read_recording(f"{protocol}.text")
    assert said(events) == "Hello, wörld 🌍!"
    assert last_step(events).reason == "stop"
    assert sum(isinstance(event, TextStart) for event in events) == 1


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_reasoning_and_text_are_kept_apart(protocol: str) -> None:
    events = read_recording(f"{protocol}.reasoning")
    assert thought(events).startswith("Let me see.")
    assert said(events) == "27 \u00d7 453 = 12231"


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_a_call_is_the_same_from_every_provider(protocol: str) -> None:
    events = read_recording(f"{protocol}.tool")
    assert [(name, given) for _, name, given in calls(events)] == [("read", READ)]
    assert said(events) == "I will look."
    assert last_step(events).reason == "tool-calls"


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_parallel_calls_come_in_order_and_no_input_is_an_empty_object(protocol: str) -> None:
    events = read_recording(f"{protocol}.parallel")
    assert [(name, given) for _, name, given in calls(events)] == [("read", {"path": "a"}), ("list", {})]
    assert last_step(events).reason == "tool-calls"


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "gemini"])
def test_usage_counts_cache_and_reasoning_inside_input_and_output(protocol: str) -> None:
    assert last_step(read_recording(f"{protocol}.text")).usage == USAGE


@pytest.mark.parametrize(("case", "reason"), [("refusal", "content-filter"), ("length", "length")])
@pytest.mark.parametrize("protocol", PROVIDERS)
def test_why_an_answer_ended_has_one_word_for_all(protocol: str, case: str, reason: str) -> None:
    assert last_step(read_recording(f"{protocol}.{case}")).reason == reason


@pytest.mark.parametrize(("name", "reason"), [("gemini.blocked", "content-filter"), ("gemini.malformed_call", "error")])
def test_gemini_reasons_that_are_no_answer(name: str, reason: str) -> None:
    assert last_step(read_recording(name)).reason == reason


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat", "openai-responses"])
def test_input_that_is_no_json_is_a_failed_call_and_the_answer_goes_on(protocol: str) -> None:
    events = read_recording(f"{protocol}.bad_input")
    (failed,) = (event for event in events if isinstance(event, ToolFailed))
    assert failed.error == """The input of read is not a JSON object: '{"path": "a'"""
    assert isinstance(events[-1], Finish)


@pytest.mark.parametrize(
    ("name", "call", "result"),
    [
        (
            "anthropic.hosted",
            ToolCall(
                id="srvtoolu_01",
                name="web_search",
                input={"query": "weather Bern"},
                raw='{"query": "weather Bern"}',
                executed=True,
            ),
            ToolResult(
                id="srvtoolu_01",
                name="web_search",
                output={
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_01",
                    "content": [
                        {
                            "type": "web_search_result",
                            "title": "Bern",
                            "url": "https://example.org/bern",
                            "encrypted_content": "Eo8B",
                            "page_age": None,
                        }
                    ],
                },
            ),
        ),
        (
            "openai-responses.hosted",
            ToolCall(
                id="ws_1",
                name="web_search",
                input={"type": "search", "query": "weather Bern", "queries": ["weather Bern"]},
                raw='{"type":"search","query":"weather Bern","queries":["weather Bern"]}',
                executed=True,
            ),
            ToolResult(
                id="ws_1",
                name="web_search",
                output={
                    "id": "ws_1",
                    "type": "web_search_call",
                    "status": "completed",
                    "action": {"type": "search", "query": "weather Bern", "queries": ["weather Bern"]},
                },
            ),
        ),
        (
            "gemini.hosted",
            ToolCall(
                id="tool_0",
                name="code_execution",
                input={"language": "PYTHON", "code": "print(6*7)"},
                raw='{"language":"PYTHON","code":"print(6*7)"}',
                executed=True,
                metadata={"google": {"part": {"executableCode": {"language": "PYTHON", "code": "print(6*7)"}}}},
            ),
            ToolResult(
                id="tool_0",
                name="code_execution",
                output={"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
            ),
        ),
    ],
)
def test_a_hosted_tool_is_a_call_and_the_provider_s_own_result(name: str, call: ToolCall, result: ToolResult) -> None:
    events = read_recording(name)
    assert [event for event in events if isinstance(event, ToolCall | ToolResult)] == [call, result]
    assert last_step(events).reason == "stop"


def test_citations_are_kept_with_the_text_they_belong_to() -> None:
    (end,) = (event for event in read_recording("anthropic.hosted") if isinstance(event, TextEnd))
    assert end.metadata is not None
    kept: Any = end.metadata["anthropic"]
    assert kept["citations"][0]["cited_text"] == "Sunny"


def test_a_hosted_tool_that_failed_keeps_the_block_that_must_go_back() -> None:
    (failed,) = (event for event in read_recording("anthropic.hosted_error") if isinstance(event, ToolFailed))
    content = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_02", "content": content}
    expected = ToolFailed(
        id="srvtoolu_02", name="web_search", error="max_uses_exceeded", metadata={"anthropic": {"block": block}}
    )
    assert failed == expected


@pytest.mark.parametrize(
    ("case", "code", "is_retryable"),
    [
        ("cut", "incomplete_stream", True),
        ("garbage", "malformed_stream", True),
        ("duplicate", "malformed_stream", False),
        ("out_of_order", "malformed_stream", False),
    ],
)
@pytest.mark.parametrize("protocol", PROVIDERS)
def test_a_broken_stream_says_how_it_broke(protocol: str, case: str, code: str, is_retryable: bool) -> None:
    match read_recording(f"{protocol}.{case}")[-1]:
        case StreamError(failure=ApiFailure(data=data)):
            assert (data.metadata, data.is_retryable) == ({"code": code}, is_retryable)
        case other:
            pytest.fail(f"{other}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("anthropic.error", "overloaded_error: Overloaded"),
        ("openai-chat.error", "server_error: The server had an error while processing your request. Sorry about that!"),
        ("openai-responses.error", "server_error: The server had an error while processing your request."),
        ("openai-responses.failed", "rate_limit_exceeded: Rate limit reached for gpt-5"),
        ("gemini.error", "The model is overloaded. Please try again later."),
    ],
)
def test_an_error_inside_a_stream_is_the_provider_s_own_and_worth_a_retry(name: str, message: str) -> None:
    match read_recording(name)[-1]:
        case StreamError(failure=ApiFailure(data=data)):
            assert (data.message, data.is_retryable) == (message, True)
        case other:
            pytest.fail(f"{other}")


def test_what_was_counted_before_an_error_is_told_with_it() -> None:
    match read_recording("anthropic.error")[-1]:
        case StreamError(usage=usage):
            assert usage == Usage(input=25, output=1, total=26)
        case other:
            pytest.fail(f"{other}")


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat"])
def test_an_answer_with_its_reason_is_whole_although_the_last_event_is_missing(protocol: str) -> None:
    assert read_recording(f"{protocol}.unfinished") == read_recording(f"{protocol}.text")


# Dialects of hosts that speak the chat protocol in their own way.


def chunks(*deltas: object, finish: str | None = "stop") -> list[bytes]:
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    if finish:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    bodies = [b"data: " + msgspec.json.encode({"choices": [choice]}) + b"\n\n" for choice in choices]
    return [*bodies, b"data: [DONE]\n\n"]


def a_call(**fields: object) -> object:
    return {"tool_calls": [fields]}


def test_a_host_that_gives_every_call_the_same_index_still_makes_two_calls() -> None:
    one = a_call(index=0, id="a", function={"name": "read", "arguments": "{}"})
    two = a_call(index=0, id="b", function={"name": "list", "arguments": "{}"})
    assert calls(read("openai-chat", chunks(one, two))) == [("a", "read", {}), ("b", "list", {})]


def test_a_host_that_repeats_the_id_with_every_piece_makes_one_call() -> None:
    one = a_call(index=0, id="a", function={"name": "read", "arguments": '{"x"'})
    two = a_call(index=0, id="a", function={"name": None, "arguments": ":1}"})
    assert calls(read("openai-chat", chunks(one, two))) == [("a", "read", {"x": 1})]


def test_a_host_without_ids_and_indexes_gets_ids_made_up() -> None:
    one = a_call(function={"name": "read", "arguments": {"x": 1}})
    assert calls(read("openai-chat", chunks(one))) == [("call_0", "read", {"x": 1})]


def test_openrouter_s_reasoning_details_are_kept_whole() -> None:
    details = [{"type": "reasoning.encrypted", "data": "abc"}]
    events = read("openai-chat", chunks({"reasoning": "hm", "reasoning_details": details}, {"content": "ok"}))
    assert ReasoningEnd(id="reasoning-0", metadata={"openrouter": {"reasoning_details": details}}) in events


def test_mistral_s_thinking_comes_as_a_list() -> None:
    thinking = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}
    events = read("openai-chat", chunks(thinking, {"content": [{"type": "text", "text": "ok"}]}))
    assert (thought(events), said(events)) == ("hm", "ok")


def test_reasoning_after_text_opens_a_new_block() -> None:
    events = read("openai-chat", chunks({"reasoning": "a"}, {"content": "b"}, {"reasoning": "c"}))
    assert [event.id for event in events if isinstance(event, ReasoningStart)] == ["reasoning-0", "reasoning-1"]


def test_a_closing_mark_without_a_reason_ends_the_answer_as_unknown() -> None:
    assert last_step(read("openai-chat", chunks({"content": "a"}, finish=None))).reason == "unknown"


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat"])
def test_a_full_context_window_without_a_word_is_an_overflow(protocol: str) -> None:
    wire = chunks(finish="model_context_window_exceeded")
    if protocol == "anthropic":
        delta = {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}
        wire = [b"data: " + msgspec.json.encode(delta) + b"\n\n", b'data: {"type":"message_stop"}\n\n']
    match read(protocol, wire):
        case [StreamError(failure=OverflowFailure())]:
            pass
        case other:
            pytest.fail(f"{other}")


def test_half_a_character_is_replaced_and_a_whole_one_is_kept() -> None:
    wire = b'data: {"choices":[{"delta":{"content":"a\\ud83db \\ud83d\\ude00"},"finish_reason":"stop"}]}\n\n'
    assert said(read("openai-chat", [wire])) == "a\ufffdb 😀"


def test_an_error_with_half_a_character_is_told_as_the_error_that_it_is() -> None:
    wire = b'data: {"type":"error","error":{"type":"authentication_error","message":"no \\ud83d"}}\n\n'
    [*_, last] = read("anthropic", [wire])
    assert isinstance(last, StreamError)
    assert last.failure == AuthFailure(data=AuthData(provider_id="test", message="no \ufffd"))


def test_words_whose_block_never_began_are_kept() -> None:
    delta = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}\n\n'
    assert said(read("anthropic", [delta])) == "hi"


START = (
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"%b","name":"read"}}\n\n'
)
STOP = b'data: {"type":"content_block_stop","index":0}\n\n'


@pytest.mark.parametrize(
    ("wire", "said_of_it"),
    [
        ([START % b"a", START % b"b"], "block 0 begins twice"),
        ([START % b"a", STOP, START % b"b"], "block 0 begins twice"),
        ([START % b"a", STOP, STOP], "block 0 ends, but is not open"),
        ([b'data: {"type":"message_start"}\n\n'] * 2, "the message begins twice"),
    ],
)
def test_an_anthropic_stream_that_contradicts_itself_says_where(wire: list[bytes], said_of_it: str) -> None:
    match read("anthropic", wire)[-1]:
        case StreamError(failure=ApiFailure(data=data)):
            assert data.message == f"The provider's stream cannot be understood: {said_of_it}"
        case other:
            pytest.fail(f"{other}")


# The official packages as oracles.


def bodies(name: str) -> list[bytes]:
    parser = SseParser()
    return [data for _, data in (*parser.feed(recording(name)), *parser.end()) if data != b"[DONE]"]


SOUND = [name for name in RECORDINGS if name.partition(".")[2] not in ("error", "cut", "garbage", "failed")]


@pytest.mark.parametrize("name", [name for name in SOUND if name.startswith("anthropic.")])
def test_anthropic_s_types_accept_the_recording_and_say_the_same(name: str) -> None:
    events = [ANTHROPIC.validate_json(data) for data in bodies(name) if b'"ping"' not in data]
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    if "duplicate" not in name and "out_of_order" not in name:
        ours = read_recording(name)
        assert "".join(d.text for d in deltas if d.type == "text_delta") == said(ours)
        assert "".join(d.thinking for d in deltas if d.type == "thinking_delta") == thought(ours)
        written = "".join(event.text for event in ours if isinstance(event, ToolInputDelta))
        assert "".join(d.partial_json for d in deltas if d.type == "input_json_delta") == written


@pytest.mark.parametrize("name", [name for name in SOUND if name.startswith("openai-chat.")])
def test_openai_s_chunk_accepts_the_recording_and_says_the_same(name: str) -> None:
    parsed = [ChatCompletionChunk.model_validate_json(data) for data in bodies(name)]
    deltas = [choice.delta for chunk in parsed for choice in chunk.choices]
    if "duplicate" not in name and "out_of_order" not in name:
        ours = read_recording(name)
        assert "".join((d.content or "") + (d.refusal or "") for d in deltas) == said(ours)
        written = "".join(event.text for event in ours if isinstance(event, ToolInputDelta))
        pieces = [call.function.arguments for d in deltas for call in d.tool_calls or () if call.function]
        assert "".join(piece or "" for piece in pieces) == written


@pytest.mark.parametrize("name", [name for name in SOUND if name.startswith("openai-responses.")])
def test_openai_s_events_accept_the_recording_and_say_the_same(name: str) -> None:
    events = [RESPONSES.validate_json(data) for data in bodies(name)]
    if "duplicate" not in name and "out_of_order" not in name:
        spoken = [one for one in events if isinstance(one, ResponseTextDeltaEvent | ResponseRefusalDeltaEvent)]
        assert "".join(event.delta for event in spoken) == said(read_recording(name))


@pytest.mark.parametrize("name", RECORDINGS)
def test_our_framing_of_events_is_that_of_the_official_client(name: str) -> None:
    parser = SseParser()
    ours = [(event.decode() or None, data.decode()) for event, data in parser.feed(recording(name))]
    theirs = [(sse.event, sse.data) for sse in SSEDecoder().iter_bytes(iter([recording(name)]))]
    assert ours == theirs[: len(ours)]
    assert len(theirs) - len(ours) <= 1  # They also give what a cut left of the last event.
