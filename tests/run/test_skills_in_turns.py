"""Skills inside whole turns: the list in the baseline, news of it, and a skill that is loaded."""

from pathlib import Path

import pytest

from turnkeeper.core.prefix import reuse_percent
from turnkeeper.model.event import EpochStarted, TurnStarted
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.request import ModelRequest, SystemTurn
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import reject_all
from turnkeeper.testing.harness import CONFIG, Play, Stage
from turnkeeper.testing.harness import TOOLS as USUAL
from turnkeeper.tools.read import READ
from turnkeeper.tools.skill import SKILL

TOOLS = (*USUAL, SKILL, READ)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder.resolve()


def put(folder: Path, name: str, description: str = "Tides") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_text(f"---\nname: {name}\ndescription: {description}\n---\nLook at the moon.\n")
    return file


def news(request: ModelRequest) -> list[str]:
    return [one.text for one in request.messages if isinstance(one, SystemTurn)]


def listed(request: ModelRequest) -> list[str]:
    return [text for text in request.system if "<available_skills>" in text]


async def calls(stage: Stage, session: str) -> list[ToolPart]:
    return [part for _, parts in await stage.turns(session) for part in parts if isinstance(part, ToolPart)]


async def test_the_model_is_told_of_skills_once_and_of_a_changed_list_as_news(play: Play, here: Path) -> None:
    file = put(here / ".turnkeeper/skills/tide", "tide")
    script = Scripted().says("ok").forever()
    async with play(script, tools=TOOLS) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        await stage.ask(session, "two")
        put(here / ".claude/skills/reef", "reef", "Reefs")
        await stage.ask(session, "three")
        file.write_text("---\nname: tide\n---\nOnly the text changed, and nothing is described.\n")
        (here / ".claude/skills/reef/SKILL.md").unlink()
        await stage.ask(session, "four")
        started = [one for one in await stage.events(session) if isinstance(one, TurnStarted)]
        assert len([one for one in await stage.events(session) if isinstance(one, EpochStarted)]) == 1
    first, second, third, fourth = script.requests
    [text] = listed(first)
    assert f"<location>{file}</location>" in text
    assert all(one.system == first.system for one in script.requests)
    assert all(one.tools == first.tools for one in script.requests)
    assert (news(first), news(second)) == ([], [])
    [told] = news(third)
    assert told.startswith("The skills that you can load with the skill tool have changed.")
    assert told.index("<name>reef</name>") < told.index("<name>tide</name>")
    assert news(fourth) == [
        told,
        "There are no skills any more. Do not call the skill tool; earlier lists of skills no longer hold.",
    ]
    assert [reuse_percent(one.prefix) for one in started[1:] if one.prefix is not None] == [100, 100, 100]


async def test_what_only_the_text_of_a_skill_says_is_no_news(play: Play, here: Path) -> None:
    file = put(here / ".turnkeeper/skills/tide", "tide")
    script = Scripted().says("ok").then().calls("skill", name="tide").then().says("ok")
    async with play(script, tools=TOOLS) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        file.write_text(file.read_text().replace("moon", "sun"))
        await stage.ask(session, "two")
        [call] = await calls(stage, session)
        assert isinstance(call.state, ToolCompleted)
        assert "Look at the sun." in call.state.output
    assert news(script.requests[-1]) == []


async def test_a_denied_skill_is_not_listed_and_not_given(play: Play, here: Path) -> None:
    put(here / ".turnkeeper/skills/tide", "tide")
    put(here / ".turnkeeper/skills/reef", "reef")
    script = Scripted().calls("skill", name="tide").then().says("ok")
    async with play(script, tools=TOOLS, config={**CONFIG, "permission": {"skill": {"tide": "deny"}}}) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        [call] = await calls(stage, session)
        assert isinstance(call.state, ToolError)
    [text] = listed(script.requests[0])
    assert ("reef" in text, "<name>tide</name>" in text) == (True, False)


@pytest.mark.parametrize("switched", ["rule", "prompt", "missing"])
async def test_without_the_tool_there_is_no_list(play: Play, here: Path, switched: str) -> None:
    put(here / ".turnkeeper/skills/tide", "tide")
    script = Scripted().says("ok")
    config = {**CONFIG, "permission": {"skill": "deny"}} if switched == "rule" else CONFIG
    async with play(script, tools=USUAL if switched == "missing" else TOOLS, config=config) as stage:
        tools = {"skill": False} if switched == "prompt" else None
        await stage.ask(await stage.session(), "one", tools=tools)
    [request] = script.requests
    assert listed(request) == []
    assert "skill" not in [tool.name for tool in request.tools]


async def test_an_agent_with_other_rules_is_told_of_its_own_skills(play: Play, here: Path) -> None:
    put(here / ".turnkeeper/skills/tide", "tide")
    script = Scripted().says("ok").forever()
    config = {**CONFIG, "agent": {"helper": {"permission": {"skill": {"tide": "deny"}}}}}
    async with play(script, tools=TOOLS, config=config) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        await stage.ask(session, "two", agent="helper")
    assert listed(script.requests[1]) == listed(script.requests[0])
    assert "There are no skills any more." in news(script.requests[1])[0]


async def test_broken_files_cost_no_turn_and_are_told_of_once(
    play: Play, here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(here / ".turnkeeper/skills/bad", "[").parent.joinpath("more").mkdir()
    script = Scripted().says("ok").forever()
    async with play(script, tools=TOOLS) as stage:
        session = await stage.session()
        outcomes = [await stage.ask(session, text) for text in ("one", "two")]
        assert [one.kind for one in outcomes] == ["rested", "rested"]
    assert len([one for one in caplog.messages if "bad/SKILL.md: skipped: its front matter" in one]) == 1


async def test_the_files_of_a_skill_of_the_user_are_read_without_asking(play: Play, tmp_path: Path) -> None:
    folder = tmp_path / "library/tide"
    put(folder, "tide").with_name("table.csv").write_text("6:12")
    (tmp_path / "library/secret.txt").write_text("mine")
    script = Scripted().calls("read", filePath=str(folder / "table.csv")).then()
    script.calls("read", filePath=str(tmp_path / "library/secret.txt")).then().says("ok")
    config = {**CONFIG, "skills": {"paths": [str(tmp_path / "library")]}}
    async with play(script, tools=TOOLS, config=config, ask=reject_all) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        first, second = await calls(stage, session)
        assert isinstance(first.state, ToolCompleted)
        assert isinstance(second.state, ToolError)
