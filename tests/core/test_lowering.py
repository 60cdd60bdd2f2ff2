"""Lowering, rule by rule: what a model is sent for each kind of message, part and state."""

from collections.abc import Callable
from typing import Any

import pytest
from narrow import of_type, results_of

from turnkeeper.core.handles import handle
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.lowering import (
    CLEARED,
    COMPACTED,
    CONTINUE,
    DELEGATED,
    EARLIER,
    FROM_TOOL,
    INTERRUPTED,
    NO_OUTPUT,
    STOPPED,
    cleared,
    conversation,
    lower,
)
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import AbortedFailure, ApiData, ApiFailure, Failure, MessageData
from turnkeeper.model.message import UserMessage
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
    ToolPart,
)
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.marks import RetryTime
from turnkeeper.model.parts.tool import SettledTime, ToolError, ToolPending, ToolProvider, ToolState
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelMessage,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.testing.builders import (
    NOW,
    a_call,
    a_system,
    a_text,
    a_user,
    an_assistant,
    completed,
    running,
)

SAME = ModelInfo(provider_id="acme", id="large", name="large", api_id="large", protocol="openai-chat")
OTHER = SAME.but(id="small", api_id="small")
ABORTED = AbortedFailure(data=MessageData(message="stopped"))
FAILED = ApiFailure(data=ApiData(message="no", is_retryable=False))
USER = a_user("ses_one", "msg_0")
TURN = an_assistant("ses_one", "msg_1", "msg_0", finish="stop")
ASKED = HistoryItem(message=USER, parts=(a_text(USER, "prt_0", "go"),))
PRUNED = cleared(completed("a file"))
PNG = "data:image/png;base64,AAAA"


def base(kind: Callable[..., Part], **fields: object) -> Part:
    return kind(id="prt_x", session_id="ses_one", message_id="msg_1", **fields)


def a_file(url: str = PNG, mime: str = "image/png", filename: str | None = "a.png", id: str = "prt_f") -> FilePart:
    return FilePart(id=id, session_id="ses_one", message_id="msg_1", mime=mime, url=url, filename=filename)


def thought(text: str, metadata: JsonObject | None = None, id: str = "prt_r") -> ReasoningPart:
    return ReasoningPart(
        id=id, session_id="ses_one", message_id="msg_1", text=text, metadata=metadata, time=Span(start=NOW)
    )


def failed(text: str, metadata: dict[str, object] | None = None) -> ToolError:
    return ToolError(input={"a": 1}, error=text, metadata=metadata, time=SettledTime(start=NOW, end=NOW))


def user(*parts: Part, **changes: object) -> list[ModelMessage]:
    """What is sent for a user message with these parts."""
    return list(conversation([HistoryItem(message=USER.but(**changes), parts=parts)], SAME))


def turn(*parts: Part, model: ModelInfo = SAME, error: Failure | None = None) -> list[ModelMessage]:
    """What is sent for a turn with these parts."""
    return list(conversation([ASKED, HistoryItem(message=TURN.but(error=error), parts=parts)], model))[1:]


def content(*parts: Part, model: ModelInfo = SAME, error: Failure | None = None) -> list[object]:
    [message] = turn(*parts, model=model, error=error)
    assert isinstance(message, AssistantTurn)
    return list(message.content)


# What the user said.


def test_a_user_s_words_and_files_are_sent_in_their_order() -> None:
    first, last = a_text(USER, "prt_1", "look:"), a_text(USER, "prt_2", "well?", synthetic=True)
    image = Media(mime="image/png", data="AAAA", filename="a.png")
    assert user(first, a_file(), last) == [UserTurn(content=(Text(text="look:"), image, Text(text="well?")))]


@pytest.mark.parametrize(
    "part",
    [
        a_text(USER, "prt_1", ""),
        a_text(USER, "prt_1", " \n\t"),
        a_text(USER, "prt_1", "for people", ignored=True),
        a_file("file:///a.txt", "text/plain"),
        a_file("file:///a/", "application/x-directory"),
        base(AgentPart, name="plan"),
        base(ForeignPart, body={"type": "new"}),
        base(SnapshotPart, snapshot="tree"),
    ],
    ids=["empty", "blank", "ignored", "a text file", "a directory", "an agent", "a foreign part", "a snapshot"],
)
def test_what_is_not_for_the_model_makes_no_message(part: Part) -> None:
    # Where nothing at all is left to send, a word stands for it: a request needs one.
    assert user(part) == [UserTurn(content=(Text(text=EARLIER),))]
    assert user() == user(part)


def test_marks_of_the_user_are_sent_in_fixed_words() -> None:
    subtask = base(SubtaskPart, prompt="p", description="d", agent="a")
    assert user(base(CompactionPart, auto=True), subtask) == [
        UserTurn(content=(Text(text=COMPACTED), Text(text=DELEGATED)))
    ]


def test_a_prompt_s_own_system_text_stands_behind_it() -> None:
    assert user(a_text(USER, "prt_1", "go"), system="Be brief.") == [
        UserTurn(content=(Text(text="go"),)),
        SystemTurn(text="Be brief."),
    ]
    assert len(user(a_text(USER, "prt_1", "go"), system="  ")) == 1


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            a_file("https://example.com/a.png"),
            Media(mime="image/png", url="https://example.com/a.png", filename="a.png"),
        ),
        (a_file("file:///a.png"), "only known as file:///a.png"),
        (a_file("data:image/png;base64,"), "empty or not base64"),
        (a_file("data:image/png,plain"), "empty or not base64"),
        (a_file("data:image/png;base64,not base64!"), "empty or not base64"),
        (a_file(mime="picture"), "of what kind"),
        (a_file(mime=""), "of what kind"),
        (a_file(mime="image/\ud800"), "of what kind"),
        (a_file(filename="a\udc80.png"), Media(mime="image/png", data="AAAA", filename="a\ufffd.png")),
    ],
)
def test_a_file_is_sent_as_itself_or_as_why_not(file: FilePart, expected: Media | str) -> None:
    [message] = user(file)
    assert isinstance(message, UserTurn)
    [part] = message.content
    if isinstance(expected, str):
        assert isinstance(part, Text)
        assert expected in part.text
    else:
        assert part == expected


def test_news_of_the_system_is_sent_at_its_place() -> None:
    news = HistoryItem(message=a_system("ses_one", "msg_2", "It is Monday.", "Be quick."), parts=())
    blank = HistoryItem(message=a_system("ses_one", "msg_2", " "), parts=())
    assert list(conversation([ASKED, news, ASKED, blank], SAME)) == [
        UserTurn(content=(Text(text="go"),)),
        SystemTurn(text="It is Monday.\n\nBe quick."),
        UserTurn(content=(Text(text="go"),)),
    ]


# What the model said.


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (base(StepStartPart),),
        (a_text(TURN, "prt_1", ""),),
        (a_text(TURN, "prt_1", "hidden", ignored=True),),
        (thought(" "),),
        (
            base(PatchPart, hash="h", files=("a",)),
            base(SnapshotPart, snapshot="s"),
            base(StepFinishPart, reason="stop", cost=0, tokens=ZERO_TOKENS),
            base(RetryPart, attempt=1, error=FAILED, time=RetryTime(created=NOW)),
            base(AgentPart, name="a"),
            base(CompactionPart, auto=True),
            base(ForeignPart, body={}),
        ),
    ],
    ids=["nothing", "only a step", "empty text", "ignored text", "a blank thought", "marks"],
)
def test_a_turn_that_said_nothing_is_left_out(parts: tuple[Part, ...]) -> None:
    assert turn(*parts) == []


def test_a_failed_turn_is_left_out_unless_it_was_stopped_after_it_said_something() -> None:
    words = a_text(TURN, "prt_1", "Half")
    assert turn(words, error=FAILED) == []
    assert turn(base(StepStartPart), thought("hm"), error=ABORTED) == []
    assert content(words, error=ABORTED) == [Text(text="Half")]


def test_each_step_of_a_turn_is_a_message_with_the_results_of_its_calls_behind_it() -> None:
    step, words = base(StepStartPart), a_text(TURN, "prt_1", "First.")
    first, second = (a_call(TURN, name, completed(name)) for name in ("prt_a", "prt_b"))
    assert [type(message).__name__ for message in turn(step, words, first, step, second)] == [
        "AssistantTurn",
        "ToolTurn",
        "AssistantTurn",
        "ToolTurn",
    ]


def test_metadata_goes_back_to_the_model_it_came_from_and_never_from_a_failed_turn() -> None:
    words = a_text(TURN, "prt_1", "Yes.", metadata={"id": "t1"})
    call = a_call(TURN, "prt_2", completed(), metadata={"id": "c1"})
    for given, expected in (
        (turn(words, call), {"id": "t1"}),
        (turn(words, call, model=OTHER), None),
        (turn(words, call, error=ABORTED), None),
    ):
        assert isinstance(given[0], AssistantTurn)
        said, called = given[0].content
        assert isinstance(said, Text)
        assert isinstance(called, Call)
        assert said.metadata == expected
        assert called.metadata == (expected and {"id": "c1"})


@pytest.mark.parametrize(
    ("part", "model", "error", "expected"),
    [
        (thought("hm", {"s": 1}), SAME, None, [Reasoning(text="hm", metadata={"s": 1})]),
        (thought("", {"encrypted": 1}), SAME, None, [Reasoning(text="", metadata={"encrypted": 1})]),
        (thought("hm", {"s": 1}), OTHER, None, [Text(text="hm")]),
        (thought("", {"encrypted": 1}), OTHER, None, []),
        (thought("hm", {"s": 1}), SAME, ABORTED, [Reasoning(text="hm")]),
        (thought("hm", {"s": 1}), OTHER, ABORTED, [Text(text="hm")]),
    ],
    ids=["same model", "only encrypted", "another model", "encrypted for another", "stopped", "stopped, another"],
)
def test_thoughts_go_back_as_thoughts_to_their_model_and_as_words_to_others(
    part: ReasoningPart, model: ModelInfo, error: Failure | None, expected: list[object]
) -> None:
    end = Text(text="\n\nend" if expected and isinstance(expected[0], Text) else "end")
    assert content(part, a_text(TURN, "prt_9", "end"), model=model, error=error) == [*expected, end]


def test_texts_of_another_model_are_separated_by_a_blank_line_and_those_of_the_same_are_unchanged() -> None:
    """Providers join the texts of a turn without a separator."""
    parts = (
        thought("First I look.", {"s": 1}, "prt_1"),
        a_text(TURN, "prt_2", "I look."),
        a_call(TURN, "prt_3", completed("a file")),
        a_text(TURN, "prt_4", "\nFound."),
        hosted(completed("two hits")).but(id="prt_5", call_id="call_web"),
        a_text(TURN, "prt_6", "Done."),
    )
    assert texts(*parts, model=OTHER) == (
        "First I look.\n\nI look.\n\n\nFound.\n\n[web was run by the provider]\ntwo hits\n\nDone."
    )
    assert texts(*parts) == "I look.\nFound.Done."


def test_each_step_of_another_model_begins_without_a_blank_line() -> None:
    step = base(StepStartPart)
    said = turn(step, thought("a", None), step.but(id="prt_y"), a_text(TURN, "prt_2", "b"), model=OTHER)
    assert said == [AssistantTurn(content=(Text(text=one),)) for one in ("a", "b")]


def texts(*parts: Part, model: ModelInfo = SAME) -> str:
    said, _ = turn(*parts, model=model)
    assert isinstance(said, AssistantTurn)
    return "".join(part.text for part in said.content if isinstance(part, Text))


def test_an_empty_text_between_signed_thoughts_keeps_its_place() -> None:
    signed = {"anthropic": {"signature": "sig"}}
    parts = (thought("a", signed, "prt_1"), a_text(TURN, "prt_2", ""), thought("b", signed, "prt_3"))
    assert [type(part) for part in content(*parts)] == [Reasoning, Text, Reasoning]
    assert content(*parts)[1] == Text(text=" ")
    assert content(*parts, model=OTHER) == [Text(text="a"), Text(text="\n\nb")]


@pytest.mark.parametrize("blank", ["", "\n\n"])
def test_a_blank_text_that_separates_no_signed_thoughts_is_left_out(blank: str) -> None:
    """Anthropic refuses a message whose only text is blank, and names no place by which it could be quarantined."""
    signed = {"anthropic": {"signature": "sig"}}
    parts = (a_text(TURN, "prt_0", blank), thought("a", signed, "prt_1"), a_text(TURN, "prt_2", blank))
    assert [type(part) for part in content(*parts)] == [Reasoning]


# Calls and results.


@pytest.mark.parametrize(
    ("state", "text", "is_error"),
    [
        (completed("a file"), "a file", False),
        (completed(" \n"), NO_OUTPUT, False),
        (completed("a file").but(time=SettledTime(start=1, end=2, compacted=3)), PRUNED, False),
        (failed("no such file"), "no such file", True),
        (failed(" "), INTERRUPTED, True),
        (failed("aborted", {"interrupted": True}), "aborted", True),
        (failed("aborted", {"interrupted": True, "output": "half"}), f"half\n\n{STOPPED}", False),
        (failed("aborted", {"interrupted": True, "output": " "}), "aborted", True),
        (failed("no", {"output": "half"}), "no", True),
        (running(), INTERRUPTED, True),
        (ToolPending(input={}, raw='{"a'), INTERRUPTED, True),
    ],
    ids=[
        "completed",
        "no output",
        "pruned",
        "error",
        "error without words",
        "interrupted",
        "interrupted with output",
        "interrupted with blanks",
        "error with output",
        "running",
        "pending",
    ],
)
def test_every_call_has_a_result(state: ToolState, text: str, is_error: bool) -> None:
    said, results = turn(a_call(TURN, "prt_1", state))
    assert isinstance(said, AssistantTurn)
    assert isinstance(results, ToolTurn)
    assert said.content == (Call(id="call_prt_1", name="bash", input=dict(state.input)),)
    assert results.results == (Result(call_id="call_prt_1", name="bash", output=(Text(text=text),), is_error=is_error),)


def test_files_go_with_their_result_where_the_provider_takes_them_and_behind_it_where_not() -> None:
    call = a_call(TURN, "prt_1", completed().but(attachments=(a_file(), a_file("file:///gone", id="prt_g"))))
    image = Media(mime="image/png", data="AAAA", filename="a.png")
    for protocol, api_id, takes in (
        ("anthropic", "claude", True),
        ("openai-responses", "gpt", True),
        ("openai-chat", "gpt", False),
        ("gemini", "gemini-2.5-pro", False),
        ("gemini", "gemini-3-pro", True),
    ):
        _, results, *extra = turn(call, model=SAME.but(protocol=protocol, api_id=api_id))
        assert isinstance(results, ToolTurn)
        assert (image in results.results[0].output) is takes
        assert any(isinstance(one, Text) and "only known as" in one.text for one in results.results[0].output)
        assert extra == ([] if takes else [UserTurn(content=(Text(text=FROM_TOOL), image))])


def test_a_pruned_result_says_how_to_have_it_back() -> None:
    assert CLEARED in PRUNED
    assert handle("a file") in PRUNED


def test_files_of_a_pruned_result_are_not_sent() -> None:
    state = completed().but(attachments=(a_file(),), time=SettledTime(start=1, end=2, compacted=3))
    said, result = turn(a_call(TURN, "prt_1", state))
    assert (type(said), type(result)) == (AssistantTurn, ToolTurn)


def hosted(state: ToolState) -> ToolPart:
    provider = ToolProvider(executed=True, metadata={"c": 1}, result_metadata={"r": 1})
    return a_call(TURN, "prt_1", state, tool="web", provider=provider)


def test_what_the_provider_ran_stays_inside_the_turn_for_its_model() -> None:
    said = content(hosted(completed("text").but(structured={"hits": 1})))
    call, result = said
    assert isinstance(call, Call)
    assert isinstance(result, Result)
    assert (call.executed, result.executed, result.raw, result.metadata) == (True, True, {"hits": 1}, {"r": 1})
    assert call.id == result.call_id


@pytest.mark.parametrize("given", [{"model": OTHER}, {"error": ABORTED}], ids=["another model", "a stopped turn"])
def test_what_the_provider_ran_is_words_for_others(given: dict[str, Any]) -> None:
    [words] = content(hosted(completed("two hits")), **given)
    assert isinstance(words, Text)
    assert "two hits" in words.text


def test_of_two_parts_for_one_call_the_last_speaks() -> None:
    first = a_call(TURN, "prt_1", failed("no"), call_id="c")
    last = a_call(TURN, "prt_2", completed("yes"), call_id="c")
    said, results = turn(first, last)
    assert isinstance(said, AssistantTurn)
    assert isinstance(results, ToolTurn)
    assert len(said.content) == 1
    assert results.results[0].output == (Text(text="yes"),)


@pytest.mark.parametrize(
    ("call_id", "name"),
    [("toolu_1-a", "toolu_1-a"), ("a.b:c/d", "a_b_c_d"), ("", "call"), ("ü" * 3, "___"), ("x" * 90, "x" * 56)],
)
def test_ids_fit_every_provider(call_id: str, name: str) -> None:
    said, results = turn(a_call(TURN, "prt_1", completed(), call_id=call_id))
    call = of_type(Call, of_type(AssistantTurn, said).content[0])
    assert call.id == results_of(results)[0].call_id == name


def test_an_id_used_in_two_turns_becomes_two() -> None:
    entries = [
        ASKED,
        *(
            HistoryItem(message=TURN, parts=(a_call(TURN, f"prt_{n}", completed(), call_id="call_0"),))
            for n in range(3)
        ),
    ]
    turns = [message for message in conversation(entries, SAME) if isinstance(message, ToolTurn)]
    assert [one.results[0].call_id for one in turns] == ["call_0", "call_0_2", "call_0_3"]


def test_odd_names_and_half_characters_are_made_plain() -> None:
    state = completed("out\ud800").but(input={"k\udc00": ["v\ud800", {"n\ud800": 1}], "f": 1.5})
    call = a_call(TURN, "prt_1", state, tool="mcp.server/do it", metadata={"m\ud800": "\ud800"})
    said, results = turn(call)
    [one] = of_type(AssistantTurn, said).content
    assert isinstance(one, Call)
    assert one.name == "mcp_server_do_it"
    assert one.input == {"k\ufffd": ["v\ufffd", {"n\ufffd": 1}], "f": 1.5}
    assert one.metadata == {"m\ufffd": "\ufffd"}
    encode([said, results])


# The conversation as a whole.


def test_a_conversation_begins_with_the_user() -> None:
    opening = UserTurn(content=(Text(text=EARLIER),))
    assert conversation([], SAME) == (opening,)
    words = HistoryItem(message=TURN, parts=(a_text(TURN, "prt_1", "Yes."),))
    assert conversation([words, ASKED], SAME)[0] == opening
    assert conversation([ASKED, words], SAME)[0] != opening


def test_a_request_ends_where_the_model_is_to_speak() -> None:
    words = HistoryItem(message=TURN, parts=(a_text(TURN, "prt_1", "Yes."),))
    news = HistoryItem(message=a_system("ses_one", "msg_2", "It is Monday."), parts=())
    call = HistoryItem(message=TURN, parts=(a_call(TURN, "prt_1", completed()),))
    more = UserTurn(content=(Text(text=CONTINUE),))
    assert lower([ASKED, words], SAME)[-1] == more
    assert lower([ASKED, words, news], SAME)[-1] == more
    assert isinstance(lower([ASKED, call], SAME)[-1], ToolTurn)
    assert isinstance(lower([ASKED], SAME)[-1], UserTurn)


def test_messages_of_the_user_are_not_merged() -> None:
    assert len(conversation([ASKED, ASKED], SAME)) == 2
    assert isinstance(ASKED.message, UserMessage)


def test_the_sources_of_a_text_do_not_go_back() -> None:
    sources = [{"url": "https://a.example"}]
    cited = a_text(TURN, "prt_1", "So.", metadata={"sources": sources, "acme": {"seal": 1}})
    assert content(cited) == [Text(text="So.", metadata={"acme": {"seal": 1}})]
    assert content(a_text(TURN, "prt_1", "So.", metadata={"sources": sources})) == [Text(text="So.")]


def test_a_file_that_the_model_made_is_told_in_words() -> None:
    assert content(a_file()) == [Text(text="[The assistant made a file here: a.png]")]
