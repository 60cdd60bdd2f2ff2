"""What is kept of earlier requests changes no byte of the next one."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_cases import MODELS, a_model, an_endpoint

from turnkeeper.model.catalog import ModelInfo
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
from turnkeeper.providers import bodies, cache_points, codec_of
from turnkeeper.providers.bodies import Bodies
from turnkeeper.providers.codec import encode_body
from turnkeeper.providers.endpoint import Endpoint

TOOL = ToolDefinition(name="read", description="Reads.", schema={"type": "object", "properties": {"p": {}}})
TOOLS = (TOOL.but(name="first", description="Another."), TOOL)
PROTOCOLS = sorted(MODELS)

FAMILIES = [
    *((a_model(protocol), an_endpoint(protocol)) for protocol in PROTOCOLS),
    *((a_model(protocol), an_endpoint(protocol, options={"midSystem": True})) for protocol in PROTOCOLS),
    *((a_model(protocol), an_endpoint(protocol, options={"midSystem": False})) for protocol in PROTOCOLS),
    (a_model("anthropic", options={"cacheTtl": 3600}), an_endpoint("anthropic")),
    (a_model("anthropic", options={"cacheControl": {"type": "ephemeral"}}), an_endpoint("anthropic")),
    (a_model("anthropic", api_id="claude-opus-4-8"), an_endpoint("anthropic")),
    (a_model("openai-chat", api_id="claude-sonnet-4", provider_id="x"), an_endpoint("openai-chat", provider_id="x")),
    (a_model("openai-chat", api_id="deepseek-v3", provider_id="x"), an_endpoint("openai-chat", provider_id="x")),
    (a_model("openai-chat", api_id="devstral", provider_id="mistral"), an_endpoint("openai-chat", provider_id="x")),
    (a_model("openai-chat", interleaved="reasoning_content"), an_endpoint("openai-chat", provider_id="x")),
    (a_model("openai-responses", options={"store": True}), an_endpoint("openai-responses")),
    (a_model("gemini", api_id="gemini-3-pro"), an_endpoint("gemini")),
]
IDS = [f"{model.protocol} {model.api_id} {endpoint.options or model.options}" for model, endpoint in FAMILIES]

words = st.sampled_from(["", " ", "a", "b c", "\udfff", "<x>", "é"])
ids = st.sampled_from(["call_1", "call_2", "call-3", "c!4"])
metadata = st.sampled_from(
    [
        None,
        {"anthropic": {"signature": "s"}},
        {"anthropic": {"redactedData": "r"}},
        {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "e"}},
        {"openai": {"itemId": "rs_1"}},
        {"google": {"thoughtSignature": "t", "callId": "wire"}},
    ]
)
texts = st.builds(Text, text=words, metadata=metadata)
media = st.builds(
    Media, mime=st.sampled_from(["image/png", "application/pdf", "video/mp4"]), data=st.sampled_from(["", "aGk=", "!"])
)
results = st.builds(
    Result,
    call_id=ids,
    name=st.just("read"),
    output=st.lists(texts | media, max_size=2).map(tuple),
    is_error=st.booleans(),
    executed=st.booleans(),
    raw=st.sampled_from([None, {"type": "web_search_tool_result", "content": []}, {"codeExecutionResult": {}}]),
)
calls = st.builds(
    Call, id=ids, name=st.just("read"), input=st.just({"p": "x"}), executed=st.booleans(), metadata=metadata
)
reasoning = st.builds(Reasoning, text=words, metadata=metadata)
messages = st.one_of(
    st.builds(UserTurn, content=st.lists(texts | media, max_size=3).map(tuple)),
    st.builds(AssistantTurn, content=st.lists(texts | reasoning | calls | results, max_size=3).map(tuple)),
    st.builds(ToolTurn, results=st.lists(results, max_size=2).map(tuple)),
    st.builds(SystemTurn, text=words),
)
passing = st.lists(st.builds(UserTurn, content=st.just((Text(text="Continue."),))) | messages, max_size=2)
toolboxes = st.sampled_from([TOOLS, TOOLS, (TOOL,), TOOLS[:1], ()])
growth = st.lists(st.tuples(st.lists(messages, max_size=5), passing, toolboxes), min_size=1, max_size=6)


def a_request(model: ModelInfo, said: Sequence[ModelMessage], **changes: object) -> ModelRequest:
    request = ModelRequest(
        model=model, system=("one", "two"), messages=tuple(said), tools=TOOLS, session_id="ses_1", options={}
    )
    return request.but(**changes)


def plain(request: ModelRequest, endpoint: Endpoint) -> bytes:
    return encode_body(codec_of(endpoint.protocol).body(request, endpoint))


def sent(kept: Bodies, request: ModelRequest) -> bytes:
    return b"".join(kept.pieces(request))


def a_bodies(endpoint: Endpoint, **sizes: int) -> Bodies:
    return Bodies(codec_of(endpoint.protocol), endpoint, **sizes)


@pytest.mark.parametrize(("model", "endpoint"), FAMILIES, ids=IDS)
@settings(max_examples=30)
@given(
    growth=growth,
    system=st.sampled_from([(), ("one",), ("one", "two", "three")]),
    sizes=st.sampled_from([(bodies.BLOCK, bodies.SMALL), (1, 1), (7, 3), (64, 200)]),
)
def test_a_conversation_that_grows_anyhow_is_sent_as_if_nothing_were_kept(
    model: ModelInfo,
    endpoint: Endpoint,
    growth: list[tuple[list[ModelMessage], list[ModelMessage], tuple[ToolDefinition, ...]]],
    system: object,
    sizes: tuple[int, int],
) -> None:
    kept = a_bodies(endpoint, block=sizes[0], small=sizes[1])
    said: list[ModelMessage] = []
    for more, for_now, tools in growth:
        said += more
        request = a_request(model, [*said, *for_now], system=system, tools=tools)
        assert sent(kept, request) == plain(request, endpoint)


def test_what_is_kept_is_handed_out_uncopied_and_never_changes() -> None:
    model, endpoint = a_model("openai-chat"), an_endpoint("openai-chat")
    kept = a_bodies(endpoint)
    said: list[ModelMessage] = [asked("x" * 3 * bodies.BLOCK), answered(), asked(), answered()]
    first = kept.pieces(a_request(model, said))
    whole = b"".join(first)
    again = kept.pieces(a_request(model, [*said, asked(), answered(), asked()]))
    large = [[piece.obj for piece in one if isinstance(piece, memoryview)] for one in (first, again)]
    assert [id(block) for block in large[0][:3]] == [id(block) for block in large[1][:3]]
    assert len(first) < 8
    assert b"".join(first) == whole


def a_step(number: int) -> list[ModelMessage]:
    call = Call(id=f"call_{number}", name="read", input={"p": number})
    result = Result(call_id=f"call_{number}", name="read", output=(Text(text=f"line {number}"),))
    return [AssistantTurn(content=(Text(text="I look."), call)), ToolTurn(results=(result,))]


def asked(text: str = "go") -> UserTurn:
    return UserTurn(content=(Text(text=text),))


def answered() -> AssistantTurn:
    return AssistantTurn(content=(Text(text="done"),))


@pytest.mark.parametrize(("model", "endpoint"), FAMILIES, ids=IDS)
def test_each_step_of_a_long_turn_makes_only_the_last_step_anew(model: ModelInfo, endpoint: Endpoint) -> None:
    kept = a_bodies(endpoint)
    said: list[ModelMessage] = [asked("first"), answered(), SystemTurn(text="news"), asked("second")]
    for number in range(20):
        said += a_step(number)
        request = a_request(model, said)
        assert sent(kept, request) == plain(request, endpoint)
        assert "mistral" in model.provider_id or len(said) - kept.repeated <= 4 or number == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_words_for_one_request_alone_are_not_kept(protocol: str) -> None:
    model, endpoint = a_model(protocol), an_endpoint(protocol)
    kept = a_bodies(endpoint)
    said: list[ModelMessage] = [asked(), *a_step(1)]
    for one in ([*said, SystemTurn(text="the last step")], [*said, *a_step(2)], [*said, *a_step(3), asked()]):
        request = a_request(model, one)
        assert sent(kept, request) == plain(request, endpoint)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_history_that_was_rewritten_is_made_anew(protocol: str) -> None:
    model, endpoint = a_model(protocol), an_endpoint(protocol)
    kept = a_bodies(endpoint)
    said: list[ModelMessage] = [asked(), *a_step(1), *a_step(2), asked(), answered()]
    sent(kept, a_request(model, said))
    cleared = Result(call_id="call_1", name="read", output=(Text(text="cleared"),))
    request = a_request(model, [*said[:2], ToolTurn(results=(cleared,)), *said[3:], asked(), answered()])
    assert sent(kept, request) == plain(request, endpoint)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_kept_for_one_model_is_not_sent_to_another(protocol: str) -> None:
    endpoint = an_endpoint(protocol)
    kept = a_bodies(endpoint)
    said: list[ModelMessage] = [asked(), *a_step(1), UserTurn(content=(Media(mime="image/png", data="aGk="),)), asked()]
    said += a_step(2)
    for model in (a_model(protocol), a_model(protocol, modalities=("text",)), a_model(protocol, reasoning=True)):
        request = a_request(model, said)
        assert sent(kept, request) == plain(request, endpoint)
    request = a_request(model, said, options={"store": True})
    assert sent(kept, request) == plain(request, endpoint)


def test_a_title_asked_for_in_between_costs_nothing_that_is_kept() -> None:
    model, endpoint = a_model("openai-chat"), an_endpoint("openai-chat")
    kept = a_bodies(endpoint)
    said: list[ModelMessage] = [asked(), *a_step(1)]
    sent(kept, a_request(model, said))
    sent(kept, a_request(model, [asked("Give a title"), asked()]))
    said += a_step(2)
    assert sent(kept, a_request(model, said)) == plain(a_request(model, said), endpoint)
    assert kept.repeated == 1


def test_what_was_used_longest_ago_is_let_go() -> None:
    model, endpoint = a_model("openai-chat"), an_endpoint("openai-chat")
    kept = a_bodies(endpoint)
    sessions = [[asked(), *a_step(number)] for number in range(bodies.KEPT_MAX + 1)]
    for number, said in enumerate(sessions):
        sent(kept, a_request(model, said, session_id=f"ses_{number}"))
    sent(kept, a_request(model, sessions[0], session_id="ses_0"))
    assert kept.repeated == 0
    sent(kept, a_request(model, sessions[-1], session_id=f"ses_{bodies.KEPT_MAX}"))
    assert kept.repeated == 1


def test_more_than_may_be_kept_is_sent_and_let_go() -> None:
    model, endpoint = a_model("openai-chat"), an_endpoint("openai-chat")
    kept = a_bodies(endpoint)
    said = [asked("x" * (bodies.BYTES_MAX + 1)), *a_step(1)]
    for _ in range(2):
        assert sent(kept, a_request(model, said)) == plain(a_request(model, said), endpoint)
        assert kept.repeated == 0


@pytest.mark.parametrize("lengths", [(4, 5, 6), (4, 6)])
def test_a_late_result_goes_under_the_id_that_its_call_had_on_the_wire(lengths: tuple[int, ...]) -> None:
    model, endpoint = a_model("gemini"), an_endpoint("gemini")
    kept = a_bodies(endpoint)
    call = Call(id="call_1", name="read", input={}, metadata={"google": {"callId": "wire_1"}})
    late = ToolTurn(results=(Result(call_id="call_1", name="read", output=(Text(text="late"),)),))
    said: list[ModelMessage] = [asked(), AssistantTurn(content=(call,)), asked(), answered(), late, answered()]
    for length in lengths:
        request = a_request(model, said[:length])
        assert sent(kept, request) == plain(request, endpoint)


def test_a_provider_that_stores_is_referred_to_what_it_has() -> None:
    model, endpoint = a_model("openai-responses"), an_endpoint("openai-responses")
    kept = a_bodies(endpoint)
    own = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "e"}}
    thought = AssistantTurn(content=(Reasoning(text="hm", metadata=own), Text(text="done")))
    said: list[ModelMessage] = [asked(), thought, asked(), answered(), asked()]
    for options in ({}, {"store": True}):
        request = a_request(model, said, options=options)
        assert sent(kept, request) == plain(request, endpoint)


@pytest.mark.parametrize("system", [(), ("one",), ("one", "two")])
def test_cache_points_fall_on_the_same_messages_wherever_they_are_kept(system: tuple[str, ...]) -> None:
    model = a_model("openai-chat", api_id="claude-sonnet-4", provider_id="x")
    endpoint = an_endpoint("openai-chat", provider_id="x", options={"midSystem": True})
    kept = a_bodies(endpoint)
    said: list[ModelMessage] = [asked(), SystemTurn(text="news"), asked("more"), answered()]
    said += [SystemTurn(text="older news"), asked("on"), answered()]
    for length in (3, 4, 5, 6, 7):
        request = a_request(model, said[:length], system=system)
        assert sent(kept, request) == plain(request, endpoint)


def test_a_message_that_could_get_a_cache_point_is_known_by_its_place() -> None:
    result: dict[str, object] = {"role": "user", "content": [{"type": "tool_result"}]}
    said: dict[str, object] = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    system: dict[str, object] = {"role": "system", "content": "x"}
    answer: dict[str, object] = {"role": "assistant", "content": "x"}
    assert cache_points.markable([system, system, system, said, said, answer, result, answer]) == [0, 1, 4, 6, 7]
