"""Dialects of the chat protocol: what hosts send beside text and calls is kept, and what is sealed goes back."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_cases import a_model, an_endpoint, read

from turnkeeper.model.failure import ApiFailure
from turnkeeper.model.request import AssistantTurn, Call, ModelRequest, Reasoning, Text, UserTurn
from turnkeeper.model.stream import (
    File,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    StreamError,
    StreamEvent,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolResult,
    Usage,
)
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec_of

SIGNED = {"google": {"thought_signature": "CvUB"}}


def chunk(delta: object = None, *, finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"choices": [choice], **more}) + b"\n\n"


def answer(*chunks: bytes, finish: str = "stop") -> list[StreamEvent]:
    return read("openai-chat", [*chunks, chunk(finish=finish), b"data: [DONE]\n\n"])


def contents(*texts: str) -> list[StreamEvent]:
    return answer(*(chunk({"content": text}) for text in texts))


def said(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thought(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def usage_of(*chunks: bytes) -> Usage | None:
    (step,) = (event for event in answer(*chunks) if isinstance(event, FinishStep))
    return step.usage


def assistant(*content: Text | Reasoning | Call, **model: object) -> Any:
    """The message that stands for an assistant's turn in a request."""
    turns = (UserTurn(content=(Text(text="hi"),)), AssistantTurn(content=content), UserTurn(content=(Text(text="on"),)))
    request = ModelRequest(model=a_model("openai-chat", **model), system=(), messages=turns)
    wire = codec_of("openai-chat").body(request, an_endpoint("openai-chat"))
    _, message, _ = msgspec.to_builtins(wire["messages"])
    return message


# Sealed reasoning.


def test_the_signature_of_a_call_goes_back_with_it() -> None:
    function = {"name": "read", "arguments": "{}"}
    made = {"tool_calls": [{"index": 0, "id": "c1", "function": function, "extra_content": SIGNED}]}
    (call,) = (event for event in answer(chunk(made), finish="tool_calls") if isinstance(event, ToolCall))
    message = assistant(Call(id="c1", name="read", input={}, metadata=call.metadata))
    assert message["tool_calls"] == [{"id": "c1", "type": "function", "function": function, "extra_content": SIGNED}]


def test_the_signature_of_a_text_goes_back_with_it() -> None:
    events = answer(chunk({"content": "Noon."}), chunk({"extra_content": SIGNED}))
    (end,) = (event for event in events if isinstance(event, TextEnd))
    message = assistant(Text(text="Noon.", metadata=end.metadata))
    assert message == {"role": "assistant", "content": "Noon.", "extra_content": SIGNED}


def test_the_signature_of_a_message_without_text_goes_back_with_it() -> None:
    made = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]}
    events = answer(chunk({"extra_content": SIGNED}), chunk(made), finish="tool_calls")
    (call,) = (event for event in events if isinstance(event, ToolCall))
    message = assistant(Call(id="c1", name="read", input={}, metadata=call.metadata))
    assert message["extra_content"] == SIGNED
    assert "extra_content" not in message["tool_calls"][0]


@pytest.mark.parametrize("interleaved", [None, "reasoning_details", "reasoning_content"])
def test_reasoning_details_go_back_to_every_host_that_sent_them(interleaved: str | None) -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "sealed"}]
    events = answer(chunk({"reasoning": "hm", "reasoning_details": details}), chunk({"content": "ok"}))
    (end,) = (event for event in events if isinstance(event, ReasoningEnd))
    message = assistant(Reasoning(text="hm", metadata=end.metadata), Text(text="ok"), interleaved=interleaved)
    assert message["reasoning_details"] == details


def test_reasoning_details_are_left_out_where_the_answer_had_none() -> None:
    message = assistant(Reasoning(text="hm"), Text(text="ok"), interleaved="reasoning_details")
    assert message == {"role": "assistant", "content": "ok"}


def test_a_turn_with_nothing_but_sealed_reasoning_is_sent() -> None:
    sealed = {"openrouter": {"reasoning_details": [{"type": "reasoning.encrypted", "data": "abc"}]}}
    message = assistant(Reasoning(text="", metadata=sealed))
    assert message["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "abc"}]


@pytest.mark.parametrize("interleaved", [None, "reasoning_details"])
def test_reasoning_goes_back_in_the_field_reasoning_to_a_host_that_sent_it_there(interleaved: str | None) -> None:
    events = answer(chunk({"reasoning": "Add "}), chunk({"reasoning": "them."}), chunk({"content": "Four."}))
    (end,) = (event for event in events if isinstance(event, ReasoningEnd))
    message = assistant(Reasoning(text="Add them.", metadata=end.metadata), Text(text="Four."), interleaved=interleaved)
    assert message == {"role": "assistant", "content": "Four.", "reasoning": "Add them."}


def test_reasoning_goes_back_in_the_field_that_the_catalogue_names() -> None:
    (end,) = (event for event in answer(chunk({"reasoning": "hm"})) if isinstance(event, ReasoningEnd))
    thought = Reasoning(text="hm", metadata=end.metadata)
    message = assistant(thought, Text(text="ok"), interleaved="reasoning_content")
    assert message == {"role": "assistant", "content": "ok", "reasoning_content": "hm"}


@pytest.mark.parametrize("delta", [{"reasoning_content": "hm"}, {"content": "<think>hm</think>"}])
def test_reasoning_that_came_elsewhere_goes_back_only_where_the_catalogue_names_a_field(delta: JsonObject) -> None:
    (end,) = (event for event in answer(chunk(delta)) if isinstance(event, ReasoningEnd))
    assert assistant(Reasoning(text="hm", metadata=end.metadata), Text(text="ok")) == {
        "role": "assistant",
        "content": "ok",
    }


def test_reasoning_details_go_back_without_the_text_that_repeats_them() -> None:
    details = [{"type": "reasoning.text", "text": "hm"}]
    events = answer(chunk({"reasoning": "hm", "reasoning_details": details}), chunk({"content": "ok"}))
    (end,) = (event for event in events if isinstance(event, ReasoningEnd))
    message = assistant(Reasoning(text="hm", metadata=end.metadata), Text(text="ok"))
    assert message == {"role": "assistant", "content": "ok", "reasoning_details": details}


def test_reasoning_of_an_answer_in_which_the_host_ran_tools_is_left_out() -> None:
    (end,) = (event for event in answer(chunk({"reasoning": "hm"})) if isinstance(event, ReasoningEnd))
    ran = Call(id="c1", name="python", input={}, executed=True, metadata={"openai": {"isInAnswer": True}})
    message = assistant(Reasoning(text="hm", metadata=end.metadata), ran, Text(text="ok"))
    assert message == {"role": "assistant", "content": "ok"}


def test_a_turn_with_nothing_but_plain_reasoning_is_left_out() -> None:
    (end,) = (event for event in answer(chunk({"reasoning": "hm"})) if isinstance(event, ReasoningEnd))
    parts = AssistantTurn(content=(Reasoning(text="hm", metadata=end.metadata),))
    user = UserTurn(content=(Text(text="go"),))
    request = ModelRequest(model=a_model("openai-chat"), system=(), messages=(user, parts, user))
    messages = codec_of("openai-chat").conversation(request, an_endpoint("openai-chat"))
    assert [message["role"] for message in messages] == ["user", "user"]


# Reasoning between think tags.


@pytest.mark.parametrize(
    ("texts", "reasoning", "text"),
    [
        (["<think>\nHm.</think>\n\nThree."], "Hm.", "Three."),
        (["<think>", "\n", "Hm", ".", "</think>", "\n\n", "Three."], "Hm.", "Three."),
        (["\n <th", "ink>Hm.</thi", "nk>Three."], "Hm.", "Three."),
        (["<think>a </b </think>c"], "a </b ", "c"),
        (["<think>Hm. <think> again </think>Three. </think>"], "Hm. <think> again ", "Three. </think>"),
        (["<think>\n\n</think>\n\nThree."], "", "Three."),
        (["<think>cut off"], "cut off", ""),
        (["<think>cut off </thi"], "cut off </thi", ""),
        (
            ["The tag <think> begins reasoning, </think> ends it."],
            "",
            "The tag <think> begins reasoning, </think> ends it.",
        ),
        (["`<think>` is a tag."], "", "`<think>` is a tag."),
        (["<thinker> is a name."], "", "<thinker> is a name."),
        (["\n", "\n", "Three."], "", "\n\nThree."),
        (["<thi"], "", "<thi"),
    ],
)
def test_an_answer_that_begins_with_a_think_tag_begins_with_reasoning(
    texts: list[str], reasoning: str, text: str
) -> None:
    events = contents(*texts)
    assert (thought(events), said(events)) == (reasoning, text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "think>", "/", " ", "\n", "a", "</thi", "nk>"])))
def test_think_tags_are_found_wherever_the_content_is_cut(pieces: list[str]) -> None:
    whole, cut = contents("".join(pieces)), contents(*pieces)
    assert (thought(cut), said(cut)) == (thought(whole), said(whole))


def test_a_think_tag_ends_where_a_call_begins() -> None:
    made = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]}
    events = answer(chunk({"content": "<think>Read it."}), chunk(made), finish="tool_calls")
    assert thought(events) == "Read it."
    assert [event.id for event in events if isinstance(event, ToolCall)] == ["c1"]


# Usage.


@pytest.mark.parametrize(
    ("counted", "output", "reasoning"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, 2, 0),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 26,
                "total_tokens": 263,
                "completion_tokens_details": {"reasoning_tokens": 227},
            },
            253,
            227,
        ),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, 30, 0),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 3}, 5, 0),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 90, "citation_tokens": 75}, 5, 0),
    ],
)
def test_thinking_that_only_the_total_counts_is_output(counted: object, output: int, reasoning: int) -> None:
    usage = usage_of(chunk(usage=counted))
    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning) == (10, output, reasoning)


def test_usage_is_found_where_groq_and_moonshot_put_it() -> None:
    counted = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    expected = Usage(input=3, output=4, total=7)
    assert usage_of(chunk(x_groq={"usage": counted})) == expected
    wire = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": counted}]}
    assert usage_of(b"data: " + msgspec.json.encode(wire) + b"\n\n") == expected


# Sources, files and tools of the host.


def test_pages_that_a_host_searched_are_sources_of_the_text() -> None:
    found = [{"url": "https://a.example", "title": "A", "snippet": "..."}]
    cited = ["https://a.example", "https://b.example"]
    events = answer(
        chunk({"content": "So"}, citations=cited), chunk({"content": "."}, citations=cited, search_results=found)
    )
    (end,) = (event for event in events if isinstance(event, TextEnd))
    assert end.metadata == {"sources": [{"url": "https://a.example", "title": "A"}, {"url": "https://b.example"}]}


def test_annotations_are_sources_of_the_text() -> None:
    page = {"url": "https://a.example", "title": "A", "start_index": 0}
    file = {"hash": "a1", "name": "a.pdf", "content": []}
    noted = [{"type": "url_citation", "url_citation": page}, {"type": "file", "file": file}]
    events = answer(chunk({"content": "So."}), chunk({"annotations": noted}))
    (end,) = (event for event in events if isinstance(event, TextEnd))
    assert end.metadata is not None
    sources: Any = end.metadata["sources"]
    assert [(one.get("url"), one["title"]) for one in sources] == [("https://a.example", "A"), (None, "a.pdf")]


def test_what_a_host_found_in_a_file_goes_back_so_that_the_file_is_not_parsed_again() -> None:
    noted = {"type": "file", "file": {"hash": "a1", "name": "a.pdf", "content": [{"type": "text", "text": "Dummy"}]}}
    page = {"type": "url_citation", "url_citation": {"url": "https://a.example"}}
    events = answer(chunk({"content": "So."}), chunk({"annotations": [noted, page]}))
    (end,) = (event for event in events if isinstance(event, TextEnd))
    message = assistant(Text(text="So.", metadata=end.metadata))
    assert message == {"role": "assistant", "content": "So.", "annotations": [noted]}


def test_sources_without_a_text_are_kept_with_an_empty_one() -> None:
    events = answer(chunk({"reasoning": "hm"}, citations=["https://a.example"]))
    assert TextEnd(id="sources", metadata={"sources": [{"url": "https://a.example"}]}) in events


def test_a_tool_that_groq_ran_is_a_hosted_call_with_its_result() -> None:
    called = {"index": 0, "type": "python", "arguments": '{"code": "1"}'}
    ran = {**called, "output": "1", "search_results": {"results": [{"url": "https://a.example", "title": "A"}]}}
    events = answer(chunk({"executed_tools": [called]}), chunk({"executed_tools": [ran]}), chunk({"content": "1"}))
    (call,) = (event for event in events if isinstance(event, ToolCall))
    (result,) = (event for event in events if isinstance(event, ToolResult))
    assert (call.name, call.input, call.executed) == ("python", {"code": "1"}, True)
    assert (result.id, result.output) == (call.id, ran)
    (end,) = (event for event in events if isinstance(event, TextEnd))
    assert end.metadata == {"sources": [{"url": "https://a.example", "title": "A"}]}


def test_an_image_is_a_file() -> None:
    events = answer(chunk({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]}))
    assert File(mime="image/png", url="data:image/png;base64,iVBO") in events


@pytest.mark.parametrize("field", ["reasoning_details", "annotations", "images", "executed_tools", "extra_content"])
def test_a_field_of_an_unexpected_type_does_not_cost_the_answer(field: str) -> None:
    assert said(answer(chunk({"content": "ok", field: ""}))) == "ok"


# Errors.


def test_an_error_of_a_choice_is_an_error() -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "upstream is gone"}}
    wire = b"data: " + msgspec.json.encode({"choices": [choice]}) + b"\n\n"
    match read("openai-chat", [chunk({"content": "Half"}), wire])[-1]:
        case StreamError(failure=ApiFailure(data=data)):
            assert "upstream is gone" in data.message
            assert data.is_retryable
        case other:
            pytest.fail(f"{other}")
