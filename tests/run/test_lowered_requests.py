"""Whatever a log holds, the request made of it obeys the laws of every provider and is accepted by every codec.

Histories are generated: truncated, crashed, imported, of other models, with odd ids, half characters and every kind of
part and state.
"""

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnkeeper.core.history import HistoryItem, visible
from turnkeeper.core.lowering import EARLIER, Lowered, continuation, conversation, lower
from turnkeeper.model.catalog import Limits, ModelInfo
from turnkeeper.model.failure import AbortedFailure, ApiData, ApiFailure, MessageData
from turnkeeper.model.message import (
    ContextUpdate,
    MessageTime,
    ModelChoice,
    SystemMessage,
    UserMessage,
)
from turnkeeper.model.parts import (
    AgentPart,
    CompactionPart,
    FilePart,
    ForeignPart,
    Part,
    PatchPart,
    ReasoningPart,
    RetryPart,
    SnapshotPart,
    StepFinishPart,
    StepStartPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.marks import RetryTime
from turnkeeper.model.parts.tool import (
    RunningTime,
    SettledTime,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolProvider,
    ToolRunning,
)
from turnkeeper.model.request import ModelMessage, ModelRequest, SystemTurn, Text, ToolDefinition, UserTurn
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.value import encode
from turnkeeper.providers import PROVIDERS, codec_of
from turnkeeper.providers.codec import encode_body
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.testing.builders import an_assistant
from turnkeeper.testing.laws import check

P = TypeVar("P", bound=Part)

MODELS = {
    "anthropic": ("anthropic", "claude-sonnet-4-5"),
    "openai-chat": ("openai", "gpt-4.1"),
    "openai-responses": ("openai", "gpt-5"),
    "gemini": ("google", "gemini-2.5-pro"),
}
APIS = [(protocol, *MODELS[protocol]) for protocol in MODELS] + [
    ("gemini", "google", "gemini-3-pro"),
    ("openai-chat", "mistral", "mistral-large"),
    ("openai-chat", "deepseek", "deepseek-reasoner"),
]

WORDS = [
    "",
    " ",
    "\n",
    "hello",
    "Ünïcödé 🎉",
    "\ud83d",
    "a\udc80b",
    "x" * 300,
    "call_1",
    "../..",
    "a b",
    "\x00",
    "null",
]
VALUES = [None, True, 0, -1.5, 2**63, "", "text", "\ud800", [], [1, ["\udc00"]], {}, {"a": {"": [None]}}, {"\udfff": 1}]
CALL_IDS = ["call_1", "call_2", "", "toolu_01", "fc|x", "ü" * 70, *WORDS]
TOOL_NAMES = ["bash", "mcp.server/tool", "StructuredOutput", "", "tööl", *WORDS]
MIMES = ["image/png", "application/pdf", "text/plain", "application/x-directory", "audio/wav", "zip", *WORDS]
URLS = [
    "data:image/png;base64,AAAA",
    "data:application/pdf;base64,JVBERi0=",
    "data:image/png;base64,",
    "data:image/png,raw",
    "data:;base64,AAAA",
    "data:text/csv;charset=utf-8;base64,AAAA",
    "https://example.com/a.png",
    "file:///a b",
    *WORDS,
]
FAILED = ApiFailure(data=ApiData(message="no", is_retryable=True))
ABORTED = AbortedFailure(data=MessageData(message="stopped"))
SPEAKERS = [MODELS["anthropic"], MODELS["openai-chat"], MODELS["gemini"], ("acme", "gone")]
USER_IDS, TURN_IDS = ["msg_0", "msg_1", "msg_2"], ["msg_4", "msg_5", "msg_6"]


class Pool:
    """Makes odd values, the same in every run. Hypothesis picks among them: drawing each field is slow."""

    def __init__(self) -> None:
        self._random = Random(20260801)

    def pick(self, *given: Any) -> Any:
        return self._random.choice(given)

    def word(self) -> str:
        return str(self.pick(*WORDS))

    def json(self) -> Any:
        return self.pick({}, {self.word(): self.pick(*VALUES), "a": self.pick(*VALUES)})

    def metadata(self) -> Any:
        return self.pick(
            None,
            {},
            {"anthropic": {"signature": self.word()}},
            {"anthropic": {"redactedData": self.word()}},
            {"openai": {"itemId": self.word(), "reasoningEncryptedContent": self.pick(*VALUES)}},
            {"google": {"thoughtSignature": self.word()}},
            self.json(),
        )

    def file(self) -> FilePart:
        return self._part(FilePart, mime=self.pick(*MIMES), url=self.pick(*URLS), filename=self.pick(None, self.word()))

    def state(self) -> Any:
        time = SettledTime(start=1, end=2, compacted=self.pick(None, None, 3))
        interrupted = {"interrupted": True, "output": self.pick(*VALUES)}
        return self.pick(
            ToolPending(input=self.json(), raw=self.word()),
            ToolRunning(input=self.json(), metadata=self.pick(None, self.json()), time=RunningTime(start=1)),
            ToolCompleted(
                input=self.json(),
                output=self.word(),
                title=self.word(),
                metadata=self.json(),
                time=time,
                attachments=self.pick(None, (self.file(),), (self.file(), self.file())),
                structured=self.pick(*VALUES),
            ),
            ToolError(
                input=self.json(),
                error=self.word(),
                metadata=self.pick(None, self.json(), interrupted),
                time=time,
            ),
        )

    def tool(self) -> ToolPart:
        hosted = ToolProvider(
            executed=self.pick(True, True, False), metadata=self.metadata(), result_metadata=self.metadata()
        )
        return self._part(
            ToolPart,
            call_id=self.pick(*CALL_IDS),
            tool=self.pick(*TOOL_NAMES),
            state=self.state(),
            metadata=self.metadata(),
            provider=self.pick(None, None, hosted),
        )

    def part(self) -> Any:
        return self.pick(self.tool, self.tool, self.text, self.text, self.thought, self.file, self.mark)()

    def text(self) -> TextPart:
        return self._part(
            TextPart, text=self.word(), ignored=self.pick(None, None, None, True), metadata=self.metadata()
        )

    def thought(self) -> ReasoningPart:
        return self._part(ReasoningPart, text=self.word(), metadata=self.metadata(), time=Span(start=1))

    def mark(self) -> Any:
        return self.pick(
            self._part(StepStartPart),
            self._part(StepStartPart),
            self._part(StepFinishPart, reason=self.word(), cost=0, tokens=ZERO_TOKENS),
            self._part(SnapshotPart, snapshot=self.word()),
            self._part(PatchPart, hash=self.word(), files=("a",)),
            self._part(AgentPart, name=self.word()),
            self._part(SubtaskPart, prompt=self.word(), description=self.word(), agent=self.word()),
            self._part(RetryPart, attempt=1, error=FAILED, time=RetryTime(created=1)),
            self._part(CompactionPart, auto=True, tail_start_id=self.pick(None, "msg_0", "msg_5")),
            self._part(ForeignPart, body=self.json()),
        )

    def message(self) -> Any:
        own: dict[str, Any] = {"session_id": "ses_1", "time": MessageTime(created=1)}
        speaker = self.pick(*SPEAKERS)
        user = UserMessage(
            **own,
            id=self.pick(*USER_IDS),
            agent=self.word(),
            model=ModelChoice(provider_id="a", model_id="b"),
            system=self.pick(None, None, self.word()),
        )
        turn = an_assistant(
            "ses_1",
            self.pick(*TURN_IDS),
            self.pick(*USER_IDS),
            provider_id=speaker[0],
            model_id=speaker[1],
            error=self.pick(None, None, None, FAILED, ABORTED),
            finish=self.pick(None, "stop", "tool-calls", "odd"),
            summary=self.pick(None, None, None, True),
        )
        news = SystemMessage(**own, id="msg_s", updates=(ContextUpdate(key="k", text=self.word()),))
        return self.pick(user, user, turn, turn, turn, news)

    def _part(self, kind: Callable[..., P], **fields: object) -> P:
        return kind(id=self.pick("prt_1", "prt_2", "prt_3"), session_id="ses_1", message_id="msg_1", **fields)


pool = Pool()
parts = st.sampled_from([pool.part() for _ in range(4000)])
messages = st.sampled_from([pool.message() for _ in range(500)])
entries = st.builds(HistoryItem, message=messages, parts=st.lists(parts, max_size=6).map(tuple))
histories = st.lists(entries, max_size=7).map(
    lambda given: [entry.but(message=entry.message.but(seq=seq)) for seq, entry in enumerate(given, 1)]
)
endings = st.sampled_from([(), (SystemTurn(text="The step limit is reached."),)])
models = st.builds(
    lambda api, modalities, reasoning, interleaved: ModelInfo(
        provider_id=api[1],
        id=api[2],
        name=api[2],
        api_id=api[2],
        protocol=api[0],
        limits=Limits(context=200_000, output=32_000),
        modalities=modalities,
        reasoning=reasoning,
        interleaved=interleaved,
    ),
    st.sampled_from(APIS),
    st.sampled_from([("text",), ("text", "image", "pdf")]),
    st.booleans(),
    st.sampled_from([None, None, "reasoning_content"]),
)
OPENING = UserTurn(content=(Text(text=EARLIER),))
TOOLS = (ToolDefinition(name="bash", description="Runs.", schema={"type": "object", "properties": {}}),)


def a_request(history: list[HistoryItem], model: ModelInfo, ending: tuple[ModelMessage, ...]) -> ModelRequest:
    messages = (*lower(visible(history), model), *ending)
    return ModelRequest(model=model, system=("Be careful.",), messages=messages, tools=TOOLS, session_id="ses_1")


def obeys(history: list[HistoryItem], model: ModelInfo, ending: tuple[ModelMessage, ...]) -> None:
    request = a_request(history, model, ending)
    assert check(request) == {}
    endpoint = Endpoint(protocol=model.protocol, provider_id=model.provider_id, api_key="sk-test")
    body = encode_body(codec_of(model.protocol).body(request, endpoint))
    again = a_request(history, model, ending)
    assert encode(again) == encode(request)
    assert encode_body(codec_of(model.protocol).body(again, endpoint)) == body


def extends(history: list[HistoryItem], more: list[HistoryItem], model: ModelInfo) -> None:
    """A longer history only adds messages, once somebody has spoken and so the conversation has begun."""
    before = conversation(history, model)
    is_begun = before[0] != OPENING or any(not isinstance(message, SystemTurn) for message in before[1:])
    if is_begun:
        assert conversation([*history, *more], model)[: len(before)] == before


def a_compaction(number: int, tail: str | None, is_done: bool) -> list[HistoryItem]:
    """A mark and the summary that answers it."""
    place: dict[str, Any] = {"session_id": "ses_1", "message_id": f"msg_m{number}"}
    own: dict[str, Any] = {"session_id": "ses_1", "time": MessageTime(created=1)}
    user = UserMessage(**own, id=f"msg_m{number}", agent="build", model=ModelChoice(provider_id="a", model_id="b"))
    mark = CompactionPart(id=f"prt_m{number}", auto=True, tail_start_id=tail, **place)
    turn = an_assistant("ses_1", f"msg_z{number}", user.id, summary=True, finish="stop" if is_done else None)
    words = TextPart(id=f"prt_z{number}", session_id="ses_1", message_id=turn.id, text="## Objective")
    failed = turn if is_done else turn.but(error=FAILED)
    return [HistoryItem(message=user, parts=(mark,)), HistoryItem(message=failed, parts=(words,))]


def pruned(entry: HistoryItem) -> HistoryItem:
    def cleared(part: Part) -> Part:
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
            return part
        return part.but(state=part.state.but(time=part.state.time.but(compacted=3)))

    return entry.but(parts=tuple(map(cleared, entry.parts)))


def a_long_life(
    lives: list[list[HistoryItem]], tails: list[str | None], ends: list[bool], prunings: set[int]
) -> list[HistoryItem]:
    """Histories with compactions between them, of which some failed; some outputs are pruned."""
    whole = list(lives[0])
    for number, life in enumerate(lives[1:]):
        whole += [*a_compaction(number, tails[number], ends[number]), *life]
    placed = [entry.but(message=entry.message.but(seq=seq)) for seq, entry in enumerate(whole, 1)]
    return [pruned(entry) if at in prunings else entry for at, entry in enumerate(placed)]


long_lives = st.builds(
    a_long_life,
    st.lists(st.lists(entries, max_size=4), min_size=2, max_size=3),
    st.lists(st.sampled_from([None, *USER_IDS, *TURN_IDS, "msg_z0", "msg_gone"]), min_size=2, max_size=2),
    st.lists(st.sampled_from([True, True, False]), min_size=2, max_size=2),
    st.sets(st.integers(0, 15)),
)
left_outs = st.sets(st.sampled_from(["prt_1", "prt_2", "prt_3", "prt_z0", "prt_m0"])).map(frozenset)


def obeys_without(history: list[HistoryItem], model: ModelInfo, left_out: frozenset[str]) -> None:
    lowered = Lowered(model, left_out)
    lowered.add(visible(history))
    messages = (*lowered.messages, *continuation(lowered.messages))
    assert len(lowered.sources) in (len(lowered.messages), len(lowered.messages) - 1)
    request = ModelRequest(model=model, system=("Be careful.",), messages=messages, tools=TOOLS, session_id="ses_1")
    assert check(request) == {}
    endpoint = Endpoint(protocol=model.protocol, provider_id=model.provider_id, api_key="sk-test")
    encode_body(codec_of(model.protocol).body(request, endpoint))


checked = settings(max_examples=300, suppress_health_check=list(HealthCheck))
soaked = settings(max_examples=10_000, suppress_health_check=list(HealthCheck))


@checked
@given(histories, models, endings)
def test_every_history_lowers_to_a_lawful_request_that_every_codec_writes(
    history: list[HistoryItem], model: ModelInfo, ending: tuple[ModelMessage, ...]
) -> None:
    obeys(history, model, ending)


@pytest.mark.soak
@soaked
@given(histories, models, endings)
def test_ten_thousand_histories_lower_to_lawful_requests(
    history: list[HistoryItem], model: ModelInfo, ending: tuple[ModelMessage, ...]
) -> None:
    obeys(history, model, ending)


@checked
@given(histories, histories, models)
def test_a_longer_history_only_adds_messages(
    history: list[HistoryItem], more: list[HistoryItem], model: ModelInfo
) -> None:
    extends(history, more, model)


@pytest.mark.soak
@soaked
@given(histories, histories, models)
def test_ten_thousand_longer_histories_only_add_messages(
    history: list[HistoryItem], more: list[HistoryItem], model: ModelInfo
) -> None:
    extends(history, more, model)


@checked
@given(long_lives, models, left_outs)
def test_after_compactions_prunings_and_quarantines_requests_are_lawful_too(
    history: list[HistoryItem], model: ModelInfo, left_out: frozenset[str]
) -> None:
    obeys_without(history, model, left_out)


@pytest.mark.soak
@soaked
@given(long_lives, models, left_outs)
def test_after_ten_thousand_long_lives_requests_are_lawful_too(
    history: list[HistoryItem], model: ModelInfo, left_out: frozenset[str]
) -> None:
    obeys_without(history, model, left_out)


def test_every_protocol_is_among_the_models() -> None:
    assert {protocol for protocol, _, _ in APIS} == set(PROVIDERS)
