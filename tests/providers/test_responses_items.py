"""Items of the Responses protocol: how they are told apart, and that items of every kind are kept and given back."""

from typing import Any

import msgspec
from wire_cases import a_model, an_endpoint, read

from turnkeeper.model.request import AssistantTurn, Call, ModelRequest, Reasoning, Result, Text, UserTurn
from turnkeeper.model.stream import (
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    StreamEvent,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolResult,
)
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec_of


def answer(*events: dict[str, object]) -> list[StreamEvent]:
    done = {"type": "response.completed", "response": {}}
    return read("openai-responses", [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in (*events, done)])


def begun(place: int | None, item: JsonObject) -> dict[str, object]:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def ended(place: int | None, item: JsonObject) -> dict[str, object]:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def piece(kind: str, place: int | None, item_id: str, delta: str) -> dict[str, object]:
    return {"type": f"response.{kind}.delta", "output_index": place, "item_id": item_id, "delta": delta}


def said(events: list[StreamEvent]) -> list[tuple[str, str]]:
    return [(type(event).__name__, event.text) for event in events if isinstance(event, TextDelta | ReasoningDelta)]


def items(*content: Text | Reasoning | Call | Result) -> Any:
    """The items that stand for an assistant's turn in a request."""
    turns = (UserTurn(content=(Text(text="hi"),)), AssistantTurn(content=content), UserTurn(content=(Text(text="on"),)))
    request = ModelRequest(model=a_model("openai-responses"), system=(), messages=turns)
    wire = codec_of("openai-responses").body(request, an_endpoint("openai-responses"))
    return msgspec.to_builtins(wire["input"])[1:-1]


def test_an_item_whose_id_changes_with_every_event_is_known_by_its_output_index() -> None:
    events = answer(
        begun(0, {"type": "reasoning", "id": "r1"}),
        piece("reasoning_summary_text", 0, "r2", "Hm"),
        piece("reasoning_summary_text", 0, "r3", "m."),
        ended(
            0,
            {
                "type": "reasoning",
                "id": "r4",
                "summary": [{"type": "summary_text", "text": "Hmm."}],
                "encrypted_content": "sealed",
            },
        ),
        begun(1, {"type": "message", "id": "m1"}),
        piece("output_text", 1, "m2", "Th"),
        piece("output_text", 1, "m3", "ree"),
        {"type": "response.output_text.done", "output_index": 1, "item_id": "m4", "text": "Three"},
        ended(1, {"type": "message", "id": "m5", "content": [{"type": "output_text", "text": "Three"}]}),
        begun(2, {"type": "function_call", "id": "f1", "call_id": "call_1", "name": "read", "arguments": ""}),
        piece("function_call_arguments", 2, "f2", '{"path":'),
        piece("function_call_arguments", 2, "f3", '"a"}'),
        ended(
            2,
            {"type": "function_call", "id": "f4", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
        ),
    )
    assert said(events) == [
        ("ReasoningDelta", "Hm"),
        ("ReasoningDelta", "m."),
        ("TextDelta", "Th"),
        ("TextDelta", "ree"),
    ]
    assert [(e.id, e.name, e.input) for e in events if isinstance(e, ToolCall)] == [("call_1", "read", {"path": "a"})]


def test_encrypted_reasoning_goes_back_under_the_id_that_it_ended_with() -> None:
    events = answer(
        begun(0, {"type": "reasoning", "id": "r1"}),
        piece("reasoning_summary_text", 0, "r2", "Hmm."),
        ended(0, {"type": "reasoning", "id": "r3", "summary": [], "encrypted_content": "sealed"}),
    )
    (end,) = (event for event in events if isinstance(event, ReasoningEnd))
    assert items(Reasoning(text="Hmm.", metadata=end.metadata), Text(text="ok"))[0] == {
        "type": "reasoning",
        "id": "r3",
        "summary": [{"type": "summary_text", "text": "Hmm."}],
        "encrypted_content": "sealed",
    }


def test_items_of_a_host_that_counts_none_of_them_are_known_by_their_ids() -> None:
    events = answer(
        piece("output_text", 0, "m1", "One."),
        ended(0, {"type": "message", "id": "m1"}),
        piece("output_text", 0, "m2", "Two."),
        ended(0, {"type": "message", "id": "m2"}),
    )
    assert [event.id for event in events if isinstance(event, TextEnd)] == ["m1", "m2"]


def test_a_message_that_comes_only_with_its_end_is_read_from_there() -> None:
    content = [{"type": "output_text", "text": "One."}, {"type": "refusal", "refusal": "No."}]
    events = answer(ended(0, {"type": "message", "id": "m1", "content": content}))
    assert said(events) == [("TextDelta", "One."), ("TextDelta", "No.")]
    (step,) = (event for event in events if isinstance(event, FinishStep))
    assert step.reason == "content-filter"


def test_an_item_of_an_unknown_kind_is_kept_and_given_back_as_it_came() -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    events = answer(begun(0, {"type": "compaction", "id": "cmp_1"}), ended(0, item))
    (result,) = (event for event in events if isinstance(event, ToolResult))
    assert (result.name, result.output) == ("compaction", item)
    call = Call(id="cmp_1", name="compaction", input={}, executed=True)
    assert items(call, Result(call_id="cmp_1", name="compaction", output=(), executed=True, raw=result.output)) == [
        item
    ]


def test_reasoning_in_plain_text_goes_back_as_text() -> None:
    events = answer(
        piece("reasoning_text", 0, "r1", "Call the tool."),
        ended(0, {"type": "reasoning", "id": "r1", "content": [{"type": "reasoning_text", "text": "Call the tool."}]}),
    )
    (end,) = (event for event in events if isinstance(event, ReasoningEnd))
    assert items(Reasoning(text="Call the tool.", metadata=end.metadata), Text(text="Done.")) == [
        {
            "type": "reasoning",
            "id": "r1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Call the tool."}],
        },
        {"role": "assistant", "content": "Done."},
    ]


def test_the_namespace_of_a_call_goes_back_with_it() -> None:
    item = {
        "type": "function_call",
        "id": "f1",
        "call_id": "c1",
        "name": "rate",
        "arguments": "{}",
        "namespace": "bank",
    }
    (call,) = (event for event in answer(ended(0, item)) if isinstance(event, ToolCall))
    sent = items(Call(id="c1", name="rate", input={}, metadata=call.metadata))
    assert [one.get("namespace") for one in sent] == ["bank"]
