"""Tools in turns: what each call did is on record, and what lives longer than a call lives as long as it should."""

import os
import sys
import threading
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio import to_thread
from web_site import Page, site

import turnkeeper
from turnkeeper.api import Turnkeeper
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.prompt import FileInput, Prompt, TextInput
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import allow_all
from turnkeeper.run.runtime import Settings
from turnkeeper.testing.harness import a_tool, echo
from turnkeeper.tools import BUILT_IN

SERVER = Path(__file__).parents[1] / "support/language_server.py"

# One call for each tool, in an order in which each works; all but apply_patch, which has a model of its own, and
# those that need a user or another agent.
CALLS: list[tuple[str, dict[str, object]]] = [
    ("write", {"filePath": "a.txt", "content": "one\n"}),
    ("read", {"filePath": "a.txt"}),
    ("edit", {"filePath": "a.txt", "oldString": "one", "newString": "two"}),
    ("multiedit", {"filePath": "a.txt", "edits": [{"oldString": "two", "newString": "three"}]}),
    ("bash", {"command": "cat a.txt"}),
    ("glob", {"pattern": "*.txt"}),
    ("grep", {"pattern": "three"}),
    ("jobs", {"action": "list"}),
    ("list", {}),
    ("todowrite", {"todos": [{"content": "rest"}]}),
    ("todoread", {}),
    ("recall", {"query": "three"}),
    ("invalid", {"tool": "reed", "error": "none"}),
    ("skill", {"name": "tide"}),
    ("webfetch", {"url": "SITE/"}),
]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment without settings of the person who runs the tests."""
    own = {"HOME": str(tmp_path / "home"), "TURNKEEPER_DATA": str(tmp_path / "data"), "TURNKEEPER_TRUST": "1"}
    return {"PATH": os.environ["PATH"], **own}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def configure(project: Path, **settings: object) -> None:
    (project / "turnkeeper.json").write_bytes(msgspec.json.encode(settings))


async def call(
    project: Path,
    environ: dict[str, str],
    *calls: tuple[str, dict[str, object]],
    store: str = "memory:",
    again: str = "",
) -> list[ToolPart]:
    """The calls of one session, each in a turn of its own, as they are on record."""
    script = Scripted()
    for name, input in calls:
        script = script.calls_raw(name, msgspec.json.encode(input).decode()).then()
    settings = Settings(transport=lambda endpoint: script.says("Done."), titles=False, environ=environ)
    async with turnkeeper.open(store, directory=project, settings=settings) as tk:
        session_id = again or (await tk.create()).id
        await tk.prompt(session_id, "go")
        await tk.wait(session_id)
        return await recorded(tk, session_id)


async def recorded(tk: Turnkeeper, session_id: str) -> list[ToolPart]:
    return [
        part
        async for message in tk.iter_messages(session_id, reverse=False)
        for part in message.parts
        if isinstance(part, ToolPart)
    ]


async def test_every_call_is_recorded_with_all_that_came_of_it(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    configure(project, webfetch={"private": True})
    (project / ".turnkeeper/skills").mkdir(parents=True)
    (project / ".turnkeeper/skills/SKILL.md").write_text("---\nname: tide\n---\nLook.")
    assert {name for name, _ in CALLS} | {"apply_patch"} >= set(BUILT_IN) - {"question", "plan_exit", "task"}
    async with site({"/": Page(b"<p>hello</p>")}) as served:
        calls = [
            (name, {k: str(v).replace("SITE", served.url) if k == "url" else v for k, v in input.items()})
            for name, input in CALLS
        ]
        store = f"sqlite:{tmp_path / 'store.db'}"
        parts = await call(project, environ, *calls, store=store)
    assert [part.tool for part in parts] == [name for name, _ in CALLS]
    for part, (_, input) in zip(parts, calls, strict=True):
        state = part.state
        assert isinstance(state, ToolCompleted), state
        assert state.input == input
        assert state.title
        assert state.output
        assert isinstance(state.metadata["truncated"], bool)
        assert state.time.start <= state.time.end
    async with turnkeeper.open(store, directory=project) as tk:
        assert await recorded(tk, parts[0].session_id) == parts


async def test_after_a_restart_a_file_must_be_read_again(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'store.db'}"
    write: tuple[str, dict[str, object]] = ("write", {"filePath": "a.txt", "content": "one\n"})
    read: tuple[str, dict[str, object]] = ("read", {"filePath": "a.txt"})
    [written] = await call(project, environ, write, store=store)
    edit: tuple[str, dict[str, object]] = ("edit", {"filePath": "a.txt", "oldString": "one", "newString": "two"})
    parts = await call(project, environ, edit, read, edit, store=store, again=written.session_id)
    _, refused, _, edited = (part.state for part in parts)
    assert isinstance(refused, ToolError)
    assert "was not read in this session yet" in refused.error
    assert isinstance(edited, ToolCompleted)
    assert (project / "a.txt").read_text() == "two\n"


async def test_what_one_session_read_is_not_read_by_another(project: Path, environ: dict[str, str]) -> None:
    (project / "a.txt").write_text("one\n")
    script = Scripted().calls("read", filePath="a.txt").then().says("Read.").then()
    script = script.calls("write", filePath="a.txt", content="two\n").then().says("Tried.")
    settings = Settings(transport=lambda endpoint: script, titles=False, environ=environ)
    async with turnkeeper.open("memory:", directory=project, settings=settings) as tk:
        for _ in range(2):
            session = await tk.create()
            await tk.prompt(session.id, "go")
            await tk.wait(session.id)
        [part] = await recorded(tk, session.id)
    assert isinstance(part.state, ToolError)
    assert (project / "a.txt").read_text() == "one\n"


async def test_a_file_that_the_user_attached_counts_as_read(project: Path, environ: dict[str, str]) -> None:
    (project / "a.txt").write_text("one\n")
    script = Scripted().calls("write", filePath="a.txt", content="two\n").then().says("Done.")
    settings = Settings(transport=lambda endpoint: script, titles=False, environ=environ)
    async with turnkeeper.open("memory:", directory=project, settings=settings) as tk:
        session = await tk.create()
        file = FileInput(mime="text/plain", url=(project / "a.txt").as_uri())
        await tk.prompt(session.id, Prompt(parts=(TextInput(text="go"), file)))
        await tk.wait(session.id)
    assert (project / "a.txt").read_text() == "two\n"


async def test_formatters_and_language_servers_come_from_the_configuration(
    project: Path, environ: dict[str, str]
) -> None:
    configure(
        project,
        formatter={"mine": {"command": ["sed", "-i", "s/one/BAD/", "$FILE"], "extensions": [".x"]}},
        lsp={"mine": {"command": [sys.executable, str(SERVER), "publish"], "extensions": [".x"]}},
    )
    [part] = await call(project, environ, ("write", {"filePath": "a.x", "content": "one\n"}))
    assert isinstance(part.state, ToolCompleted)
    assert "mine formatted the file after the edit:" in part.state.output
    assert "ERROR [1:1] BAD is bad" in part.state.output
    assert (project / "a.x").read_text() == "BAD\n"


async def test_a_language_server_is_told_of_a_file_when_it_is_read(project: Path, environ: dict[str, str]) -> None:
    record = project / "record"
    server = [sys.executable, str(SERVER), "publish", str(record)]
    configure(project, lsp={"mine": {"command": server, "extensions": [".x"]}})
    (project / "a.x").write_text("one\n")
    # The errors of the second file come after what was said of the first.
    await call(project, environ, ("read", {"filePath": "a.x"}), ("write", {"filePath": "b.x", "content": "BAD\n"}))
    assert record.read_text().split().count("textDocument/didOpen") == 2


async def test_custom_tools_come_from_the_directories_of_settings(project: Path, environ: dict[str, str]) -> None:
    text = (
        'from turnkeeper import tool\n\n@tool\ndef {name}() -> str:\n    """Says its place."""\n    return "{said}"\n'
    )
    places = {
        project / ".turnkeeper/tools": {"near": "near", "read": "mine"},
        project / ".opencode/tool": {"near": "far", "other": "other"},
        Path(environ["HOME"]) / ".config/turnkeeper/tool": {"near": "home", "homely": "home"},
    }
    for folder, tools in places.items():
        folder.mkdir(parents=True)
        for name, said in tools.items():
            (folder / f"{name}.py").write_text(text.format(name=name, said=said))
    names = ("near", "read", "other", "homely")
    parts = await call(project, environ, *((name, {}) for name in names))
    outputs = [part.state.output for part in parts if isinstance(part.state, ToolCompleted)]
    assert outputs == ["near", "mine", "other", "home"]


@pytest.mark.parametrize(("model", "is_by_patch"), [("gpt-5", True), ("gpt-4.1", False)])
async def test_a_model_is_given_the_editing_tools_that_suit_it(
    project: Path, environ: dict[str, str], model: str, is_by_patch: bool
) -> None:
    provider = {
        "protocol": "openai-chat",
        "options": {"apiKey": "x", "baseURL": "http://127.0.0.1:9/v1"},
        "models": {model: {}},
    }
    configure(project, provider={"own": provider}, model=f"own/{model}")
    script = Scripted().says("Done.")
    settings = Settings(transport=lambda endpoint: script, titles=False, environ=environ)
    async with turnkeeper.open("memory:", directory=project, settings=settings) as tk:
        session = await tk.create()
        await tk.prompt(session.id, "go")
        await tk.wait(session.id)
    names = {tool.name for tool in script.requests[0].tools}
    assert ("apply_patch" in names, "edit" in names) == (is_by_patch, not is_by_patch)
    assert "invalid" not in names


async def test_no_tool_opens_keys_trust_or_approvals_whatever_the_rules_allow(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    (home / ".config/opencode").mkdir(parents=True)
    data.mkdir()
    secrets = [data / "auth.json", data / "approvals.json", home / ".config/opencode/auth.json"]
    for secret in secrets:
        secret.write_text("[]" if secret.name == "approvals.json" else '{"hidden": {"type": "other", "key": "SECRET"}}')
        secret.chmod(0o600)
    (project / "linked").symlink_to(data / "auth.json")
    (project / "hard").hardlink_to(data / "auth.json")
    new = data / "trust.json"
    configure(project, permission="allow")
    opened = [*secrets, project / "linked", project / "hard"]
    reads: list[tuple[str, dict[str, object]]] = [("read", {"filePath": str(one)}) for one in opened]
    calls: list[tuple[str, dict[str, object]]] = [
        *reads,
        ("grep", {"pattern": "SECRET", "path": str(data / "auth.json")}),
        ("write", {"filePath": str(new), "content": "[]"}),
        ("edit", {"filePath": str(new), "oldString": "", "newString": "[]"}),
        ("multiedit", {"filePath": str(new), "edits": [{"oldString": "", "newString": "[]"}]}),
        ("grep", {"pattern": "SECRET", "path": str(tmp_path)}),
    ]
    *refused, searched = [part.state for part in await call(project, environ, *calls)]
    for state in refused:
        assert isinstance(state, ToolError)
        assert "No tool may open it" in state.error
    assert isinstance(searched, ToolCompleted)
    assert "auth.json" not in searched.output
    assert "linked" not in searched.output
    assert "hard:" not in searched.output
    assert not new.exists()


async def test_a_command_that_a_rule_denies_is_not_asked_about_first(project: Path, environ: dict[str, str]) -> None:
    configure(project, permission={"bash": {"*": "ask", "rm *": "deny"}, "edit": "ask"})
    (project / "one.txt").touch()
    [part] = await call(project, environ, ("bash", {"command": "rm one.txt"}))
    assert isinstance(part.state, ToolError)
    assert part.state.error.startswith("This call is denied by a rule; the user was not asked")


@pytest.mark.parametrize("name", ["turnkeeper/tools/evil.py", "turnkeeper/turnkeeper.json", "opencode/config.json"])
@pytest.mark.parametrize("where", ["home/.config", "elsewhere", "project/settings"])
async def test_the_users_own_settings_and_tools_are_asked_about_also_where_everything_is_allowed(
    project: Path, environ: dict[str, str], tmp_path: Path, where: str, name: str
) -> None:
    configure(project, permission="allow")
    if where != "home/.config":
        environ["XDG_CONFIG_HOME"] = str(tmp_path / where)
    other, own = tmp_path / where / "other/notes.txt", tmp_path / where / name
    writes: list[tuple[str, dict[str, object]]] = [
        ("write", {"filePath": str(one), "content": "{}"}) for one in (other, own)
    ]
    allowed, asked = [part.state for part in await call(project, environ, *writes)]
    assert isinstance(allowed, ToolCompleted)
    assert isinstance(asked, ToolError)
    assert "nobody could be asked" in asked.error
    assert (other.exists(), own.exists()) == (True, False)


@pytest.mark.parametrize("written", ["~/notes/*.txt", "HERE/home/notes/*.txt", "../home/notes/*.txt", "$HOME/notes/*"])
@pytest.mark.parametrize("action", ["allow", "deny"])
async def test_a_rule_about_files_outside_the_project_may_be_written_in_any_way(
    project: Path, environ: dict[str, str], tmp_path: Path, written: str, action: str
) -> None:
    pattern = written.replace("HERE", str(tmp_path))
    rules = {"*": "deny" if action == "allow" else "allow", pattern: action}
    configure(project, permission={"external_directory": "allow", "edit": rules, "read": rules})
    notes = tmp_path / "home/notes/one.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("one")
    calls: list[tuple[str, dict[str, object]]] = [
        ("read", {"filePath": str(notes)}),
        ("write", {"filePath": str(notes.with_name("two.txt")), "content": "two"}),
    ]
    kinds = {type(part.state) for part in await call(project, environ, *calls)}
    assert kinds == {ToolCompleted if action == "allow" else ToolError}


@pytest.mark.parametrize("is_broken", [False, True])
async def test_a_tool_prepares_once_the_model_has_begun_to_write_a_call(
    project: Path, environ: dict[str, str], is_broken: bool
) -> None:
    prepared = threading.Event()

    def prepare() -> None:
        prepared.set()
        if is_broken:
            raise ValueError("cannot prepare")

    ready = msgspec.structs.replace(a_tool("echo", echo), prepare=prepare)
    script = Scripted().calls("echo", text="hi").then().says("Done.")
    settings = Settings(
        transport=lambda endpoint: script, titles=False, environ=environ, tools=lambda: (ready,), ask=allow_all
    )
    with anyio.fail_after(60):
        async with turnkeeper.open("memory:", directory=project, settings=settings) as tk:
            session_id = (await tk.create()).id
            await tk.prompt(session_id, "go")
            assert await to_thread.run_sync(prepared.wait, 60)
            await tk.wait(session_id)
            [part] = await recorded(tk, session_id)
            assert isinstance(part.state, ToolCompleted)
