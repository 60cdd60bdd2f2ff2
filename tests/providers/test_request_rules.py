"""What model families and providers demand: transforms, cache points, media, schemas, sampling."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    ToolTurn,
    UserTurn,
)
from turnkeeper.providers import anthropic, cache_points, media, sampling, schemas, transforms
from turnkeeper.providers.codec import encode_body, merged
from turnkeeper.providers.sampling import SamplingParameters

HI = UserTurn(content=(Text(text="hi"),))


def prepared(
    protocol: str, *messages: ModelMessage, options: dict[str, object] | None = None, **model: object
) -> list[ModelMessage]:
    info = a_model(protocol, **model)
    endpoint = an_endpoint(protocol, provider_id=info.provider_id, options=options or {})
    request = ModelRequest(model=info, system=(), messages=messages)
    return list(transforms.prepare(request, endpoint).messages)


# Transforms.


def test_a_family_without_demands_gets_the_request_as_it_is() -> None:
    messages = (HI, AssistantTurn(content=(Text(text="a"), Text(text=""))), SystemTurn(text="b"))
    assert prepared("openai-responses", *messages) == list(messages)


def test_anthropic_gets_no_empty_text_and_no_empty_message() -> None:
    signed = Reasoning(text="", metadata={"anthropic": {"signature": "s"}})
    hidden = Reasoning(text="", metadata={"anthropic": {"redactedData": "r"}})
    messages = (
        UserTurn(content=(Text(text=""), Text(text="hi"))),
        AssistantTurn(content=(signed, hidden, Reasoning(text=" "), Text(text=""), Text(text=" "))),
        UserTurn(content=(Text(text=""),)),
        AssistantTurn(content=(Text(text=""),)),
    )
    assert prepared("anthropic", *messages) == [HI, AssistantTurn(content=(signed, hidden, Text(text=" ")))]


def test_anthropic_gets_no_turn_that_ends_with_thinking() -> None:
    signed = Reasoning(text="hm", metadata={"anthropic": {"signature": "s"}})
    hidden = Reasoning(text="", metadata={"anthropic": {"redactedData": "r"}})
    said, unsigned = Text(text="a"), Reasoning(text="cut off")
    messages = (
        HI,
        AssistantTurn(content=(signed, said, signed, Text(text=" "), hidden)),
        AssistantTurn(content=(signed,)),
        AssistantTurn(content=(said, unsigned)),
    )
    kept = [HI, AssistantTurn(content=(signed, said)), AssistantTurn(content=(said, unsigned))]
    assert prepared("anthropic", *messages) == kept


def test_responses_gets_no_turn_that_ends_with_a_reasoning_item() -> None:
    item = Reasoning(text="hm", metadata={"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "e"}})
    said = Text(text="a")
    messages = (HI, AssistantTurn(content=(item, said, item)), AssistantTurn(content=(item,)))
    assert prepared("openai-responses", *messages) == [HI, AssistantTurn(content=(item, said))]


def test_a_system_message_before_a_turn_of_thinking_alone_joins_the_user() -> None:
    signed = Reasoning(text="hm", metadata={"anthropic": {"signature": "s"}})
    model = a_model("anthropic", api_id="claude-opus-4-8")
    messages = (HI, SystemTurn(text="news"), AssistantTurn(content=(signed,)), HI)
    request = ModelRequest(model=model, system=(), messages=messages)
    assert [one["role"] for one in anthropic.conversation(request, an_endpoint("anthropic"))] == ["user"]


def test_claude_s_call_ids_are_plain_words_on_both_sides() -> None:
    call, result = Call(id="a.b:c", name="read", input={}), Result(call_id="a.b:c", name="read", output=())
    assert prepared("anthropic", AssistantTurn(content=(call,)), ToolTurn(results=(result,))) == [
        AssistantTurn(content=(call.but(id="a_b_c"),)),
        ToolTurn(results=(result.but(call_id="a_b_c"),)),
    ]


def a_called(call_id: str) -> tuple[ModelMessage, ModelMessage]:
    return (
        AssistantTurn(content=(Call(id=call_id, name="read", input={}),)),
        ToolTurn(results=(Result(call_id=call_id, name="read", output=()),)),
    )


def call_ids(messages: list[ModelMessage]) -> list[str]:
    found: list[str] = []
    for message in messages:
        match message:
            case AssistantTurn(content=content):
                found += [part.id for part in content if isinstance(part, Call)]
            case ToolTurn(results=results):
                found += [result.call_id for result in results]
            case _:
                pass
    return found


def test_mistral_s_call_ids_have_nine_characters_and_stay_apart() -> None:
    messages = prepared(
        "openai-chat", *a_called("toolu_01ABCDEF"), *a_called("toolu_01ABCXYZ"), *a_called("x-1"), provider_id="mistral"
    )
    assert call_ids(messages) == ["toolu01AB", "toolu01AB", "toolu01A2", "toolu01A2", "x10000000", "x10000000"]


@given(st.lists(st.text(max_size=20), unique=True, max_size=30))
def test_mistral_s_call_ids_are_always_nine_letters_or_digits_and_unique(ids: list[str]) -> None:
    calls = tuple(Call(id=call_id, name="read", input={}) for call_id in ids)
    found = call_ids(prepared("openai-chat", AssistantTurn(content=calls), api_id="devstral-small"))
    assert len(set(found)) == len(ids)
    assert all(len(name) == 9 and name.isascii() and name.isalnum() for name in found)


def test_mistral_hears_a_word_between_a_result_and_the_user() -> None:
    call, result = a_called("abcdefghi")
    bridge = AssistantTurn(content=(Text(text=transforms.BRIDGE),))
    assert prepared("openai-chat", call, result, HI, api_id="codestral-2") == [call, result, bridge, HI]
    assert (
        prepared("openai-chat", call, result, SystemTurn(text="news"), provider_id="mistral", api_id="m")[2] == bridge
    )


def test_deepseek_s_every_turn_has_reasoning() -> None:
    thought = AssistantTurn(content=(Reasoning(text="hm"), Text(text="a")))
    plain = AssistantTurn(content=(Text(text="b"),))
    assert prepared("openai-chat", HI, thought, plain, provider_id="deepseek", api_id="deepseek-reasoner") == [
        HI,
        thought,
        AssistantTurn(content=(Text(text="b"), Reasoning(text=""))),
    ]


@pytest.mark.parametrize(
    ("protocol", "model", "native"),
    [
        ("openai-responses", {}, True),
        ("openai-chat", {}, True),
        ("openai-chat", {"provider_id": "openrouter", "api_id": "openai/gpt-5"}, True),
        ("openai-chat", {"provider_id": "groq", "api_id": "llama-3"}, False),
        ("anthropic", {}, False),
        ("anthropic", {"api_id": "claude-opus-4-8"}, True),
        ("gemini", {}, False),
    ],
)
def test_a_system_message_stands_inside_only_where_it_is_understood(
    protocol: str, model: dict[str, Any], native: bool
) -> None:
    messages = prepared(protocol, HI, SystemTurn(text="news"), **model)
    assert (SystemTurn(text="news") in messages) is native


def test_a_system_message_joins_the_user_before_it_or_stands_alone() -> None:
    news = Text(text="<system-update>\na <b> & c\n</system-update>")
    call, result = a_called("c")
    assert prepared("gemini", HI, SystemTurn(text="a <b> & c")) == [HI.but(content=(*HI.content, news))]
    assert prepared("gemini", call, result, SystemTurn(text="a <b> & c")) == [call, result, UserTurn(content=(news,))]
    assert prepared("gemini", SystemTurn(text="a <b> & c"), HI) == [UserTurn(content=(news,)), HI]


def test_nobody_can_close_a_system_update_from_within() -> None:
    assert transforms.system_update("</system-update>").count("</system-update>") == 1


def test_what_a_hosted_tool_gave_is_cut_when_told_in_words() -> None:
    call = Call(id="h", name="search", input={}, executed=True)
    long = Result(call_id="h", name="search", output=(Text(text="x" * 5000),), executed=True)
    assert transforms.hosted_text(call, long).endswith("x [1000 more characters]")
    assert transforms.hosted_text(call, None) == "[search was run by a provider with {}; its result is not known]"


# Media.


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (Media(mime="image/png", data="AAAA"), None),
        (Media(mime="image/png", url="https://a/b.png"), None),
        (Media(mime="text/csv", data="AAAA"), None),
        (Media(mime="image/png", data=""), "it is empty or corrupted"),
        (Media(mime="image/png"), "it is empty"),
        (Media(mime="image/png", data="not base64!"), "its content is not base64"),
        (Media(mime="image/png", data="AAA"), "its content is not base64"),
        (Media(mime="image/png", data="A" * (media.DATA_CHARS_MAX + 4)), "it is larger than 20 MiB"),
        (Media(mime="image/png", data="A" * (media.BYTES_MAX // 3 * 4 + 8)), "it is larger than 20 MiB"),
        (Media(mime="audio/wav", data="AAAA"), "this model does not read audio"),
        (Media(mime="application/pdf", data="AAAA", filename="a.pdf"), "this model does not read pdf"),
    ],
    ids=range(11),
)
def test_a_file_is_sent_or_replaced_by_the_reason(file: Media, said: str | None) -> None:
    found = media.checked(file, ("text", "image"))
    if said is None:
        assert found == file
    else:
        name = f'"{file.filename}"' if file.filename else f"A file of type {file.mime}"
        assert found == Text(text=f"[{name} could not be sent: {said}. Tell the user if it matters.]")


# Cache points.


def marked(blocks: Any) -> list[int]:
    return [index for index, block in enumerate(blocks) if "cache_control" in block]


def a_wire(role: str, *kinds: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": kind} for kind in kinds]}


def test_anthropic_marks_the_last_tool_the_last_system_part_the_user_and_the_end() -> None:
    tools: list[dict[str, object]] = [{"name": "a"}, {"name": "b"}]
    system: list[dict[str, object]] = [{"text": "a"}, {"text": "b"}]
    messages = [
        a_wire("user", "text", "text", "image"),
        a_wire("assistant", "text", "tool_use"),
        a_wire("user", "tool_result", "tool_result"),
    ]
    cache_points.mark_anthropic(system, messages, tools, {"type": "ephemeral"})
    assert (marked(tools), marked(system)) == ([1], [1])
    assert [marked(message["content"]) for message in messages] == [[1], [], [1]]


def test_an_end_that_is_the_user_is_marked_once() -> None:
    messages = [a_wire("user", "text")]
    cache_points.mark_anthropic([], messages, [], {"type": "ephemeral"})
    assert messages == [{"role": "user", "content": [{"type": "text", "cache_control": {"type": "ephemeral"}}]}]


def test_thinking_is_never_marked() -> None:
    messages = [a_wire("user", "tool_result"), a_wire("assistant", "text", "thinking")]
    cache_points.mark_anthropic([], messages, [], {"type": "ephemeral"})
    assert marked(messages[1]["content"]) == [0]


ROLES = st.sampled_from(["user", "assistant", "system"])
KINDS = st.lists(st.sampled_from(["text", "tool_result", "thinking", "image"]), max_size=3)


@given(st.lists(st.tuples(ROLES, KINDS), max_size=8), st.integers(0, 3), st.integers(0, 3))
def test_there_are_never_more_than_four_marks(turns: list[tuple[str, list[str]]], system: int, tools: int) -> None:
    for mark in (True, False):
        messages = [a_wire(role, *kinds) for role, kinds in turns]
        parts: list[dict[str, object]] = [{} for _ in range(system)]
        offered: list[dict[str, object]] = [{} for _ in range(tools)]
        if mark:
            cache_points.mark_anthropic(parts, messages, offered, {})
        else:
            cache_points.mark_messages(messages, {})
        blocks = [block for message in messages for block in message["content"]]
        assert len(marked([*blocks, *parts, *offered])) <= cache_points.BUDGET


def test_hosts_that_pass_marks_on_get_the_first_two_system_and_the_last_two_other_messages() -> None:
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": None},
        {"role": "tool", "content": "d"},
        {"role": "user", "content": [{"type": "text", "text": "e"}]},
    ]
    cache_points.mark_messages(messages, {"type": "ephemeral"})
    found = [message["role"] for message in messages if "cache_control" in str(message)]
    assert found == ["system", "system", "tool", "user"]


@pytest.mark.parametrize(
    ("provider_id", "api_id", "expected"),
    [
        ("openrouter", "anthropic/claude-sonnet-4.5", True),
        ("alibaba", "qwen3-max", True),
        ("vercel", "anthropic/claude-sonnet-4.5", False),
        ("openrouter", "openai/gpt-5", False),
    ],
)
def test_only_hosts_that_understand_marks_get_them(provider_id: str, api_id: str, expected: bool) -> None:
    model = a_model("openai-chat", provider_id=provider_id, api_id=api_id)
    assert cache_points.takes_markers(model, an_endpoint("openai-chat", provider_id=provider_id)) is expected


@pytest.mark.parametrize(
    ("ttl", "mark"),
    [
        (None, {"type": "ephemeral"}),
        (300, {"type": "ephemeral"}),
        (3600, {"type": "ephemeral", "ttl": "1h"}),
    ],
)
def test_a_mark_asks_for_an_hour_from_an_hour_on(ttl: int | None, mark: object) -> None:
    assert cache_points.marker({"cacheTtl": ttl}) == mark


# Schemas.


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        ({"type": "string", "minLength": 1, "format": "uri", "title": "T"}, {"type": "string"}),
        ({"const": "a"}, {"enum": ["a"], "type": "string"}),
        (True, {"type": "string"}),
        ({"properties": {"a": False}}, {"properties": {"a": {"type": "string"}}, "type": "object"}),
        ({"required": ["a"]}, {"required": ["a"], "type": "object", "properties": {}}),
        ({"prefixItems": []}, {"type": "array", "items": {"type": "string"}}),
        ({"minimum": 1}, {"type": "number"}),
        ({"format": "date"}, {"type": "string"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"anyOf": [{"type": "null"}, {}]}, {"anyOf": [{"type": "null"}, {"type": "string"}]}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
        (
            {"type": "object", "additionalProperties": {"minimum": 1}},
            {"additionalProperties": {"type": "number"}, "type": "object", "properties": {}},
        ),
    ],
)
def test_openai_gets_the_keywords_it_knows(given_schema: object, expected: object) -> None:
    assert schemas.openai(given_schema) == expected


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        ({"$ref": "#/a", "description": "x"}, {"$ref": "#/a"}),
        ({"type": "array", "items": [{"type": "string"}, {}]}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": []}, {"type": "array", "items": {"type": "string"}}),
    ],
)
def test_moonshot_s_references_stand_alone(given_schema: object, expected: object) -> None:
    assert schemas.moonshot(given_schema) == expected


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        (
            {"enum": [1, 2.5, True, None, "a"], "type": "integer"},
            {"enum": ["1", "2.5", "true", "null", "a"], "type": "string"},
        ),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": {}}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "string", "properties": {}, "required": []}, {"type": "string"}),
        ({"type": "object", "additionalProperties": False, "$schema": "x"}, {"type": "object"}),
        ({"oneOf": [{"const": "a"}]}, {"anyOf": [{"enum": ["a"], "type": "string"}]}),
    ],
)
def test_gemini_gets_its_own_dialect(given_schema: object, expected: object) -> None:
    assert schemas.gemini(given_schema) == expected


def test_gemini_gets_references_written_out_and_recursion_ended() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}
    schema = {"type": "object", "properties": {"root": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}}
    found = str(schemas.for_model(schema, a_model("gemini")))
    assert "$ref" not in found
    assert found.count("child") == schemas.REFERENCE_DEPTH_MAX


def test_a_schema_that_refers_to_itself_in_many_places_stays_small_for_gemini() -> None:
    node = {"type": "object", "properties": {f"branch{number}": {"$ref": "#/$defs/node"} for number in range(8)}}
    found = str(schemas.for_model({**node, "$defs": {"node": node}}, a_model("gemini")))
    assert "$ref" not in found
    assert found.count("branch") == 8 * (1 + schemas.REFERENCES_MAX)


def test_a_choice_of_objects_becomes_one_object() -> None:
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "number"}, "c": {}}, "required": ["a"]},
            {"type": "null"},
        ]
    }
    properties = {"a": {"type": "string"}, "b": {}, "c": {}}
    assert schemas.flattened(schema) == {"type": "object", "properties": properties, "required": ["a"]}


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"$schema": "x", "type": "object"}, {"anyOf": [True]}])
def test_the_root_is_an_object_for_everyone(protocol: str, schema: dict[str, object]) -> None:
    found = schemas.for_model(schema, a_model(protocol))
    assert (found["type"], found["properties"]) == ("object", {})
    assert "$schema" not in found


# Sampling.


@pytest.mark.parametrize(
    ("api_id", "expected"),
    [
        ("north-mini-code-1", SamplingParameters(temperature=1.0)),
        ("claude-sonnet-4-5", SamplingParameters()),
        ("gemini-2.5-pro", SamplingParameters(temperature=1.0, top_p=0.95, top_k=64)),
        ("gemini-3-flash-preview", SamplingParameters(temperature=1.0, top_p=0.95, top_k=64)),
        ("gemini-3.1-pro", SamplingParameters(temperature=1.0, top_p=0.95, top_k=64)),
        ("gemini-3.5-flash", SamplingParameters(temperature=1.0, top_p=0.95, top_k=64)),
        ("gemini-3.5-flash-lite", SamplingParameters()),
        ("gemini-2.0-flash", SamplingParameters()),
        ("glm-4.6", SamplingParameters(temperature=1.0)),
        ("GLM-4.7-air", SamplingParameters(temperature=1.0)),
        ("glm-4.5", SamplingParameters()),
        ("minimax-m2", SamplingParameters(temperature=1.0, top_p=0.95, top_k=20)),
        ("minimax-m2.1", SamplingParameters(temperature=1.0, top_p=0.95, top_k=40)),
        ("minimax-m25", SamplingParameters(temperature=1.0, top_p=0.95, top_k=40)),
        ("kimi-k2-thinking", SamplingParameters(temperature=1.0)),
        ("kimi-k2.5", SamplingParameters(temperature=1.0, top_p=0.95)),
        ("kimi-k2p5", SamplingParameters(temperature=1.0, top_p=0.95)),
        ("kimi-k2.6", SamplingParameters(temperature=1.0)),
        ("kimi-k2-0905", SamplingParameters(temperature=0.6)),
        ("deepseek-v4-flash-0731", SamplingParameters(top_p=0.95)),
        ("deepseek-v4-flash", SamplingParameters()),
        ("gpt-5", SamplingParameters()),
    ],
)
def test_a_family_samples_as_its_makers_say(api_id: str, expected: SamplingParameters) -> None:
    assert sampling.defaults(a_model("openai-chat", api_id=api_id)) == expected


def test_what_a_request_says_wins_and_temperature_needs_a_model_that_has_one() -> None:
    request = ModelRequest(model=a_model("gemini"), system=(), messages=(), temperature=0.0, top_p=0.1)
    assert sampling.of(request) == SamplingParameters(temperature=0.0, top_p=0.1, top_k=64)
    cold = request.but(model=a_model("gemini", temperature=False))
    assert sampling.of(cold).temperature is None


# Options and text.


def test_later_options_win_objects_merge_and_none_removes() -> None:
    assert merged({"a": {"x": 1, "y": 2}, "b": 1, "c": 1}, {"a": {"y": 3}, "b": None, "d": 4}) == {
        "a": {"x": 1, "y": 3},
        "c": 1,
        "d": 4,
    }


def test_half_characters_are_replaced_however_deep() -> None:
    wire = encode_body({"a\ud800": ["\udfff", {"b": ("x", 1, None)}]})
    assert wire.decode() == '{"a\ufffd":["\ufffd",{"b":["x",1,null]}]}'
