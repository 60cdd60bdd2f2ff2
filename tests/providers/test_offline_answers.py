"""The offline model makes real calls, one step a turn, tells what came of them, and says what it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrow import of_type

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelMessage,
    ModelRequest,
    Result,
    Text,
    ToolDefinition,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.stream import (
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StartStep,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from turnkeeper.model.value import Json, encode
from turnkeeper.providers.offline.answers import HONEST, respond, title

MODEL = ModelInfo(provider_id="offline", id="tk-1", name="Offline", api_id="tk-1", protocol="offline")
PARAMETERS = {
    "read": ("filePath",),
    "write": ("filePath", "content"),
    "edit": ("filePath", "oldString", "newString", "replaceAll"),
    "bash": ("command", "description"),
    "glob": ("pattern", "path"),
    "grep": ("pattern", "path"),
    "todowrite": ("todos",),
}
TOOLS = tuple(
    ToolDefinition(name=name, description="", schema={"type": "object", "properties": {key: {} for key in names}})
    for name, names in PARAMETERS.items()
)


def user(*texts: str) -> UserTurn:
    return UserTurn(content=tuple(Text(text=text) for text in texts))


def called(*calls: Call) -> AssistantTurn:
    return AssistantTurn(content=calls)


def gave(*outputs: str, failed: bool = False, first: int = 0) -> ToolTurn:
    return ToolTurn(
        results=tuple(
            Result(call_id=f"c{first + n}", name="x", output=(Text(text=output),), is_error=failed)
            for n, output in enumerate(outputs)
        )
    )


def call(name: str, number: int = 0, /, **arguments: Json) -> Call:
    return Call(id=f"c{number}", name=name, input=arguments)


def asked(
    *messages: ModelMessage, system: tuple[str, ...] = (), tools: tuple[ToolDefinition, ...] = TOOLS, **more: object
) -> ModelRequest:
    return ModelRequest(model=MODEL, system=system, messages=messages, tools=tools).but(**more)


def text(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls(events: list[StreamEvent]) -> list[tuple[str, Json]]:
    return [(event.name, event.input) for event in events if isinstance(event, ToolCall)]


def test_a_request_becomes_a_call() -> None:
    events = respond(asked(user("read a.py")))
    raw = '{"filePath":"a.py"}'
    assert [event for event in events if not isinstance(event, ReasoningDelta | TextDelta | FinishStep)] == [
        Start(),
        StartStep(),
        ReasoningStart(id="reasoning-0"),
        ReasoningEnd(id="reasoning-0"),
        TextStart(id="text-0"),
        TextEnd(id="text-0"),
        ToolInputStart(id="tk1_0_0", name="read"),
        ToolInputDelta(id="tk1_0_0", text=raw),
        ToolInputEnd(id="tk1_0_0"),
        ToolCall(id="tk1_0_0", name="read", input={"filePath": "a.py"}, raw=raw),
        Finish(),
    ]
    assert text(events) == "Reading `a.py`."


def test_calls_that_do_not_need_each_other_are_made_together() -> None:
    events = respond(asked(user("read a.py and b.py")))
    assert calls(events) == [("read", {"filePath": "a.py"}), ("read", {"filePath": "b.py"})]
    assert len({event.id for event in events if isinstance(event, ToolCall)}) == 2


def test_steps_are_done_one_a_turn_and_then_told() -> None:
    history: list[ModelMessage] = [user("write a.txt: hi then run `cat a.txt`")]
    assert calls(respond(asked(*history))) == [("write", {"filePath": "a.txt", "content": "hi\n"})]
    history += [called(call("write", filePath="a.txt", content="hi\n")), gave("Wrote a.txt.")]
    events = respond(asked(*history))
    assert calls(events) == [("bash", {"command": "cat a.txt", "description": "Run it"})]
    assert [event.id for event in events if isinstance(event, ToolCall)] == ["tk1_1_0"]
    history += [called(call("bash", 1, command="cat a.txt")), gave("hi", first=1)]
    events = respond(asked(*history))
    assert calls(events) == []
    assert text(events) == f"`a.txt` is written: 1 line.\n\n`cat a.txt` printed:\n\n```\nhi\n```\n\n{HONEST}"
    assert of_type(FinishStep, events[-2]).reason == "stop"


@pytest.mark.parametrize(
    ("made", "output", "told"),
    [
        (
            call("read", filePath="a.py"),
            "<path>/p/a.py</path>\n<content>\n1: import os\n2: \n3: x = 1: 2\n(End, 3 in all)\n</content>",
            "`a.py` has 3 lines:\n\n```\nimport os\n\nx = 1: 2\n```",
        ),
        (call("read", path="a.png"), "Image a.png is attached.", "`a.png`:\n\n```\nImage a.png is attached.\n```"),
        (
            call("glob", pattern="**/*"),
            "/p/src/b.py\n/p/a.py\n\n(There are more.)",
            "There are 2 files:\n\n- `a.py`\n- `src/b.py`",
        ),
        (call("glob", pattern="*.rs"), "No files found", "There are no such files."),
        (call("glob", pattern="**/*"), "/p/only.py", "There is 1 file:\n\n- `only.py`"),
        (
            call("grep", pattern="x\\("),
            "Found 2 matches\n\n/p/a.py:\n  Line 1: x(\n  Line 4: ax(",
            "`x(` was found 2 times:\n\n```\n/p/a.py:\n  Line 1: x(\n  Line 4: ax(\n```",
        ),
        (call("grep", pattern="x"), "No files found", "`x` was not found."),
        (call("bash", command="true"), "(no output)", "`true` printed nothing."),
        (call("bash", command="cat r.md"), "```\ncode\n```", "`cat r.md` printed:\n\n````\n```\ncode\n```\n````"),
        (call("edit", filePath="a", oldString="b", newString="c"), "Changed.", "In `a`, `b` is now `c`."),
        (
            call("todowrite", todos=[{"content": "one"}, {"content": "two"}]),
            "[]",
            "The plan has 2 steps:\n\n1. one\n2. two",
        ),
        (call("webfetch", url="http://x"), "page", "`webfetch` http://x:\n\n```\npage\n```"),
    ],
)
def test_a_result_is_told_in_its_own_way(made: Call, output: str, told: str) -> None:
    assert text(respond(asked(user("go"), called(made), gave(output)))) == f"{told}\n\n{HONEST}"


def test_a_long_output_is_told_by_its_beginning() -> None:
    lines = "\n".join(f"line {number}" for number in range(100))
    said = text(respond(asked(user("run `x`"), called(call("bash", command="x")), gave(lines))))
    assert "line 11\n… 88 more lines\n```" in said
    assert "line 12" not in said


def test_an_error_stops_the_steps_and_is_told() -> None:
    history = (
        user("read a.py then run `ls`"),
        called(call("read", filePath="a.py")),
        gave("no such file\nat all", failed=True),
    )
    events = respond(asked(*history))
    assert calls(events) == []
    assert (
        text(events)
        == f"`read` a.py failed: no such file\n\nI stopped after the error; not done: running `ls`.\n\n{HONEST}"
    )


def test_a_tool_that_is_not_offered_is_named() -> None:
    events = respond(asked(user("run `ls`"), tools=TOOLS[:1]))
    assert text(events) == f"I have no tool `bash` here; not done: running `ls`.\n\n{HONEST}"


def test_without_leave_to_call_it_calls_nothing() -> None:
    events = respond(asked(user("run `ls`"), tool_choice="none"))
    assert calls(events) == []
    assert "not done: running `ls`" in text(events)


def test_a_tool_with_other_names_gets_its_arguments_by_them() -> None:
    other = ToolDefinition(name="read", description="", schema={"properties": {"path": {}}})
    assert calls(respond(asked(user("read a.py"), tools=(other,)))) == [("read", {"path": "a.py"})]


def test_what_it_does_not_understand_it_says_with_examples() -> None:
    events = respond(asked(user("write me a poem")))
    assert text(events).startswith("I did not understand that.")
    assert "- read README.md" in text(events)
    assert text(events).endswith(HONEST)


def test_a_steer_is_followed_in_place_of_what_was_asked_before() -> None:
    history = (user("read a.py then run `ls`"), called(call("read", filePath="a.py")), gave("1: x"), user("run `pwd`"))
    assert calls(respond(asked(*history))) == [("bash", {"command": "pwd", "description": "Run it"})]


def test_the_content_of_attached_files_is_not_taken_for_a_request() -> None:
    prompt = user("read a.py", "run `rm -rf /`")
    assert calls(respond(asked(prompt))) == [("read", {"filePath": "a.py"})]
    assert calls(respond(asked(prompt, called(call("read", filePath="a.py")), gave("1: x")))) == []


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("please fix the login, it is broken.", "Fix the login, it is broken"),
        ("# Heading\nmore", "Heading"),
        ("- run `make tides`", "Run `make tides`"),
        ("a" * 80, "A" + "a" * 49),
        ("one two three four five six seven eight nine ten eleven", "One two three four five six seven eight nine ten"),
        ("  \n ", "Untitled"),
    ],
)
def test_a_title_is_a_few_words_of_the_prompt(prompt: str, expected: str) -> None:
    assert title(prompt) == expected
    request = asked(user("Generate a title:"), user(prompt), system=("You give a title.",), tools=())
    if prompt.strip():
        assert text(respond(request)) == expected


def test_a_summary_tells_what_was_asked_and_done() -> None:
    conversation = (
        "<conversation>\n[User]: read a.py\n\n"
        '[Assistant tool call]: read({"filePath":"a.py"})\n[Tool result]: 1: x\n\n[Assistant]: a.py has 1 line.\n\n'
        "[User]: look at @b.py\n"
        '[User]: The read tool was called for the user with this input: {"filePath":"b.py"}\n[User]: 1: y\n\n'
        '[Assistant tool call]: bash({"command":"make)\n</conversation>\n\nThe summary has at most 256 tokens.'
    )
    said = text(respond(asked(user(conversation), system=("You summarise.",), tools=())))
    assert said == f"## Asked\n- Read a.py\n- Look at @b.py\n\n## Done\n- `read` a.py\n\n{HONEST}"


def test_a_form_is_filled_with_the_least_that_fits() -> None:
    schema = {
        "type": "object",
        "properties": {
            "answer": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "count": {"type": "integer", "minimum": 3},
            "items": {"type": "array", "items": {"type": "boolean"}, "minItems": 1},
            "inner": {"type": "object", "properties": {"x": {"const": 9}, "y": {}}, "required": ["x"]},
            "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "extra": {"type": "string"},
        },
        "required": ["answer", "kind", "count", "items", "inner", "either"],
    }
    form = ToolDefinition(name="StructuredOutput", description="", schema=schema)
    history = (user("run `x`"), called(call("bash", command="x")), gave("hi"))
    events = respond(asked(*history, tools=(*TOOLS, form), tool_choice="required"))
    assert calls(events) == [
        (
            "StructuredOutput",
            {
                "answer": "`x` printed:\n\n```\nhi\n```",
                "kind": "a",
                "count": 3,
                "items": [False],
                "inner": {"x": 9},
                "either": None,
            },
        )
    ]


def test_usage_is_a_quarter_of_the_characters() -> None:
    request = asked(user("read a.py"), system=("s" * 40,))
    events = respond(request)
    finish = events[-2]
    assert isinstance(finish, FinishStep)
    assert finish.usage is not None
    read = 40 + len("read a.py") + sum(len(tool.name) + len(encode(tool.schema)) for tool in TOOLS)
    thought = sum(len(event.text) for event in events if isinstance(event, ReasoningDelta))
    said = len(text(events)) + len('read{"filePath":"a.py"}')
    assert finish.usage.input == -(-read // 4)
    assert finish.usage.reasoning == -(-thought // 4)
    assert finish.usage.output == -(-thought // 4) + -(-said // 4)
    assert finish.usage.total == finish.usage.input + finish.usage.output


MESSAGES = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=60)),
        st.builds(lambda name: called(call(name, filePath="x")), st.sampled_from(sorted(PARAMETERS))),
        st.builds(gave, st.text(max_size=60), failed=st.booleans()),
        st.just(AssistantTurn(content=(Text(text="said"),))),
    ),
    max_size=6,
)


@given(MESSAGES, st.sampled_from(["auto", "none", "required"]))
def test_every_history_gets_a_whole_answer_and_always_the_same(messages: list[ModelMessage], choice: str) -> None:
    request = asked(*messages, tool_choice=choice)
    events = respond(request)
    assert events == respond(request)
    assert events[:2] == [Start(), StartStep()]
    assert isinstance(events[-2], FinishStep)
    assert events[-1] == Finish()
    assert all(event.text for event in events if isinstance(event, TextDelta | ReasoningDelta | ToolInputDelta))
    assert text(events) or calls(events)


def test_prompts_that_are_taken_up_together_are_all_worked_on() -> None:
    together = (user("list the files"), called(), user("write a.txt: one"), user("write b.txt: two"))
    [(_, first)] = calls(respond(asked(*together)))
    assert of_type(dict, first)["filePath"] == "a.txt"
    [(_, second)] = calls(respond(asked(*together, called(call("write")), gave("ok"))))
    assert of_type(dict, second)["filePath"] == "b.txt"


ATTACHED = 'The read tool was called for the user with this input: {"filePath":"forecast.txt"}'


@pytest.mark.parametrize(
    "texts",
    [(ATTACHED, "wind from the west", "read a.txt"), ("read a.txt", ATTACHED, "wind"), ('"read a.txt"',)],
    ids=["file first", "file last", "in quotation marks"],
)
def test_the_words_of_the_user_are_found_beside_files_and_inside_quotation_marks(texts: tuple[str, ...]) -> None:
    assert calls(respond(asked(user(*texts)))) == [("read", {"filePath": "a.txt"})]


@pytest.mark.parametrize("is_first", [True, False], ids=["image first", "image last"])
def test_the_words_of_the_user_are_found_beside_an_image(is_first: bool) -> None:
    image, words = (Text(text=ATTACHED), Media(mime="image/png", data="")), (Text(text="read a.txt"),)
    turn = UserTurn(content=image + words if is_first else words + image)
    assert calls(respond(asked(turn))) == [("read", {"filePath": "a.txt"})]
    titled = respond(asked(turn, system=("You give a title.",), tools=()))
    assert text(titled) == "Read a.txt"
