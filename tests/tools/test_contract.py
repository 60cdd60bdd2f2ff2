"""What holds for every tool, whatever it does. A tool is tested here by being listed in BUILT_IN."""

import os
import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from desk import Desk
from web_site import Page, site

from turnkeeper.core.limits import DIFF_BYTES_MAX, OUTPUT_BYTES_MAX, RECALL_SNIPPET_CHARS
from turnkeeper.core.recall import RecallHit
from turnkeeper.model.request import ToolDefinition
from turnkeeper.model.skill import Skill
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value
from turnkeeper.tools import BUILT_IN, load
from turnkeeper.tools.delegation import TaskResult
from turnkeeper.tools.mcp_resources import resource_tools
from turnkeeper.tools.schema import schema_of
from turnkeeper.tools.tool import AnyTool, Denied, Rejected, Tool, ToolContext, ToolFailure, ToolOutput
from turnkeeper.tools.toolbox import Toolbox

PAGE = "http://page"
"""Stands for the address of a server that answers with a page of HTML."""

PATCH = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch"

# One input for each tool that works in a directory with the file a.txt that holds "one".
WORKING: dict[str, dict[str, object]] = {
    "apply_patch": {"patchText": PATCH},
    "bash": {"command": "true"},
    "edit": {"filePath": "a.txt", "oldString": "one", "newString": "two"},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "one"},
    "invalid": {"tool": "reed", "error": "there is none"},
    "list": {},
    "multiedit": {"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "two"}]},
    "jobs": {"action": "list"},
    "plan_exit": {},
    "question": {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]},
    "read": {"filePath": "a.txt"},
    "recall": {"query": "one"},
    "skill": {"name": "tide"},
    "task": {"description": "Look", "prompt": "look", "subagent_type": "helper"},
    "todoread": {},
    "todowrite": {"todos": []},
    "webfetch": {"url": PAGE},
    "write": {"filePath": "b.txt", "content": "x"},
}
# And inputs that fit the schema and cannot work.
FAILING: dict[str, list[dict[str, object]]] = {
    "apply_patch": [
        {"patchText": "nothing"},
        {"patchText": PATCH.replace("-one", "-three")},
        {"patchText": PATCH.replace("a.txt", "missing")},
        {"patchText": PATCH.replace("a.txt", "pipe")},
        {"patchText": "*** Begin Patch\n*** Add File: a.txt/b\n+x\n*** End Patch"},
        {"patchText": "*** Begin Patch\n*** Delete File: .\n*** End Patch"},
    ],
    "bash": [{"command": "  "}, {"command": "ls", "workdir": "missing"}],
    "edit": [
        {"filePath": "missing", "oldString": "a", "newString": "b"},
        {"filePath": "a.txt", "oldString": "a", "newString": "a"},
        {"filePath": "a.txt", "oldString": "nothing like it", "newString": "b"},
        {"filePath": "a.txt", "oldString": "", "newString": "b"},
        {"filePath": ".", "oldString": "a", "newString": "b"},
        {"filePath": "pipe", "oldString": "a", "newString": "b"},
        {"filePath": "a\0b", "oldString": "a", "newString": "b"},
    ],
    "glob": [{"pattern": "[a"}, {"pattern": "*", "path": "missing"}, {"pattern": "*", "path": "a.txt"}],
    "grep": [{"pattern": "("}, {"pattern": "a", "path": "missing"}, {"pattern": "a", "include": "{a"}],
    "invalid": [],
    "list": [{"path": "missing"}, {"path": "a.txt"}, {"ignore": ["{a"]}],
    "multiedit": [
        {"filePath": "missing", "edits": [{"oldString": "a", "newString": "b"}]},
        {"filePath": "a.txt", "edits": []},
        {"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "one"}]},
        {"filePath": "a.txt", "edits": [{"oldString": "", "newString": "b"}]},
        {"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "a\0b"}]},
        {"filePath": ".", "edits": [{"oldString": "a", "newString": "b"}]},
    ],
    "jobs": [{"action": "read"}, {"action": "read", "id": "job1"}, {"action": "end", "id": "job1"}],
    "plan_exit": [],
    "question": [
        {"questions": []},
        {"questions": [{"question": " "}]},
        {"questions": [{"question": "Why?", "custom": False}]},
        {"questions": [{"question": "Why?"}] * 11},
    ],
    "read": [
        {"filePath": "missing"},
        {"filePath": "a.txt", "offset": 9},
        {"filePath": "pipe"},
        {"filePath": "x" * 300},
        {"filePath": "a\0b"},
    ],
    "recall": [{"handle": "r0123456789"}, {"handle": "r0123456789", "query": "one"}, {"handle": " "}],
    "skill": [{"name": "wind"}, {"name": ""}],
    "task": [{"description": "Look", "prompt": "look", "subagent_type": "nobody"}],
    "todoread": [],
    "todowrite": [],
    "webfetch": [
        {"url": "ftp://page"},
        {"url": "http://"},
        {"url": "http://[::1"},
        {"url": "http://127.0.0.1:1"},
        {"url": "http://127.0.0.1:99999"},
        {"url": f"{PAGE}/missing"},
        {"url": PAGE, "format": "pdf"},
    ],
    "write": [
        {"filePath": ".", "content": "x"},
        {"filePath": "a.txt/b", "content": "x"},
        {"filePath": "pipe", "content": ""},
    ],
}


ASKS_NOTHING = {"invalid"}
"""Tools that do nothing, so that there is nothing to ask."""

# Inputs whose whole output would be more than a model is shown, in a directory with many and large files.
LARGE: dict[str, dict[str, object]] = {
    "apply_patch": {"patchText": PATCH.replace("-one", "".join(f"+{'x' * 90}{n}\n" for n in range(9000)) + "-one")},
    "bash": {"command": "yes one | head -n 100000"},
    "edit": {"filePath": "a.txt", "oldString": "one", "newString": "y\n" * 100_000},
    "glob": {"pattern": "many/*"},
    "grep": {"pattern": "one"},
    "invalid": {"tool": "x" * 100_000, "error": "y" * 100_000},
    "jobs": {"action": "list"},
    "list": {"path": "many"},
    "multiedit": {"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "y\n" * 100_000}]},
    "plan_exit": {},
    "question": {"questions": [{"question": "Why? " * 200}] * 10},
    "read": {"filePath": "large.txt"},
    "recall": {"query": "one"},
    "skill": {"name": "large"},
    "task": {"description": "Look", "prompt": "look " * 100_000, "subagent_type": "helper"},
    "todoread": {},
    "todowrite": {"todos": [{"content": "x" * 1000}] * 200},
    "webfetch": {"url": f"{PAGE}/large"},
    "write": {"filePath": "b.txt", "content": "y\n" * 100_000},
}


@pytest.fixture(params=sorted(BUILT_IN))
def tool(request: pytest.FixtureRequest) -> AnyTool:
    return load([request.param])[0]


@pytest.fixture(autouse=True)
def files(desk: Desk) -> None:
    (desk.directory / "a.txt").write_text("one\n")
    desk.know("a.txt")
    large = Skill(name="large", location="/s/SKILL.md", content="Look.\n" * 100_000)
    desk.services = msgspec.structs.replace(
        desk.services, skills=(Skill(name="tide", location="/s/SKILL.md", content="Look."), large)
    )
    os.mkfifo(desk.directory / "pipe")


async def call(desk: Desk, name: str, input: dict[str, object]) -> ToolOutput:
    """One call; the page that it may fetch is there."""
    if PAGE not in str(input.get("url")):
        return await desk.run(name, **input)
    pages = {"/": Page(b"<h1>one</h1>"), "/large": Page(b"<p>one</p>" * 100_000)}
    raised: Exception | None = None
    async with site(pages) as served:
        try:
            return await desk.run(name, **{**input, "url": str(input["url"]).replace(PAGE, served.url)})
        except Exception as error:
            raised = error  # Raised outside: the server's task group would wrap it.
    raise raised


def test_a_tool_goes_by_the_name_it_is_listed_under(tool: AnyTool) -> None:
    assert BUILT_IN[tool.name].startswith(f"turnkeeper.tools.{tool.name}:")
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,63}", tool.name)
    assert tool.name in WORKING
    assert tool.name in FAILING


def test_a_tool_says_what_it_does(tool: AnyTool) -> None:
    assert len(tool.description) > 40
    assert tool.description == tool.description.strip()


def test_every_text_belongs_to_a_tool() -> None:
    texts = Path(__file__).parents[2] / "src/turnkeeper/tools/texts"
    of_mcp = [tool.name for tool in resource_tools(())]
    assert sorted(file.stem for file in texts.iterdir()) == sorted([*BUILT_IN, *of_mcp])


def test_a_schema_is_plain_and_describes_every_parameter(tool: AnyTool) -> None:
    schema: Mapping[str, Any] = tool.definition().schema
    assert schema["type"] == "object"
    assert set(schema["required"]) <= set(schema["properties"])
    for name, parameter in schema["properties"].items():
        assert parameter["description"], name
        assert "type" in parameter, name
    text = msgspec.json.encode(schema).decode()
    assert not re.search(r'"(\$ref|\$defs|anyOf|title|null)"', text)


def test_a_schema_is_the_same_every_time(tool: AnyTool) -> None:
    schema_of.cache_clear()
    first = msgspec.json.encode(tool.definition())
    schema_of.cache_clear()
    assert msgspec.json.encode(tool.definition()) == first


async def test_a_call_that_works_gives_a_title_and_an_output(tool: AnyTool, desk: Desk) -> None:
    output = await call(desk, tool.name, WORKING[tool.name])
    assert output.title
    assert output.output
    assert isinstance(output.metadata["truncated"], bool)
    msgspec.json.encode(output)


async def test_a_call_asks_by_its_tools_permission(tool: AnyTool, desk: Desk) -> None:
    await call(desk, tool.name, WORKING[tool.name])
    assert [permission for permission, _, _ in desk.asked] == ([] if tool.name in ASKS_NOTHING else [tool.permission])


async def test_a_denied_call_does_nothing(tool: AnyTool, desk: Desk) -> None:
    desk.refuse(tool.permission)
    before = listing(desk.directory)
    with pytest.raises(Denied) if tool.name not in ASKS_NOTHING else nullcontext():
        await call(desk, tool.name, WORKING[tool.name])
    assert (listing(desk.directory), desk.todos) == (before, ())


async def test_a_rejected_call_does_nothing(tool: AnyTool, desk: Desk) -> None:
    desk.refuse(tool.permission, action="ask")
    before = listing(desk.directory)
    with pytest.raises(Rejected) if tool.name not in ASKS_NOTHING else nullcontext():
        await call(desk, tool.name, WORKING[tool.name])
    assert (listing(desk.directory), desk.todos) == (before, ())


async def test_a_read_only_tool_changes_nothing(tool: AnyTool, desk: Desk) -> None:
    before = listing(desk.directory)
    await call(desk, tool.name, WORKING[tool.name])
    if tool.read_only:
        assert listing(desk.directory) == before


@pytest.mark.parametrize(
    ("name", "input"),
    [(name, input) for name, inputs in FAILING.items() for input in inputs],
    ids=lambda value: str(value)[:60],
)
async def test_a_call_that_cannot_work_fails_in_words(name: str, input: dict[str, object], desk: Desk) -> None:
    before = listing(desk.directory)
    with pytest.raises(ToolFailure) as failure:
        await call(desk, name, input)
    assert str(failure.value).strip()
    assert listing(desk.directory) == before


async def test_an_input_that_does_not_fit_fails_before_anything_is_asked(tool: AnyTool, desk: Desk) -> None:
    if tool.definition().schema["required"]:
        with pytest.raises(ToolFailure, match="Rewrite the input"):
            await desk.toolbox.run(tool.name, {}, desk.context())
    with pytest.raises(ToolFailure, match="must be a JSON object"):
        await desk.toolbox.run(tool.name, "text", desk.context())
    assert desk.asked == []


async def test_a_call_that_is_cancelled_while_it_asks_does_nothing(tool: AnyTool, desk: Desk) -> None:
    before = (listing(desk.directory), children())  # Another test's server may be a child of this worker.
    with anyio.CancelScope() as scope:
        desk.before_answer = scope.cancel
        await call(desk, tool.name, WORKING[tool.name])
    assert children() <= before[1]
    assert listing(desk.directory) == before[0]


async def test_a_large_result_is_bounded_and_the_rest_is_kept(tool: AnyTool, desk: Desk) -> None:
    (desk.directory / "large.txt").write_text("one\n" * 200_000)
    (desk.directory / "many").mkdir()
    for number in range(300):
        (desk.directory / f"many/{number}.txt").write_text("one\n")
    desk.todos = tuple(Todo(content="x" * 1000, status="pending", priority="low") for _ in range(200))
    desk.hits = [
        RecallHit(handle="r0123456789", label="l", message_id="m", total=9, snippet="x" * RECALL_SNIPPET_CHARS)
        for _ in range(20)
    ]
    desk.task_result = TaskResult(state="completed", text="one\n" * 100_000)
    output = await call(desk, tool.name, LARGE[tool.name])
    assert len(output.output.encode()) <= OUTPUT_BYTES_MAX + 1024
    assert len(msgspec.json.encode(output.metadata)) <= 3 * DIFF_BYTES_MAX


class Shout(Value):
    """The rehearsal's parameters."""

    words: str


async def shout(arguments: Shout, context: ToolContext) -> ToolOutput:
    return ToolOutput(title="shout", output=arguments.words.upper())


async def test_a_tool_from_elsewhere_works_with_no_other_edit(desk: Desk) -> None:
    tool = Tool(name="shout", description="Shouts.", parameters=Shout, execute=shout, permission="shout")
    desk.toolbox = Toolbox([*load(), tool])
    assert await desk.run("shout", words="hi") == ToolOutput(title="shout", output="HI", metadata={"truncated": False})
    schema = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
    definition = ToolDefinition(name="shout", description="Shouts.", schema=schema)
    assert definition in desk.toolbox.definitions()


def listing(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(directory.rglob("*"))}


def children() -> set[str]:
    """The processes below this one that still run."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    return {child for task in tasks.iterdir() for child in (task / "children").read_text().split()}
