"""Which tools an agent sees, how a call finds its tool, and what its input may look like."""

from typing import Annotated

import msgspec
import pytest
from desk import Desk
from msgspec import Meta

from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Value
from turnkeeper.tools import BUILT_IN, load
from turnkeeper.tools.tool import Denied, Rejected, Tool, ToolContext, ToolFailure, ToolOutput
from turnkeeper.tools.toolbox import Toolbox, decode

DENY_EDITING = Rule(permission="edit", pattern="*", action="deny")


def test_tools_are_sorted_by_name() -> None:
    assert Toolbox(reversed(load())).names == tuple(sorted(BUILT_IN))
    assert [definition.name for definition in Toolbox(load()).definitions()] == sorted(set(BUILT_IN) - {"invalid"})


@pytest.mark.parametrize("name", ["my tool!", "", "x" * 65, "ü"])
def test_a_name_that_no_provider_takes_is_refused(name: str) -> None:
    [tool] = load(["read"])
    with pytest.raises(Invalid, match="cannot name a tool; a name is 1 to 64 letters"):
        Toolbox([msgspec.structs.replace(tool, name=name)])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(Invalid, match="two tools are named 'read'"):
        Toolbox(load(["read", "read"]))


def test_tools_that_rules_wholly_deny_are_not_offered() -> None:
    assert set(BUILT_IN) - set(Toolbox(load()).visible([DENY_EDITING]).names) == {
        *("apply_patch", "edit", "multiedit", "write")
    }
    assert Toolbox(load()).visible([DENY_EDITING, Rule(permission="edit", pattern="docs/*", action="allow")]).names == (
        tuple(sorted(BUILT_IN))
    )
    assert Toolbox(load()).visible([Rule(permission="*", pattern="*", action="deny")]).names == ()


def test_tools_that_the_user_switched_off_are_not_offered() -> None:
    assert set(BUILT_IN) - set(Toolbox(load()).visible([], {"bash": False, "read": True}).names) == {"bash"}


def test_a_name_in_the_wrong_case_is_repaired_and_an_unknown_one_is_not() -> None:
    toolbox = Toolbox(load())
    assert toolbox.find("Read") is toolbox.find("read")
    assert toolbox.find("reed") is None


@pytest.mark.parametrize(
    ("model_id", "is_by_patch"),
    [
        ("gpt-5", True),
        ("gpt-5.1-codex", True),
        ("openai/gpt-6-mini", True),
        ("gpt-4o", False),
        ("gpt-4.1", False),
        ("gpt-oss-120b", False),
        ("claude-sonnet-5", False),
        ("tk-1", False),
    ],
)
def test_models_that_edit_by_patches_are_given_no_other_way(model_id: str, is_by_patch: bool) -> None:
    names = set(Toolbox(load()).visible([], model_id=model_id).names)
    editing = {"apply_patch", "edit", "multiedit", "write"}
    assert names & editing == ({"apply_patch"} if is_by_patch else {"edit", "multiedit", "write"})
    assert names - editing == set(BUILT_IN) - editing


async def test_a_call_of_an_unknown_tool_is_told_the_nearest_and_its_schema(desk: Desk) -> None:
    with pytest.raises(ToolFailure) as failure:
        await desk.run("reed")
    first, near, schema, known = str(failure.value).splitlines()
    assert (first, near) == ("There is no tool named 'reed'.", "The nearest are: read, todoread, grep.")
    assert schema.startswith('The arguments of read must fit this schema: {"type":"object","properties":{"filePath"')
    assert known.startswith("The tools are: apply_patch, bash, edit, glob, grep, ")
    assert "invalid" not in known


async def test_a_call_of_a_tool_like_no_other_is_told_which_there_are(desk: Desk) -> None:
    with pytest.raises(ToolFailure, match=r"^There is no tool named 'zzzz'.\nThe tools are: apply_patch, bash"):
        await desk.run("zzzz")


async def test_a_model_that_calls_invalid_as_an_imported_session_did_is_answered(desk: Desk) -> None:
    output = await desk.run("invalid", tool="reed", error="There is none.")
    assert output.output.startswith("The call of 'reed' was not valid: There is none.")


@pytest.mark.parametrize("name", ["write", "Write"])
async def test_a_call_of_a_tool_that_the_rules_deny_is_told_so(desk: Desk, name: str) -> None:
    desk.toolbox = desk.toolbox.visible([DENY_EDITING])
    with pytest.raises(Denied) as failure:
        await desk.run(name, filePath="a", content="b")
    assert failure.value.rules == (DENY_EDITING,)
    assert not (desk.directory / "a").exists()


async def test_a_tool_that_the_user_switched_off_cannot_be_called(desk: Desk) -> None:
    desk.toolbox = desk.toolbox.visible([], {"write": False})
    with pytest.raises(ToolFailure, match="no tool named 'write'"):
        await desk.run("write", filePath="a", content="b")


class Item(Value):
    name: str


class Everything(Value):
    file_path: str
    count: Annotated[int, Meta(ge=1)] | None = None
    flag: bool = False
    items: tuple[Item, ...] = ()


async def nothing(arguments: Everything, context: ToolContext) -> ToolOutput:
    return ToolOutput(title="t", output="o")


TOOL = Tool(
    name="every", description="d", parameters=Everything, execute=nothing, permission="p", aliases={"path": "filePath"}
)


@pytest.mark.parametrize(
    ("input", "expected"),
    [
        ({"filePath": "a"}, Everything(file_path="a")),
        ({"file_path": "a"}, Everything(file_path="a")),
        ({"path": "a", "unknown": 1}, Everything(file_path="a")),
        ({"path": "b", "filePath": "a"}, Everything(file_path="a")),
        ({"filePath": "a", "count": "3", "flag": "true"}, Everything(file_path="a", count=3, flag=True)),
        ({"filePath": "a", "count": None, "flag": None}, Everything(file_path="a")),
        ({"filePath": "a", "items": [{"name": "x"}]}, Everything(file_path="a", items=(Item(name="x"),))),
    ],
)
def test_near_misses_are_forgiven(input: dict[str, object], expected: Everything) -> None:
    assert decode(TOOL, input) == expected


def test_every_violation_is_named_at_once() -> None:
    with pytest.raises(ToolFailure) as failure:
        decode(TOOL, {"count": 0, "flag": "perhaps", "items": [{"name": 1}]})
    assert str(failure.value).splitlines() == [
        "The input for every does not fit its schema:",
        "- 'filePath' is missing",
        "- 'count': Expected `int` >= 1",
        "- 'flag': Expected `bool`, got `str`",
        "- 'items': Expected `str`, got `int` - at `$[0].name`",
        "Rewrite the input and call again.",
    ]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800"])
def test_text_that_no_system_takes_is_a_violation(text: str) -> None:
    with pytest.raises(ToolFailure, match="'filePath' holds a NUL or half a character"):
        decode(TOOL, {"filePath": text})


def test_feedback_reaches_the_model() -> None:
    refused = Rejected("The user rejected this call.", "use uv")
    assert str(refused) == "The user rejected this call. The user says: use uv"
    assert refused.feedback == "use uv"
