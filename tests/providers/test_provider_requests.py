"""What requests look like on the wire, and that the official packages accept them."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming as AnthropicParams
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as ChatParams
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as ResponsesParams
from pydantic import TypeAdapter
from wire_cases import a_model, an_endpoint

from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolDefinition,
    ToolTurn,
    UserTurn,
)
from turnkeeper.providers import PROVIDERS, codec_of
from turnkeeper.providers.codec import encode_body
from turnkeeper.providers.models_dev import ROUTES

ORACLES: dict[str, TypeAdapter[object]] = {
    "anthropic": TypeAdapter(AnthropicParams),
    "openai-chat": TypeAdapter(ChatParams),
    "openai-responses": TypeAdapter(ResponsesParams),
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
READ = ToolDefinition(
    name="read",
    description="Reads a file.",
    schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
METADATA = {
    "anthropic": {"anthropic": {"signature": "sig"}},
    "openai-chat": None,
    "openai-responses": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "enc"}},
    "gemini": {"google": {"thoughtSignature": "sig"}},
}


def a_conversation(protocol: str) -> tuple[ModelMessage, ...]:
    image = Media(mime="image/png", data=PIXEL, filename="a.png")
    return (
        UserTurn(
            content=(
                Text(text="Look at these."),
                image,
                Media(mime="application/pdf", data="JVBERi0=", filename="b.pdf"),
            )
        ),
        AssistantTurn(
            content=(
                Reasoning(text="I should read.", metadata=METADATA[protocol]),
                Text(text="I will read."),
                Call(id="call_1", name="read", input={"path": "a"}),
                Call(id="call_2", name="read", input={"path": "b"}),
            )
        ),
        ToolTurn(
            results=(
                Result(call_id="call_1", name="read", output=(Text(text="content"),)),
                Result(call_id="call_2", name="read", output=(Text(text="no such file"),), is_error=True),
            )
        ),
        SystemTurn(text="The date is <now> & later."),
        AssistantTurn(content=(Text(text="It says content."),)),
        UserTurn(content=(Text(text="Thanks."),)),
    )


def a_request(protocol: str, messages: tuple[ModelMessage, ...] | None = None, **changes: object) -> ModelRequest:
    request = ModelRequest(
        model=a_model(protocol),
        system=("You are kind.", "Be brief."),
        messages=a_conversation(protocol) if messages is None else messages,
        tools=(READ,),
        session_id="ses_1",
    )
    return request.but(**changes)


def body(request: ModelRequest, **endpoint: object) -> dict[str, Any]:
    protocol = request.model.protocol
    return codec_of(protocol).body(request, an_endpoint(protocol, **endpoint))


def exhausted(value: object) -> object:
    """A validated value with its lazy iterators run, so that every part of it was looked at."""
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Mapping):
        return {key: exhausted(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [exhausted(item) for item in value]
    return value


def accepted(protocol: str, wire: Mapping[str, object]) -> None:
    """The official package knows every field of the request, and each fits its type."""
    assert exhausted(ORACLES[protocol].validate_python(wire)) == wire


@pytest.mark.parametrize("protocol", ORACLES)
def test_the_official_package_accepts_a_request_with_everything(protocol: str) -> None:
    request = a_request(protocol, output_max=1000, temperature=0.5, top_p=0.9, tool_choice="required")
    if protocol == "anthropic":
        # The package speaks a later version of the API, which has no sampling any more; older models still take it.
        request = request.but(temperature=None, top_p=None)
    accepted(protocol, body(request))


@pytest.mark.parametrize("protocol", ORACLES)
@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_the_official_package_accepts_every_tool_choice(protocol: str, choice: str) -> None:
    accepted(protocol, body(a_request(protocol, tool_choice=choice)))


OPTIONS = {
    "anthropic": {"thinking": {"type": "enabled", "budgetTokens": 2000}, "effort": "high", "cacheTtl": 3600},
    "openai-chat": {"reasoningEffort": "low", "parallelToolCalls": False, "serviceTier": "flex"},
    "openai-responses": {"reasoningEffort": "high", "reasoningSummary": "auto", "textVerbosity": "high", "store": True},
}


@pytest.mark.parametrize("protocol", ORACLES)
def test_the_official_package_accepts_options(protocol: str) -> None:
    accepted(protocol, body(a_request(protocol, options=OPTIONS[protocol])))


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_equal_requests_are_equal_bytes(protocol: str) -> None:
    assert encode_body(body(a_request(protocol))) == encode_body(body(a_request(protocol)))


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_a_request_is_not_changed_by_being_sent(protocol: str) -> None:
    request = a_request(protocol)
    body(request)
    assert request == a_request(protocol)


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(protocol: str) -> None:
    longer = a_conversation(protocol)
    key = {"gemini": "contents", "openai-responses": "input"}.get(protocol, "messages")
    before = unmarked(body(a_request(protocol, longer[:-1]))[key])
    after = unmarked(body(a_request(protocol, longer))[key])
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert after[: len(before)] == before


def unmarked(value: object) -> Any:
    """A body without cache marks, which move."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


WORDS = st.text(min_size=1, max_size=8)
CONTENT = st.lists(WORDS.map(lambda text: Text(text=text)), min_size=1, max_size=3).map(tuple)
TURNS = st.lists(
    st.one_of(
        CONTENT.map(lambda content: (UserTurn(content=content),)),
        CONTENT.map(lambda content: (AssistantTurn(content=content),)),
        WORDS.map(lambda text: (SystemTurn(text=text),)),
        st.tuples(WORDS, st.booleans()).map(
            lambda drawn: (
                AssistantTurn(content=(Call(id="c", name="read", input={"path": drawn[0]}),)),
                ToolTurn(results=(Result(call_id="c", name="read", output=(Text(text=drawn[0]),), is_error=drawn[1]),)),
            )
        ),
    ),
    max_size=6,
).map(lambda groups: tuple(turn for group in groups for turn in group))


@pytest.mark.parametrize("protocol", ORACLES)
@settings(max_examples=25)
@given(turns=TURNS)
def test_the_official_package_accepts_any_conversation(protocol: str, turns: tuple[ModelMessage, ...]) -> None:
    accepted(protocol, body(a_request(protocol, (UserTurn(content=(Text(text="hi"),)), *turns))))


@pytest.mark.parametrize(("protocol", "key"), [("anthropic", "messages"), ("gemini", "contents")])
@settings(max_examples=40)
@given(turns=TURNS)
def test_roles_alternate_where_they_must(protocol: str, key: str, turns: tuple[ModelMessage, ...]) -> None:
    wire = body(a_request(protocol, (UserTurn(content=(Text(text="hi"),)), *turns)))[key]
    roles = [message["role"] for message in wire]
    assert all(one != other for one, other in pairwise(roles))
    assert set(roles) <= {"user", "assistant", "model"}


def test_an_anthropic_request_is_spelt_as_documented() -> None:
    assert unmarked(body(a_request("anthropic"))) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64_000,
        "system": [{"type": "text", "text": "You are kind."}, {"type": "text", "text": "Be brief."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look at these."},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                        "title": "b.pdf",
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I should read.", "signature": "sig"},
                    {"type": "text", "text": "I will read."},
                    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "call_2", "name": "read", "input": {"path": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "content"}]},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "no such file"}],
                        "is_error": True,
                    },
                    {
                        "type": "text",
                        "text": "<system-update>\nThe date is <now> & later.\n</system-update>",
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It says content."}]},
            {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
        ],
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": READ.schema}],
        "tool_choice": {"type": "auto"},
        "stream": True,
    }


def test_a_chat_request_is_spelt_as_documented() -> None:
    assert body(a_request("openai-chat", output_max=100)) == {
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "You are kind."},
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look at these."},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                    {
                        "type": "file",
                        "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": "I will read.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"path":"b"}'}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "content"},
            {"role": "tool", "tool_call_id": "call_2", "content": "no such file"},
            {"role": "system", "content": "The date is <now> & later."},
            {"role": "assistant", "content": "It says content."},
            {"role": "user", "content": "Thanks."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": READ.schema,
                    "strict": False,
                },
            }
        ],
        "tool_choice": "auto",
        "max_completion_tokens": 100,
        "prompt_cache_key": "ses_1",
        "store": False,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_responses_request_is_spelt_as_documented() -> None:
    assert body(a_request("openai-responses", output_max=100)) == {
        "model": "gpt-5",
        "input": [
            {"role": "developer", "content": "You are kind."},
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look at these."},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
                    {"type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "I should read."}],
                "encrypted_content": "enc",
            },
            {"role": "assistant", "content": "I will read."},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
            {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": '{"path":"b"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "content"},
            {"type": "function_call_output", "call_id": "call_2", "output": "no such file"},
            {"role": "developer", "content": "The date is <now> & later."},
            {"role": "assistant", "content": "It says content."},
            {"role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
        ],
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads a file.",
                "parameters": READ.schema,
                "strict": False,
            }
        ],
        "tool_choice": "auto",
        "max_output_tokens": 100,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "prompt_cache_key": "ses_1",
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }


def test_a_gemini_request_is_spelt_as_documented() -> None:
    assert body(a_request("gemini", output_max=100)) == {
        "systemInstruction": {"parts": [{"text": "You are kind."}, {"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Look at these."},
                    {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
                    {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "I should read.", "thought": True, "thoughtSignature": "sig"},
                    {"text": "I will read."},
                    {"functionCall": {"name": "read", "args": {"path": "a"}}},
                    {"functionCall": {"name": "read", "args": {"path": "b"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "read", "response": {"output": "content"}}},
                    {"functionResponse": {"name": "read", "response": {"error": "no such file"}}},
                    {"text": "<system-update>\nThe date is <now> & later.\n</system-update>"},
                ],
            },
            {"role": "model", "parts": [{"text": "It says content."}]},
            {"role": "user", "parts": [{"text": "Thanks."}]},
        ],
        "tools": [
            {"functionDeclarations": [{"name": "read", "description": "Reads a file.", "parameters": READ.schema}]}
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"maxOutputTokens": 100, "temperature": 1.0, "topP": 0.95, "topK": 64},
    }


def test_a_compatible_host_gets_one_system_message_and_the_words_it_knows() -> None:
    model = a_model("openai-chat", provider_id="groq", api_id="llama-3.3-70b")
    request = a_request("openai-chat", model=model, output_max=100)
    wire = body(request, provider_id="groq")
    messages = wire["messages"]
    assert isinstance(messages, list)
    assert messages[0] == {"role": "system", "content": "You are kind.\n\nBe brief."}
    assert wire["max_tokens"] == 100
    assert {"store", "prompt_cache_key", "max_completion_tokens"}.isdisjoint(wire)
    # A system message inside the conversation is refused by many templates, so it goes as a user's.
    assert "<system-update>" in messages[5]["content"]
    assert [message["role"] for message in messages].count("system") == 1


@pytest.mark.parametrize("wanted", [True, False])
def test_the_configuration_decides_whether_system_messages_stand_inside(wanted: bool) -> None:
    turns = (UserTurn(content=(Text(text="a"),)), SystemTurn(text="news"))
    for protocol in ("anthropic", "openai-chat", "openai-responses"):
        wire = body(a_request(protocol, turns, system=()), options={"midSystem": wanted})
        messages = wire["input" if protocol == "openai-responses" else "messages"]
        assert (len(messages) == 2) is wanted
        if protocol in ORACLES:
            accepted(protocol, wire)


def test_a_request_that_may_use_no_tool_still_lists_them() -> None:
    """They come first of all: without them nothing of the provider's cache would be reused."""
    for protocol in ("anthropic", "openai-chat", "openai-responses"):
        free, bound = (body(a_request(protocol, tool_choice=choice)) for choice in ("auto", "none"))
        assert free["tools"] == bound["tools"]
        assert bound["tool_choice"] == ({"type": "none"} if protocol == "anthropic" else "none")


def test_a_native_system_message_stands_only_where_anthropic_allows_it() -> None:
    user, news = UserTurn(content=(Text(text="a"),)), SystemTurn(text="news")
    said = AssistantTurn(content=(Text(text="b"),))
    model = a_model("anthropic", api_id="claude-opus-4-8")

    def roles(*turns: ModelMessage) -> list[str]:
        wire = body(a_request("anthropic", turns, model=model))
        return [message["role"] for message in wire["messages"]]

    assert roles(user, news, said, user) == ["user", "system", "assistant", "user"]
    assert roles(user, news) == ["user", "system"]
    assert roles(user, said, news, user) == ["user", "assistant", "user"]
    assert roles(user, news, news) == ["user", "system"]
    assert roles(user, news, news, user) == ["user"]


def test_deepseek_s_reasoning_goes_back_in_its_field_even_if_there_is_none() -> None:
    model = a_model("openai-chat", provider_id="deepseek", api_id="deepseek-chat", interleaved="reasoning_content")
    turns = (
        UserTurn(content=(Text(text="a"),)),
        AssistantTurn(content=(Reasoning(text="hm"), Text(text="b"))),
        AssistantTurn(content=(Text(text="c"),)),
    )
    messages = body(a_request("openai-chat", turns, model=model, system=()), provider_id="deepseek")["messages"]
    assert messages == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning_content": "hm"},
        {"role": "assistant", "content": "c", "reasoning_content": ""},
    ]


def test_openrouter_s_reasoning_details_go_back_whole() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    model = a_model("openai-chat", provider_id="openrouter", interleaved="reasoning_details")
    said = Reasoning(text="hm", metadata={"openrouter": {"reasoning_details": details}})
    turns = (UserTurn(content=(Text(text="a"),)), AssistantTurn(content=(said, Text(text="b"))))
    messages = body(a_request("openai-chat", turns, model=model), provider_id="openrouter")["messages"]
    assert messages[-1]["reasoning_details"] == details


def test_media_of_a_tool_follow_it_where_a_tool_may_only_speak() -> None:
    image = Media(mime="image/png", data=PIXEL, filename="a.png")
    turns = (
        UserTurn(content=(Text(text="look"),)),
        AssistantTurn(content=(Call(id="c", name="read", input={}),)),
        ToolTurn(results=(Result(call_id="c", name="read", output=(Text(text="An image."), image)),)),
    )
    chat = body(a_request("openai-chat", turns, system=()))["messages"]
    assert chat[2:] == [
        {"role": "tool", "tool_call_id": "c", "content": 'An image.\n["a.png" follows]'},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "These files come from the tool results above:"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        },
    ]
    three = a_model("gemini", api_id="gemini-3-pro")
    inside = body(a_request("gemini", turns, model=three))["contents"][-1]["parts"]
    assert len(inside) == 1
    behind = body(a_request("gemini", turns))["contents"][-1]["parts"]
    assert [next(iter(part)) for part in behind] == ["functionResponse", "inlineData"]
    for protocol in ("anthropic", "openai-responses", "openai-chat"):
        accepted(protocol, body(a_request(protocol, turns)))


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_a_file_nobody_takes_is_replaced_by_words_that_say_so(protocol: str) -> None:
    model = a_model(protocol, modalities=("text",))
    movie = Media(mime="video/mp4", data="AAAA", filename="film.mp4")
    wire = encode_body(body(a_request(protocol, (UserTurn(content=(movie,)),), model=model))).decode()
    assert "could not be sent: this model does not read video" in wire
    assert "AAAA" not in wire


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat", "openai-responses"])
def test_a_type_the_protocol_cannot_carry_is_replaced_by_words_that_say_so(protocol: str) -> None:
    archive = Media(mime="application/zip", data="AAAA", filename="a.zip")
    wire = encode_body(body(a_request(protocol, (UserTurn(content=(archive,)),)))).decode()
    assert "could not be sent: the provider does not take files of type application/zip" in wire


HOSTED = {
    "anthropic": (
        {"type": "web_search_tool_result", "tool_use_id": "h", "content": []},
        {"type": "server_tool_use", "id": "h", "name": "web_search", "input": {"query": "x"}},
    ),
    "openai-responses": (
        {"type": "web_search_call", "id": "h", "status": "completed", "action": {"type": "search", "query": "x"}},
        None,
    ),
}


def a_hosted_turn(raw: object) -> tuple[ModelMessage, ...]:
    call = Call(id="h", name="web_search", input={"query": "x"}, executed=True)
    result = Result(call_id="h", name="web_search", output=(Text(text="found"),), executed=True, raw=raw)
    return UserTurn(content=(Text(text="a"),)), AssistantTurn(content=(call, result, Text(text="b")))


@pytest.mark.parametrize("protocol", HOSTED)
def test_a_hosted_tool_s_own_record_goes_back_as_it_came(protocol: str) -> None:
    raw, call = HOSTED[protocol]
    wire = unmarked(body(a_request(protocol, a_hosted_turn(raw))))
    accepted(protocol, wire)
    sent = wire["messages"][1]["content"] if protocol == "anthropic" else wire["input"]
    assert raw in sent
    assert call is None or call in sent


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_a_hosted_tool_of_another_provider_is_told_in_words(protocol: str) -> None:
    wire = encode_body(body(a_request(protocol, a_hosted_turn({"foreign": True})))).decode()
    assert r"[web_search was run by a provider with {\"query\":\"x\"}]\nfound" in wire


def test_reasoning_without_a_signature_is_sent_to_anthropic_as_text() -> None:
    turns = (UserTurn(content=(Text(text="a"),)), AssistantTurn(content=(Reasoning(text="hm"), Reasoning(text=" "))))
    wire = unmarked(body(a_request("anthropic", turns)))
    assert wire["messages"][1]["content"] == [{"type": "text", "text": "hm"}]


def test_reasoning_without_its_encrypted_form_is_left_out_where_nothing_is_stored() -> None:
    part = Reasoning(text="hm", metadata={"openai": {"itemId": "rs_1"}})
    turns = (UserTurn(content=(Text(text="a"),)), AssistantTurn(content=(part, Text(text="b"))))
    assert "rs_1" not in encode_body(body(a_request("openai-responses", turns))).decode()
    stored = body(a_request("openai-responses", turns, options={"store": True}))
    assert {"type": "item_reference", "id": "rs_1"} in stored["input"]


def test_results_stand_first_in_what_anthropic_hears_of_the_user() -> None:
    turns = (
        UserTurn(content=(Text(text="a"),)),
        AssistantTurn(content=(Call(id="c", name="read", input={}),)),
        UserTurn(content=(Text(text="wait"),)),
        ToolTurn(results=(Result(call_id="c", name="read", output=(Text(text="b"),)),)),
    )
    content = body(a_request("anthropic", turns))["messages"][-1]["content"]
    assert [block["type"] for block in content] == ["tool_result", "text"]


def test_several_summaries_of_one_reasoning_become_one_item() -> None:
    parts = (
        Reasoning(text="one", metadata={"openai": {"itemId": "rs_1"}}),
        Reasoning(text="two", metadata={"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "enc"}}),
    )
    turns = (UserTurn(content=(Text(text="a"),)), AssistantTurn(content=(*parts, Text(text="b"))))
    assert body(a_request("openai-responses", turns, system=()))["input"][1:-1] == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
            "encrypted_content": "enc",
        }
    ]


def test_a_call_gemini_did_not_sign_says_so_to_the_models_that_ask() -> None:
    turns = (
        UserTurn(content=(Text(text="a"),)),
        AssistantTurn(content=(Call(id="1", name="read", input={}), Call(id="2", name="read", input={}))),
        ToolTurn(results=(Result(call_id="1", name="read", output=()), Result(call_id="2", name="read", output=()))),
    )
    three = body(a_request("gemini", turns, model=a_model("gemini", api_id="gemini-3-pro")))
    parts = three["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]


def test_gemini_s_own_call_ids_go_back_with_call_and_result() -> None:
    call = Call(id="x", name="read", input={}, metadata={"google": {"callId": "fc-7"}})
    turns = (
        UserTurn(content=(Text(text="a"),)),
        AssistantTurn(content=(call,)),
        ToolTurn(results=(Result(call_id="x", name="read", output=()),)),
    )
    contents = body(a_request("gemini", turns))["contents"]
    assert contents[1]["parts"] == [{"functionCall": {"name": "read", "args": {}, "id": "fc-7"}}]
    response = {"output": "[The tool gave no output]"}
    answered = {"functionResponse": {"name": "read", "response": response, "id": "fc-7"}}
    assert contents[2]["parts"] == [answered]


@pytest.mark.parametrize(
    ("asked", "limit", "budget", "expected"),
    [
        (None, 64_000, None, 64_000),
        (None, 0, None, 4096),
        (1000, 64_000, None, 1000),
        (1000, 64_000, 2000, 3000),
        (1000, 2500, 2000, 2500),
    ],
)
def test_anthropic_is_asked_for_tokens_beyond_its_thinking(
    asked: int | None, limit: int, budget: int | None, expected: int
) -> None:
    model = a_model("anthropic")
    options = {"thinking": {"type": "enabled", "budgetTokens": budget}} if budget else {}
    request = a_request(
        "anthropic", model=model.but(limits=model.limits.but(output=limit)), output_max=asked, options=options
    )
    assert body(request)["max_tokens"] == expected


def test_sampling_is_not_set_beside_thinking() -> None:
    request = a_request("anthropic", temperature=0.2, options={"thinking": {"type": "enabled", "budgetTokens": 1024}})
    assert "temperature" not in body(request)
    assert body(a_request("anthropic", temperature=0.2))["temperature"] == 0.2


@pytest.mark.parametrize(
    ("model", "endpoint"),
    [({"temperature": False}, {}), ({}, {"headers": {"Anthropic-Version": "2026-10-21"}})],
)
def test_sampling_is_not_sent_to_models_and_versions_that_refuse_it(
    model: dict[str, object], endpoint: dict[str, object]
) -> None:
    request = a_request("anthropic", model=a_model("anthropic", **model), temperature=0.2, top_p=0.5)
    assert {"temperature", "top_p", "top_k"}.isdisjoint(body(request, **endpoint))


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_half_a_character_anywhere_is_replaced(protocol: str) -> None:
    tool = READ.but(description="a\ud800b")
    wire = encode_body(body(a_request(protocol, (UserTurn(content=(Text(text="x\udfffy"),)),), tools=(tool,))))
    assert "a\ufffdb" in wire.decode()
    assert "x\ufffdy" in wire.decode()


@pytest.mark.parametrize(
    ("protocol", "path"),
    [
        ("anthropic", "/messages"),
        ("openai-chat", "/chat/completions"),
        ("openai-responses", "/responses"),
        ("gemini", "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
    ],
)
def test_a_request_goes_to_the_protocol_s_path(protocol: str, path: str) -> None:
    assert codec_of(protocol).path(a_request(protocol)) == path


@pytest.mark.parametrize(
    ("protocol", "changes", "expected"),
    [
        ("anthropic", {}, {"anthropic-version": "2023-06-01", "x-api-key": "sk-test"}),
        (
            "anthropic",
            {"api_key": "sk-ant-oat1"},
            {"anthropic-version": "2023-06-01", "authorization": "Bearer sk-ant-oat1"},
        ),
        ("anthropic", {"api_key": None}, {"anthropic-version": "2023-06-01"}),
        ("openai-chat", {}, {"authorization": "Bearer sk-test"}),
        ("openai-chat", {"api_key": None}, {}),
        ("openai-responses", {"provider_id": "azure"}, {"api-key": "sk-test"}),
        ("gemini", {}, {"x-goog-api-key": "sk-test"}),
    ],
)
def test_a_key_is_carried_as_the_protocol_wants(protocol: str, changes: dict[str, object], expected: object) -> None:
    assert codec_of(protocol).headers(an_endpoint(protocol, **changes)) == expected


def test_an_endpoint_never_shows_its_key() -> None:
    assert "sk-test" not in repr(an_endpoint("anthropic", headers={"x": "sk-test"}))


def test_every_route_of_the_catalogue_leads_to_a_protocol_we_speak() -> None:
    assert {route.protocol for route in ROUTES.values()} <= PROVIDERS.keys()
