"""What every wire protocol promises, whatever its provider sends."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_cases import RECORDINGS, read, read_recording, recording

from turnkeeper.model.failure import ApiFailure
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
)
from turnkeeper.providers import PROVIDERS

CASES = (
    "text",
    "reasoning",
    "tool",
    "parallel",
    "refusal",
    "length",
    "error",
    "cut",
    "garbage",
    "duplicate",
    "out_of_order",
)
BROKEN = ("error", "cut", "garbage", "duplicate", "out_of_order", "failed")
FIELDS = (
    "type",
    "index",
    "delta",
    "content_block",
    "message",
    "usage",
    "error",
    "choices",
    "id",
    "name",
    "input",
    "text",
    "tool_calls",
    "function",
    "arguments",
    "candidates",
    "content",
    "parts",
    "functionCall",
    "args",
    "item",
    "response",
    "item_id",
    "finish_reason",
    "code",
    "thinking",
    "partial_json",
)
PAIRS = {TextStart: TextEnd, ReasoningStart: ReasoningEnd, ToolInputStart: ToolInputEnd}


def breaches(events: list[StreamEvent]) -> list[str]:
    """What of the order of stream events is not kept."""
    found: list[str] = []
    opened: dict[str, type] = {}
    closed: set[str] = set()
    calls: dict[str, str] = {}
    for event in events:
        match event:
            case TextStart() | ReasoningStart() | ToolInputStart():
                if event.id in opened or event.id in closed:
                    found.append(f"{event.id} begins twice")
                opened[event.id] = PAIRS[type(event)]
            case TextDelta() | ReasoningDelta() | ToolInputDelta():
                if event.id not in opened or not event.text:
                    found.append(f"a delta of {event.id} is empty or out of place")
            case TextEnd() | ReasoningEnd() | ToolInputEnd():
                if opened.pop(event.id, None) is not type(event):
                    found.append(f"{event.id} ends without a beginning")
                closed.add(event.id)
            case ToolCall() | ToolFailed() if event.id not in calls:
                if event.id not in closed:
                    found.append(f"the call {event.id} is given before its input ended")
                calls[event.id] = event.name
            case ToolResult() | ToolFailed():
                if calls.get(event.id) != event.name:
                    found.append(f"the result {event.id} has no call")
            case FinishStep() if opened:
                found.append(f"{sorted(opened)} are open at the end")
            case _:
                pass
    ends = [event for event in events if isinstance(event, Finish | StreamError)]
    if len(ends) != 1 or events[-1] is not ends[0]:
        found.append("the stream does not end once")
    steps = [index for index, event in enumerate(events) if isinstance(event, FinishStep)]
    if steps != ([len(events) - 2] if isinstance(events[-1], Finish) else []):
        found.append("there is not one finish-step before finish")
    return found


@pytest.mark.parametrize("protocol", PROVIDERS)
@pytest.mark.parametrize("case", CASES)
def test_every_protocol_has_a_recording_of_every_case(protocol: str, case: str) -> None:
    assert f"{protocol}.{case}" in RECORDINGS


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_answer_keeps_the_order_of_stream_events(name: str) -> None:
    assert breaches(read_recording(name)) == []


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_broken_stream_ends_in_one_error_and_a_whole_one_in_finish(name: str) -> None:
    is_broken = name.partition(".")[2] in BROKEN
    assert isinstance(read_recording(name)[-1], StreamError if is_broken else Finish)


@pytest.mark.parametrize("name", RECORDINGS)
def test_bytes_one_by_one_say_the_same(name: str) -> None:
    data = recording(name)
    assert read(name.partition(".")[0], (data[i : i + 1] for i in range(len(data)))) == read_recording(name)


@pytest.mark.parametrize("name", RECORDINGS)
@settings(max_examples=8)
@given(data=st.data())
def test_where_the_bytes_are_cut_into_chunks_does_not_matter(name: str, data: st.DataObject) -> None:
    whole = recording(name)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    chunks = [whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])]
    assert read(name.partition(".")[0], chunks) == read_recording(name)


@pytest.mark.parametrize("name", RECORDINGS)
@settings(max_examples=8)
@given(data=st.data())
def test_a_stream_cut_anywhere_keeps_its_promises(name: str, data: st.DataObject) -> None:
    whole = recording(name)
    events = read(name.partition(".")[0], [whole[: data.draw(st.integers(0, len(whole)))]])
    assert breaches(events) == []


@pytest.mark.parametrize("name", RECORDINGS)
@settings(max_examples=12)
@given(data=st.data())
def test_events_lost_repeated_swapped_or_spoilt_never_break_a_promise(name: str, data: st.DataObject) -> None:
    pieces = recording(name).split(b"\n\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(pieces) - 1))
        match data.draw(st.sampled_from(["lose", "repeat", "swap", "spoil"])):
            case "lose" if len(pieces) > 1:
                del pieces[at]
            case "repeat":
                pieces.insert(at, pieces[at])
            case "swap":
                other = data.draw(st.integers(0, len(pieces) - 1))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case _:
                spot = data.draw(st.integers(0, max(0, len(pieces[at]) - 1)))
                pieces[at] = pieces[at][:spot] + data.draw(st.binary(max_size=4)) + pieces[at][spot + 1 :]
    assert breaches(read(name.partition(".")[0], [b"\n\n".join(pieces)])) == []


@pytest.mark.parametrize("protocol", PROVIDERS)
@settings(max_examples=50)
@given(
    junk=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(FIELDS),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    ),
    kind=st.sampled_from(
        [
            "content_block_start",
            "content_block_delta",
            "message_delta",
            "message_start",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
            "response.failed",
            "error",
        ]
    ),
)
def test_json_of_any_other_shape_is_an_error_or_nothing(protocol: str, junk: object, kind: str) -> None:
    shaped = {**junk, "type": kind} if isinstance(junk, dict) else junk
    events = read(protocol, [b"data: " + msgspec.json.encode(shaped) + b"\n\n"])
    assert breaches(events) == []


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_nothing_at_all_is_an_incomplete_answer_worth_a_retry(protocol: str) -> None:
    match read(protocol, [b""]):
        case [StreamError(failure=ApiFailure(data=data))]:
            assert data.is_retryable
        case other:
            pytest.fail(f"{other}")


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_json_nested_too_deeply_is_an_error(protocol: str) -> None:
    (event,) = read(protocol, [b'data: {"error":' + b"[" * 100_000 + b"\n\n"])
    assert isinstance(event, StreamError)


CALLED = b'{"functionCall":{"name":"read","id":"c1","willContinue":%b}}'
CANDIDATE = b'data: {"candidates":[{"content":{"parts":[%b]},"finishReason":"STOP"}]}'
CHOICE = b'data: {"choices":[{"delta":%b,"finish_reason":"stop"}]}'


@pytest.mark.parametrize(
    ("protocol", "wire"),
    [
        ("gemini", CANDIDATE % (CALLED % b"false") + b"\n\n" + CANDIDATE % (CALLED % b"true") + b"\n\n"),
        ("openai-chat", CHOICE % b"{}" + b"\n\n" + CHOICE % b'{"tool_calls":[{"index":0,"id":"c1"}]}'),
    ],
)
def test_a_call_that_cannot_be_ended_makes_the_answer_incomplete(protocol: str, wire: bytes) -> None:
    events = read(protocol, [wire])
    assert breaches(events) == []
