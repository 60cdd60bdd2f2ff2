"""The sandbox in real turns: the agent's rules choose the mode, and the user's answers widen it."""

from pathlib import Path

import pytest
from confined import needs_kernel

from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage
from turnkeeper.tools import load

pytestmark = needs_kernel
ALLOWED: JsonObject = {"permission": "allow"}
BASH = tuple(load(["bash"]))


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "SHELL": "/bin/bash", "TMPDIR": str(tmp_path)}


async def outputs(stage: Stage, session: str) -> list[str]:
    """What the calls of a session gave."""
    parts = [part for _, found in await stage.turns(session) for part in found if isinstance(part, ToolPart)]
    return [part.state.output for part in parts if isinstance(part.state, ToolCompleted)]


@pytest.mark.parametrize(
    ("agent", "settings", "inside", "outside"),
    [
        ("build", {}, True, False),
        ("plan", {}, False, False),
        ("plan", {"permission": {"edit": "allow"}}, False, False),
        ("plan", {"agent": {"plan": {"permission": {"edit": "allow"}}}}, True, False),
        ("build", {"sandbox": "read-only"}, False, False),
        ("build", {"sandbox": "off"}, True, True),
    ],
)
async def test_what_a_command_changes_depends_on_the_agent_and_the_settings(
    play: Play, tmp_path: Path, home: dict[str, str], agent: str, settings: JsonObject, inside: bool, outside: bool
) -> None:
    (tmp_path / "home/.config/turnkeeper").mkdir(parents=True)
    (tmp_path / "home/.config/turnkeeper/turnkeeper.json").write_text(str(settings).replace("'", '"'))
    # What a program does with its own code, no rule about text can see.
    writes = "python3 -c \"open('inside', 'w'); open('../outside', 'w')\"; true"
    script = Scripted().calls("bash", command=writes).then().says("Done.")
    async with play(script, tools=BASH, environ=home) as stage:
        session = await stage.session()
        await stage.ask(session, "go", agent=agent)
        assert len(await outputs(stage, session)) == 1
    assert ((tmp_path / "place/inside").exists(), (tmp_path / "outside").exists()) == (inside, outside)


async def test_a_project_cannot_switch_its_own_sandbox_off(play: Play, tmp_path: Path, home: dict[str, str]) -> None:
    script = Scripted().calls("bash", command="touch ../outside").then().says("Done.")
    async with play(script, tools=BASH, environ=home, config={**ALLOWED, "sandbox": "off"}) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [output] = await outputs(stage, session)
    assert "the sandbox may be the cause (mode workspace: writable are" in output
    assert not (tmp_path / "outside").exists()


async def test_a_directory_that_is_approved_for_good_stays_writable(
    play: Play, tmp_path: Path, home: dict[str, str]
) -> None:
    asked: list[str] = []

    async def always(request: PermissionRequest) -> Reply:
        asked.append(request.permission)
        return Reply(answer="always")

    (tmp_path / "other").mkdir()
    script = Scripted()
    for name in ("one", "two"):
        script = script.calls("bash", command=f"touch ../other/{name}").then()
    async with play(script.says("Done."), tools=BASH, environ=home, ask=always) as stage:
        await stage.ask(await stage.session(), "go")
    assert asked == ["external_directory"]
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == ["one", "two"]


async def test_the_directory_for_temporary_files_is_used_without_a_question(
    play: Play, tmp_path: Path, home: dict[str, str]
) -> None:
    asked: list[str] = []

    async def reject(request: PermissionRequest) -> Reply:
        asked.append(request.permission)
        return Reply(answer="reject")

    script = Scripted().calls("bash", command="echo draft > $TMPDIR/a && cat $TMPDIR/a").then().says("Done.")
    async with play(script, tools=BASH, environ=home, ask=reject) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert await outputs(stage, session) == ["draft"]
    assert asked == []


async def test_the_user_is_asked_about_a_command_outside_the_sandbox(
    play: Play, tmp_path: Path, home: dict[str, str]
) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    async def once(request: PermissionRequest) -> Reply:
        asked.append((request.permission, request.patterns))
        return Reply(answer="once")

    script = Scripted().calls("bash", command="touch ~/made", outside=True).then().says("Done.")
    async with play(script, tools=BASH, environ=home, ask=once) as stage:
        await stage.ask(await stage.session(), "go")
    assert asked[-1] == ("sandbox", ("touch ~/made",))
    assert (tmp_path / "home/made").exists()
