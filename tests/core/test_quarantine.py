"""Quarantine: where a provider points, which of our messages that is, and a history without what it rejects."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnkeeper.core.history import HistoryItem
from turnkeeper.core.lowering import lower
from turnkeeper.core.quarantine import LEFT_OUT, Pointer, pointer, sources, suspects, telling, without
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import (
    AbortedFailure,
    ApiData,
    ApiFailure,
    Failure,
    MessageData,
    OverflowData,
    OverflowFailure,
)
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import SettledTime, ToolCompleted, ToolError, ToolPending, ToolProvider, ToolState
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    ModelMessage,
    ModelRequest,
    Result,
    SystemTurn,
    Text,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.value import encode
from turnkeeper.providers import PROVIDERS, codec_of
from turnkeeper.providers.codec import encode_body
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.testing.builders import NOW, a_call, a_text, a_user, an_assistant, completed, running
from turnkeeper.testing.laws import check

USER, TURN = a_user("ses_one", "msg_u"), an_assistant("ses_one", "msg_a", "msg_u", finish="stop")
PLACE: dict[str, Any] = {"session_id": "ses_one", "message_id": "msg_a"}
BAD = "rejected-words"


def refused(words: str, status: int | None = 400, body: str | None = None) -> ApiFailure:
    return ApiFailure(data=ApiData(message=words, status_code=status, is_retryable=False, response_body=body))


@pytest.mark.parametrize(
    ("words", "message", "is_media"),
    [
        # Anthropic
        ("messages.3.content.1.image.source.base64: invalid base64 data", 3, True),
        ("messages.3.content.1.image.source.base64.data: image exceeds 5 MB maximum: 6 > 5", 3, True),
        ("messages.12.content.0.pdf.source.base64.data: The PDF specified was not valid.", 12, True),
        ("messages.3.content.1: Could not process image", 3, True),
        ("messages.0.content.0.text: text content blocks must be non-empty", 0, False),
        ("messages.7: all messages must have non-empty content", 7, False),
        ("messages.5.content.0: Invalid `signature` in `thinking` block", 5, False),
        ("invalid_request_error: messages.2.content.4.tool_result.content.0.image.source: too large", 2, True),
        # OpenAI Chat
        ("Invalid type for 'messages[3].content[1].image_url': expected an object", 3, True),
        ("Invalid value for 'messages[3].content[0].text': string too long", 3, False),
        ("Invalid value for 'messages[10].content': expected a string, got null.", 10, False),
        ("Missing required parameter: 'messages[4].tool_calls[0].function'.", 4, False),
        # OpenAI Responses
        ("Invalid 'input[3].content[1].image_url'. Expected a valid URL.", 3, True),
        ("Invalid value: 'input[3].content[1]'. Value must be 'input_image'.", 3, True),
        ("Invalid 'input[9].encrypted_content': could not be decrypted.", 9, False),
        # Gemini
        ("Invalid value at 'contents[3].parts[1].inline_data.data' (TYPE_BYTES)", 3, True),
        ("* GenerateContentRequest.contents[3].parts[1].inlineData: not supported", 3, True),
        ("* GenerateContentRequest.contents[2].parts: contents.parts must not be empty.", 2, False),
        ("Unable to process input image at contents[3].parts[1]", 3, True),
    ],
)
def test_the_place_that_a_provider_names_is_found_in_the_words_of_every_protocol(
    words: str, message: int, is_media: bool
) -> None:
    assert pointer(refused(words)) == Pointer(message=message, is_media=is_media, words=words)


@pytest.mark.parametrize(
    ("body", "is_media"),
    [
        ('{"error":{"message":"Invalid value","param":"messages[3].content[1].image_url"}}', True),
        ('{"error":{"message":"Invalid value","param":"input[3].content[1].image_url","code":"x"}}', True),
        ('{"error":{"message":"Invalid value","param":"input[3].content[1].text","note":"no image here"}}', False),
        ('{"error":{"fieldViolations":[{"field":"contents[3].parts[1].inline_data"}]}}', True),
    ],
)
def test_a_place_that_only_the_body_names_is_found_there_with_what_it_is(body: str, is_media: bool) -> None:
    assert pointer(refused("Invalid value", body=body)) == Pointer(message=3, is_media=is_media, words="Invalid value")


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_rejection_of_the_request_points_somewhere(status: int) -> None:
    assert pointer(refused("messages.1.content.0: no", status)) is not None


@pytest.mark.parametrize(
    "failure",
    [
        refused("messages.1.content.0: no", 401),
        refused("messages.1.content.0: no", 429),
        refused("messages.1.content.0: no", 500),
        refused("messages.1.content.0: no", None),
        refused("max_tokens: must be less than 8192"),
        refused("tools.0.custom.input_schema: JSON schema is invalid"),
        refused("messages: at least one message is required"),
        refused("the image is broken"),
        refused(f"messages.{'9' * 5000}.content.0: no"),
        OverflowFailure(data=OverflowData(message="messages.1: prompt is too long")),
        AbortedFailure(data=MessageData(message="messages.1.content.0")),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_is_about_something_else_points_nowhere(failure: Failure) -> None:
    assert pointer(failure) is None


@given(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=10), st.integers(0, 25))
def test_sources_are_those_whose_words_are_in_the_provider_s_message(base: int, grows: list[int], index: int) -> None:
    """``grows`` tells how many messages each of ours becomes; one that becomes none is merged into the one before."""
    wire: list[set[int]] = [set() for _ in range(base)]
    for ours, count in enumerate(grows):
        wire += [set() for _ in range(count)]
        for place in range(len(wire) - count, len(wire)) if count else ([len(wire) - 1] if len(wire) > base else []):
            wire[place].add(ours)
    found = sources(index, len(grows), lambda n: base + sum(grows[:n]))
    assert set(found) == (wire[index] if index < len(wire) else set())


KINDS = st.lists(st.sampled_from(["user", "user", "system", "says", "calls", "calls two"]), min_size=1, max_size=8)


def word(number: int) -> str:
    return f"word{number}word"


def talk(kinds: list[str]) -> list[ModelMessage]:
    """A conversation each of whose messages has a word of its own."""
    made: list[ModelMessage] = [UserTurn(content=(Text(text=word(0)),))]
    for kind in kinds:
        n = len(made)
        match kind:
            case "user":
                made.append(UserTurn(content=(Text(text=word(n)),)))
            case "system":
                made.append(SystemTurn(text=word(n)))
            case "says":
                made.append(AssistantTurn(content=(Text(text=word(n)),)))
            case _:
                ids = [f"c{n}", f"d{n}"][: 1 + ("two" in kind)]
                calls = [Call(id=id, name="bash", input={"say": word(n)}) for id in ids]
                results = [Result(call_id=id, name="bash", output=(Text(text=word(n + 1)),)) for id in ids]
                made += [AssistantTurn(content=tuple(calls)), ToolTurn(results=tuple(results))]
    return made


@pytest.mark.parametrize("protocol", PROVIDERS)
@settings(max_examples=25)
@given(KINDS, st.booleans())
@example(["system", "user"], True)
@example(["user", "system", "system", "user", "says", "user"], True)
def test_in_every_protocol_the_sources_of_a_message_are_those_whose_words_it_has(
    protocol: str, kinds: list[str], takes_system: bool
) -> None:
    codec, messages = codec_of(protocol), talk(kinds)
    endpoint = Endpoint(protocol=protocol, provider_id="acme", options={"midSystem": takes_system})
    model = ModelInfo(provider_id="acme", id="large", name="large", api_id="large", protocol=protocol)

    def wire(count: int) -> Any:
        request = ModelRequest(model=model, system=("Be kind.",), messages=tuple(messages[:count]))
        body = codec.body(request, endpoint)
        return next(body[name] for name in ("messages", "input", "contents") if name in body)

    lengths = [len(wire(count)) for count in range(len(messages) + 1)]
    for index, written in enumerate(wire(len(messages))):
        text = encode(written).decode()
        expected = {n for n in range(len(messages)) if word(n) in text}
        found = set(sources(index, len(messages), lengths.__getitem__))
        assert expected <= found, "what the provider speaks of is among them"
        assert found == expected or not expected, "and nothing else"


def file(id: str = "prt_f", message_id: str = "msg_a") -> FilePart:
    return FilePart(
        id=id, session_id="ses_one", message_id=message_id, mime="image/png", url="data:image/png;base64,AAAA"
    )


PROMPT = HistoryItem(message=USER, parts=(a_text(USER, "prt_1", "Look."), file("prt_2", "msg_u")))
ANSWER = HistoryItem(
    message=TURN,
    parts=(
        StepStartPart(id="prt_s", **PLACE),
        ReasoningPart(id="prt_r", text="Hm.", time=Span(start=NOW), **PLACE),
        a_text(TURN, "prt_t", "I look."),
        a_text(TURN, "prt_i", "unseen", ignored=True),
        a_text(TURN, "prt_b", " "),
        a_call(TURN, "prt_c", completed()),
        a_call(TURN, "prt_m", completed().but(attachments=(file(),))),
    ),
)
MEDIA, WORDS = (Pointer(message=1, is_media=is_media, words="no") for is_media in (True, False))
REASONING = Pointer(
    message=1, is_media=False, words="messages[1].reasoning: reasoning is not supported with this model"
)


@pytest.mark.parametrize(
    ("entry", "pointed", "left_out", "found"),
    [
        (PROMPT, MEDIA, (), ("prt_2",)),
        (PROMPT, WORDS, (), ("prt_1", "prt_2")),
        (PROMPT, MEDIA, ("prt_2",), ("prt_1",)),
        (PROMPT, MEDIA, ("prt_1", "prt_2"), ()),
        (ANSWER, MEDIA, (), ("prt_m",)),
        (ANSWER, WORDS, (), ("prt_r", "prt_t", "prt_c", "prt_m")),
        (ANSWER, WORDS, ("prt_t",), ("prt_r", "prt_c", "prt_m")),
        (ANSWER, REASONING, (), ("prt_r",)),
        (ANSWER, REASONING, ("prt_r",), ("prt_t", "prt_c", "prt_m")),
    ],
)
def test_the_media_or_the_reasoning_of_a_message_is_suspected_if_it_is_named_else_all_that_it_shows(
    entry: HistoryItem, pointed: Pointer, left_out: tuple[str, ...], found: tuple[str, ...]
) -> None:
    assert suspects(entry, pointed, left_out) == found


def test_a_message_without_anything_left_out_is_itself() -> None:
    assert without(PROMPT, frozenset()) is PROMPT
    assert without(PROMPT, frozenset({"prt_other"})) is PROMPT


def test_words_stand_for_what_the_user_sent_at_its_place() -> None:
    kept = without(PROMPT, {"prt_2"})
    assert kept.parts[0] is PROMPT.parts[0]
    assert isinstance(kept.parts[1], TextPart)
    assert (kept.parts[1].id, kept.parts[1].text) == ("prt_2", LEFT_OUT)


SETTLED = SettledTime(start=NOW, end=NOW)
SECRET = {
    "anthropic": {"signature": BAD, "redactedData": BAD, "block": {"type": "web_search_tool_result", "content": BAD}},
    "openai": {"itemId": BAD, "reasoningEncryptedContent": BAD, "item": {"type": "web_search_call", "id": BAD}},
    "google": {"thoughtSignature": BAD},
    "acme": {"itemId": BAD},
}
BAD_FILE = file().but(url=f"data:image/png;base64,{BAD}", filename=BAD)
STATES: list[ToolState] = [
    completed(BAD).but(
        input={BAD: BAD}, attachments=(BAD_FILE,), structured={"a": BAD}, content=({"text": BAD},), full=BAD
    ),
    ToolError(input={BAD: BAD}, error=BAD, time=SETTLED),
    ToolError(input={}, error="no", metadata={"interrupted": True, "output": BAD}, time=SETTLED),
    ToolPending(input={BAD: BAD}, raw=BAD),
    running().but(input={BAD: BAD}, raw=BAD),
]
REJECTED: list[Part] = [
    a_text(TURN, "prt_x", BAD, metadata=SECRET),
    ReasoningPart(id="prt_x", text=BAD, metadata=SECRET, time=Span(start=NOW), **PLACE),
    BAD_FILE.but(id="prt_x"),
    *(a_call(TURN, "prt_x", state, metadata=SECRET) for state in STATES),
    *(
        a_call(TURN, "prt_x", state, provider=ToolProvider(executed=True, metadata=SECRET, result_metadata=SECRET))
        for state in STATES
    ),
]


def request_of(entries: list[HistoryItem], model: ModelInfo) -> ModelRequest:
    return ModelRequest(model=model, system=("Be careful.",), messages=lower(entries, model))


@pytest.mark.parametrize("protocol", PROVIDERS)
@pytest.mark.parametrize("rejected", REJECTED, ids=lambda part: type(getattr(part, "state", part)).__name__)
@pytest.mark.parametrize("is_same", [True, False], ids=["the same model", "another model"])
def test_nothing_of_what_was_rejected_is_sent_again_and_the_request_is_lawful(
    protocol: str, rejected: Part, is_same: bool
) -> None:
    model = ModelInfo(
        provider_id="acme",
        id="large" if is_same else "other",
        name="x",
        api_id="x",
        protocol=protocol,
        modalities=("text", "image", "pdf"),
        reasoning=True,
    )
    around = (a_text(TURN, "prt_1", "before"), rejected, a_call(TURN, "prt_2", completed("behind")))
    entries = [PROMPT, HistoryItem(message=TURN, parts=around)]
    kept = [without(entry, {"prt_x"}) for entry in entries]
    request = request_of(kept, model)
    assert check(request) == {}
    body = encode_body(codec_of(protocol).body(request, Endpoint(protocol=protocol, provider_id="acme", api_key="k")))
    assert BAD.encode() not in body
    assert b"before" in body
    assert b"behind" in body


def test_a_call_that_is_left_out_keeps_its_name_its_id_and_a_result() -> None:
    call = a_call(TURN, "prt_x", completed(BAD))
    [kept] = without(HistoryItem(message=TURN, parts=(call,)), {"prt_x"}).parts
    assert isinstance(kept, ToolPart)
    assert isinstance(kept.state, ToolCompleted)
    assert (kept.tool, kept.call_id, kept.state.output, kept.state.input) == (call.tool, call.call_id, LEFT_OUT, {})


@pytest.mark.parametrize(
    ("place", "count", "words"),
    [
        (2, 1, "rejected one part of your newest message, "),
        (1, 2, "rejected 2 parts of a message 1 before the newest, "),
        (0, 1, "rejected one part of a message 2 before the newest, "),
    ],
)
def test_a_person_is_told_which_message_it_is_and_why(place: int, count: int, words: str) -> None:
    entries = [HistoryItem(message=a_user("ses_one", f"msg_{n}"), parts=()) for n in range(3)]
    told = telling(entries, f"msg_{place}", count, "the image is broken")
    assert words in told
    assert told.endswith("the image is broken")
