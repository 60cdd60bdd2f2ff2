"""Custom tools: functions of a person's own files, with the contract of every other tool."""

import logging
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from desk import Desk
from msgspec import Meta, Struct

from turnkeeper import tool
from turnkeeper.model.refusal import Invalid
from turnkeeper.tools import load
from turnkeeper.tools.custom_files import CustomTools, LoadedTools
from turnkeeper.tools.tool import Denied, ToolContext, ToolFailure, ToolOutput
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.tool_files import ToolTrust


@tool
def greet(
    first_name: Annotated[str, Meta(description="Who.")], times: int = 1, tone: Literal["soft", "loud"] = "soft"
) -> str:
    """Greets somebody.

    Several times, if need be.
    """
    said = f"Hello {first_name}! " * times
    return said.upper() if tone == "loud" else said


@tool(name="where-am-i", permission="read", read_only=True)
async def where(context: ToolContext) -> ToolOutput:
    """Tells the directory."""
    return ToolOutput(title="Here", output=str(context.directory))


class Tide(Struct):
    metres: float
    falling: bool


@tool
def gauge(place: Annotated[str, "Where."], days: Annotated[int, "Ahead.", Meta(ge=0)] = 0) -> dict[str, list[Tide]]:
    """Tells the tides of a place."""
    return {place: [Tide(3.1, True)] * days}


@tool
def wrong(what: str) -> object:
    """Goes wrong in several ways."""
    if what == "words":
        raise ToolFailure("In words.")
    if what == "bug":
        raise KeyError(what)
    return object()


@pytest.fixture
def own(desk: Desk) -> Desk:
    desk.toolbox = Toolbox([*load(), greet, where, gauge, wrong])
    return desk


def test_the_schema_is_that_of_the_function() -> None:
    assert greet.definition().schema == {
        "type": "object",
        "properties": {
            "firstName": {"type": "string", "description": "Who."},
            "times": {"type": "integer", "minimum": -(2**53) + 1, "maximum": 2**53 - 1, "default": 1},
            "tone": {"type": "string", "enum": ["loud", "soft"], "default": "soft"},
        },
        "required": ["firstName"],
    }
    assert greet.description == "Greets somebody.\n\nSeveral times, if need be."
    assert where.definition().schema == {"type": "object", "properties": {}, "required": []}
    assert (where.name, where.permission, where.read_only) == ("where-am-i", "read", True)


async def test_a_text_beside_a_type_describes_it_and_a_value_is_given_as_json(own: Desk) -> None:
    properties = gauge.definition().schema["properties"]
    assert properties == {
        "place": {"type": "string", "description": "Where."},
        "days": {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "description": "Ahead.", "default": 0},
    }
    assert (await own.run("gauge", place="bay", days=1)).output == '{"bay":[{"metres":3.1,"falling":true}]}'


async def test_a_function_is_called_with_what_the_model_gave(own: Desk) -> None:
    output = await own.run("greet", first_name="Ada", times="2", tone="loud")
    assert (output.title, output.output) == ("greet", "HELLO ADA! HELLO ADA! ")
    assert own.asked == [("greet", ["*"], ["*"])]
    assert own.shown == [{"firstName": "Ada", "times": 2, "tone": "loud"}]
    assert (await own.run("where-am-i")).output == str(own.directory)


async def test_bad_input_is_told_and_a_denied_call_does_nothing(own: Desk) -> None:
    with pytest.raises(ToolFailure, match="'tone': Invalid enum value 'shrill'"):
        await own.run("greet", firstName="Ada", tone="shrill")
    own.refuse("greet")
    with pytest.raises(Denied):
        await own.run("greet", firstName="Ada")


async def test_what_goes_wrong_in_a_function_is_told(own: Desk) -> None:
    with pytest.raises(ToolFailure, match="In words"):
        await own.run("wrong", what="words")
    with pytest.raises(ToolFailure, match="wrong returned object, which cannot be written as JSON"):
        await own.run("wrong", what="object")
    with pytest.raises(KeyError):
        await own.run("wrong", what="bug")


def nameless(*words: str) -> str:
    """Has no names."""
    return ""


def untyped(word) -> str:  # type: ignore[no-untyped-def]
    """Has no types."""
    return ""


def mute(word: str) -> str:
    return word


class Branch(Struct):
    below: "list[Branch]"


def endless(root: Branch) -> str:
    """Has a type that holds itself."""
    return ""


@tool
def choosy(any_of: str, title: str) -> str:
    """Has parameters that are named as keywords of a schema."""
    return any_of


def test_a_parameter_may_have_the_name_of_a_keyword() -> None:
    assert choosy.definition().schema["properties"] == {"anyOf": {"type": "string"}, "title": {"type": "string"}}


def odd(word: Path | int | str | bytes) -> str:
    """Has a type that JSON cannot tell from another."""
    return ""


def unknown(word: "Nowhere") -> str:  # type: ignore[name-defined] # noqa: F821
    """Has a type that is not there."""
    return ""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (unknown, "of the tool 'unknown' cannot be described: name 'Nowhere' is not defined"),
        (nameless, "must be one that has a name"),
        (untyped, "needs a type"),
        (mute, "has no docstring"),
        (odd, "cannot be described"),
        (endless, "a type holds itself"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function: object, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        tool(function)  # type: ignore[call-overload]


# --- Files --------------------------------------------------------------------------------------------------------

FILE = 'from turnkeeper import tool\n\n@tool\ndef {name}() -> str:\n    """Says something."""\n    return {said!r}\n'


def write(folder: Path, file: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_text(text)
    return path


def custom_tools(home: Path) -> CustomTools:
    """Loads every file, whenever it was written."""
    return CustomTools(ToolTrust({"HOME": str(home), "TURNKEEPER_TRUST": "1"}, started_ns=2**63))


def names(loaded: LoadedTools) -> list[str]:
    return sorted(tool.name for tool in loaded.tools)


async def test_files_are_found_in_both_folders_and_nowhere_else(tmp_path: Path) -> None:
    write(tmp_path / "tool", "a.py", FILE.format(name="one", said="1"))
    write(tmp_path / "tools", "b.py", FILE.format(name="two", said="2"))
    write(tmp_path / "tools", "_c.py", FILE.format(name="three", said="3"))
    write(tmp_path / "tools", "d.ts", "export default 4")
    write(tmp_path, "e.py", FILE.format(name="five", said="5"))
    assert names(await custom_tools(tmp_path).load([tmp_path, tmp_path / "missing"])) == ["one", "two"]
    assert not list(tmp_path.rglob("__pycache__"))


async def test_a_file_that_cannot_be_loaded_is_named_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "tool", "good.py", FILE.format(name="good", said="1"))
    broken = {"a.py": "import not_there", "b.py": "def", "c.py": "raise SystemExit(3)", "d.py": "1 / 0", "e.py": "\xff"}
    for name, text in broken.items():
        write(tmp_path / "tool", name, text).write_bytes(text.encode("latin-1"))
    write(tmp_path / "tool", "f.py", FILE.format(name="bad", said="1").replace('"""Says something."""', "pass"))
    os.mkfifo(tmp_path / "tool/g.py")
    custom = custom_tools(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert names(await custom.load([tmp_path])) == ["good"]
        assert names(await custom.load([tmp_path])) == ["good"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 7
    assert said[0] == (
        f"the tools in {tmp_path / 'tool/a.py'} are left out: ModuleNotFoundError: No module named 'not_there'"
    )


async def test_a_file_is_loaded_once_and_again_when_it_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "tool", "a.py", FILE.format(name="one", said="first"))
    custom = custom_tools(tmp_path)
    [first] = (await custom.load([tmp_path])).tools
    assert (await custom.load([tmp_path])).tools == (first,)
    path.write_text(FILE.format(name="one", said="the second"))
    [second] = (await custom.load([tmp_path])).tools
    assert second is not first
    path.unlink()
    assert await custom.load([tmp_path]) == ((), ())


async def test_of_two_tools_with_one_name_the_later_directory_wins(tmp_path: Path, desk: Desk) -> None:
    write(tmp_path / "far/tool", "a.py", FILE.format(name="one", said="far"))
    write(tmp_path / "near/tool", "a.py", FILE.format(name="one", said="near"))
    desk.toolbox = Toolbox((await custom_tools(tmp_path).load([tmp_path / "far", tmp_path / "near"])).tools)
    assert (await desk.run("one")).output == "near"


class NoFunction:
    """A class."""


def yields() -> Any:
    """Yield."""
    yield "one"


async def yields_later() -> Any:
    """Yield later."""
    yield "one"


@tool
def ready() -> str:
    """Is a tool."""
    return "ready"


decorate: Any = tool  # As a program does that no type checker has seen.


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: decorate(permission=3), "@tool(permission=...) takes text, not 3"),
        (lambda: decorate(name=("a",)), "@tool(name=...) takes text, not ('a',)"),
        (lambda: decorate(description=b"x"), "@tool(description=...) takes text, not b'x'"),
        (lambda: decorate(read_only="yes"), "@tool(read_only=...) takes True or False, not 'yes'"),
        (lambda: decorate(asks_first=1), "@tool(asks_first=...) takes True or False, not 1"),
        (
            lambda: decorate(NoFunction),
            "@tool is for functions, and NoFunction is a class; decorate a function that uses",
        ),
        (lambda: decorate(yields), "yields is a generator; collect what it yields, and return it as one text"),
        (lambda: decorate(yields_later), "yields_later is a generator; collect what it yields"),
        (lambda: decorate("tide"), "@tool is for functions, and not for 'tide'; write @tool above a function"),
        (lambda: decorate(ready), "'ready' is a tool already; use @tool once"),
    ],
)
def test_a_wrong_use_of_the_decorator_is_a_type_error_that_says_what_to_do(make: Any, said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        make()
