"""What Anthropic and Gemini send beside text and calls: hosted tools, sources, files, and blocks of unknown kinds."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from narrow import of_type
from wire_cases import a_model, an_endpoint, read

from turnkeeper.model.failure import ApiFailure
from turnkeeper.model.request import AssistantTurn, Call, ModelRequest, Result, Text, UserTurn
from turnkeeper.model.stream import (
    File,
    FinishStep,
    StreamError,
    StreamEvent,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolFailed,
    ToolResult,
)
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec_of


def wire(events: Sequence[JsonObject]) -> list[bytes]:
    return [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]


def claude(*blocks: dict[str, object], stop: str = "end_turn") -> list[StreamEvent]:
    """The events of an answer of these blocks; ``deltas`` of a block are its pieces."""
    events: list[JsonObject] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, block in enumerate(blocks):
        deltas = block.pop("deltas", [])
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        assert isinstance(deltas, list)
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": stop}}, {"type": "message_stop"}]
    return read("anthropic", wire(events))


def gemini(*parts: JsonObject, finish: object = "STOP", **candidate: object) -> list[StreamEvent]:
    """The events of an answer of these parts, one in each chunk."""
    chunks: list[JsonObject] = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    return read("gemini", wire([*chunks, {"candidates": [{"finishReason": finish, **candidate}]}]))


def only(kind: type, events: list[StreamEvent]) -> StreamEvent:
    (found,) = (event for event in events if isinstance(event, kind))
    return found


def sent_back(protocol: str, events: list[StreamEvent]) -> Any:
    """What stands for the hosted calls of an answer in the next request to the same model."""
    content: list[Call | Result] = []
    for event in events:
        match event:
            case ToolCall(executed=True):
                input = of_type(dict, event.input)
                content.append(Call(id=event.id, name=event.name, input=input, executed=True, metadata=event.metadata))
            case ToolResult():
                output = (Text(text="found"),)
                content.append(
                    Result(call_id=event.id, name=event.name, output=output, executed=True, raw=event.output)
                )
            case ToolFailed():
                output = (Text(text=event.error),)
                content.append(
                    Result(call_id=event.id, name=event.name, output=output, executed=True, metadata=event.metadata)
                )
            case _:
                pass
    turns = (UserTurn(content=(Text(text="a"),)), AssistantTurn(content=tuple(content)))
    request = ModelRequest(model=a_model(protocol), system=(), messages=(*turns, UserTurn(content=(Text(text="b"),))))
    (_, answer, _) = codec_of(protocol).conversation(request, an_endpoint(protocol))
    parts = answer["content" if protocol == "anthropic" else "parts"]
    return msgspec.to_builtins(parts)


# Anthropic.


def test_the_result_of_a_call_from_the_answer_before_is_kept_and_told_in_words() -> None:
    block = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "https://a.example"}]}
    events = claude(dict(block), {"type": "text", "text": "So."})
    assert only(ToolResult, events) == ToolResult(id="srv_1", name="web_search", output=block)
    assert sent_back("anthropic", events) == [
        {"type": "text", "text": "[web_search was run by a provider with {}]\nfound"}
    ]


def test_a_paused_answer_says_so() -> None:
    step = only(FinishStep, claude({"type": "text", "text": "Half"}, stop="pause_turn"))
    assert isinstance(step, FinishStep)
    assert (step.reason, step.is_paused) == ("stop", True)


def test_a_block_of_an_unknown_kind_is_kept_and_given_back_as_it_came() -> None:
    pieces = [{"type": "compaction_delta", "content": "We "}, {"type": "compaction_delta", "content": "spoke."}]
    events = claude({"type": "compaction", "content": None, "deltas": pieces}, {"type": "text", "text": "So."})
    assert sent_back("anthropic", events) == [{"type": "compaction", "content": "We spoke."}]


def test_a_message_may_say_its_beginning_twice() -> None:
    begun = {"type": "message_start", "message": {"id": "msg_1"}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}
    events = read("anthropic", wire([begun, begun, text]))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["hi"]


def test_a_second_message_is_not_of_this_answer() -> None:
    one, two = ({"type": "message_start", "message": {"id": name}} for name in ("msg_1", "msg_2"))
    match read("anthropic", wire([one, two]))[-1]:
        case StreamError(failure=ApiFailure(data=data)):
            assert "begins twice" in data.message
        case other:
            pytest.fail(f"{other}")


def test_citations_are_sources_of_the_text_once_each() -> None:
    cited = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "x"}
    document = {"type": "page_location", "document_title": "B", "cited_text": "y"}
    deltas = [{"type": "citations_delta", "citation": one} for one in (cited, document, cited)]
    end = only(TextEnd, claude({"type": "text", "text": "So.", "deltas": deltas}))
    assert isinstance(end, TextEnd)
    assert end.metadata is not None
    assert end.metadata["sources"] == [{"url": "https://a.example", "title": "A"}, {"title": "B"}]
    assert end.metadata["anthropic"] == {"citations": [cited, document, cited]}


# Gemini.


def test_hosted_parts_go_back_with_their_signatures() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "one"}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}, "thoughtSignature": "two"}
    broke = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}
    search = {
        "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "args": {"q": "x"}},
        "thoughtSignature": "three",
    }
    found = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1"}, "thoughtSignature": "four"}
    parts: list[JsonObject] = [code, ran, code, broke, search, found, {"newKind": {"a": 1}, "thoughtSignature": "five"}]
    events = gemini(*parts, {"text": "So."})
    assert sent_back("gemini", events) == parts
    assert [event.name for event in events if isinstance(event, ToolCall)] == [
        "code_execution",
        "code_execution",
        "google_search_web",
        "newKind",
    ]


def test_an_image_is_a_file_between_the_texts() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
    events = gemini({"text": "Look:"}, image, {"text": "Well?"})
    kinds = [type(event) for event in events if isinstance(event, TextEnd | File)]
    assert kinds == [TextEnd, File, TextEnd]
    assert only(File, events) == File(mime="image/png", url="data:image/png;base64,iVBO")


def test_grounding_pages_and_documents_are_sources_of_the_text() -> None:
    grounding = {
        "groundingChunks": [
            {"web": {"uri": "https://a.example", "title": "A"}},
            {"retrievedContext": {"title": "b.txt", "text": "..."}},
        ]
    }
    fetched = {"urlMetadata": [{"retrievedUrl": "https://c.example"}]}
    cited = {"citationSources": [{"uri": "https://d.example"}]}
    events = gemini({"text": "So."}, groundingMetadata=grounding, urlContextMetadata=fetched, citationMetadata=cited)
    end = only(TextEnd, events)
    assert isinstance(end, TextEnd)
    assert end.metadata is not None
    sources: Any = end.metadata["sources"]
    assert [(one.get("url"), one.get("title")) for one in sources] == [
        ("https://a.example", "A"),
        (None, "b.txt"),
        ("https://c.example", None),
        ("https://d.example", None),
    ]


def piece(path: str, **value: object) -> dict[str, object]:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


def test_a_call_whose_arguments_come_piece_by_piece_is_one_call() -> None:
    events = gemini(
        {"functionCall": {"name": "cook", "willContinue": True}, "thoughtSignature": "sealed"},
        piece("$.meal.name", stringValue="La", willContinue=True),
        piece("$.meal.name", stringValue="sagna"),
        piece("$.meal.steps[0].minutes", numberValue=5),
        piece("$.meal.steps[1]", boolValue=True),
        piece("$.note", nullValue=None),
        {"functionCall": {}},
        {"functionCall": {"name": "eat"}},
    )
    meal = {"name": "Lasagna", "steps": [{"minutes": 5}, True]}
    calls = [(e.name, e.input, e.metadata) for e in events if isinstance(e, ToolCall)]
    assert calls == [
        ("cook", {"meal": meal, "note": None}, {"google": {"thoughtSignature": "sealed"}}),
        ("eat", {}, None),
    ]


@pytest.mark.parametrize("path", ["", "$", "$[0]", "$.a[99999999]", "$.a[0].b[0].c.d[1]e"])
def test_a_piece_of_an_argument_cannot_break_the_reader(path: str) -> None:
    events = gemini({"functionCall": {"name": "cook", "willContinue": True}}, piece(path, stringValue="x"))
    assert isinstance(events[-1], StreamError) or only(ToolCall, events)


def test_an_argument_that_is_nested_too_deeply_ends_the_answer() -> None:
    events = gemini({"functionCall": {"name": "cook", "willContinue": True}}, piece("$" + ".a" * 5000, stringValue="x"))
    assert isinstance(events[-1], StreamError)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [(1, "stop"), (2, "length"), (3, "content-filter"), (99, "unknown"), ("MODEL_ARMOR", "content-filter")],
)
def test_finish_reasons_may_be_numbers(finish: object, reason: str) -> None:
    step = only(FinishStep, gemini({"text": "So."}, finish=finish))
    assert isinstance(step, FinishStep)
    assert step.reason == reason


@pytest.mark.parametrize("reason", ["SAFETY", 1])
def test_a_blocked_prompt_is_a_content_filter_whatever_the_host_writes_enumerations_as(reason: object) -> None:
    step = only(FinishStep, read("gemini", wire([{"promptFeedback": {"blockReason": reason}}])))
    assert isinstance(step, FinishStep)
    assert step.reason == "content-filter"


def test_an_error_at_the_end_says_what_it_was() -> None:
    step = only(FinishStep, gemini(finish="MALFORMED_FUNCTION_CALL", finishMessage="no closing brace"))
    assert isinstance(step, FinishStep)
    assert (step.reason, step.message) == ("error", "MALFORMED_FUNCTION_CALL: no closing brace")
