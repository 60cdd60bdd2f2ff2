"""What a program gives to ``open``: settings, tools, components, agents."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

import turnkeeper
from turnkeeper import Agent, Invalid, Scripted

ACME = {
    "protocol": "openai-chat",
    "options": {"baseURL": "http://localhost:1"},
    "models": {"large": {}, "small": {}},
}
CONFIG = {"model": "acme/large", "provider": {"acme": ACME}}


async def test_settings_of_the_program_override_those_of_files(opened: Any, place: Path) -> None:
    (place / "turnkeeper.json").write_text('{"model": "acme/small", "instructions": ["a.md"]}')
    async with opened(Scripted().says("Hi."), config=CONFIG) as tk:
        assert str((await tk.ask("Hi")).model) == "acme/large"


WRONG: dict[str, dict[str, Any]] = {
    "a setting of another type": {"config": {"permission": {"bash": "alow"}}},
    "settings that are no JSON": {"config": {"model": object()}},
    "an unknown time zone": {"config": {"timezone": "Middle/Earth"}},
    "a tool that is no function": {"tools": [3]},
    "a tool without a docstring": {"tools": [lambda: "x"]},
    "an agent that is text": {"agents": ["reviewer"]},
    "an agent with a wrong model": {"agents": [Agent("reviewer", model="claude")]},
    "an agent whose name is no text": {"agents": [Agent(cast(Any, 3))]},
    "an agent without a name": {"agents": [Agent("")]},
    "a child that is text": {"agents": [Agent("lead", children=cast(Any, ["reviewer"]))]},
    "children that are no list": {"agents": [Agent("lead", children=cast(Any, 3))]},
    "children and a rule that says whom to call": {
        "agents": [Agent("lead", permission={"task": {"scout": "ask"}}, children=[Agent("scout")])]
    },
    "two agents of one name": {"agents": [Agent("reviewer", "One."), Agent("reviewer", "Two.")]},
    "a child of the name of another agent": {
        "agents": [Agent("reviewer"), Agent("lead", children=[Agent("reviewer", "Two.")])]
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_when_the_store_is_opened(name: str, opened: Any) -> None:
    with pytest.raises(Invalid):
        opened(Scripted(), **WRONG[name])


def test_the_key_of_a_wrong_setting_is_named(opened: Any) -> None:
    with pytest.raises(Invalid, match=r"the config of the program: permission.bash: .*use one of 'allow'"):
        opened(Scripted(), config={"permission": {"bash": "alow"}})


async def test_a_plain_function_is_a_tool(opened: Any) -> None:
    async def tide(place: str, day: int = 1) -> str:
        """When the tide is high."""
        return f"6:12 at {place} on {day}"

    model = Scripted().calls("tide", place="the bay").then().says("At 6:12.")
    async with opened(model, tools=[tide]) as tk:
        answer = await tk.ask("Tide?")
        [call] = [part for part in answer.parts if isinstance(part, turnkeeper.ToolPart)]
        assert isinstance(call.state, turnkeeper.ToolCompleted)
        assert call.state.output == "6:12 at the bay on 1"
        names = [tool.name for tool in model.requests[0].tools]
        assert {"tide", "bash", "read"} <= set(names)


async def test_a_tool_of_the_program_replaces_the_one_of_its_name(opened: Any) -> None:
    @turnkeeper.tool(name="glob")
    def listed(pattern: str) -> str:
        """All files."""
        return "mine"

    model = Scripted().calls("glob", pattern="*").then().says("Yes.")
    async with opened(model, tools=[listed]) as tk:
        [call] = [part for part in (await tk.ask("Files?")).parts if isinstance(part, turnkeeper.ToolPart)]
        assert isinstance(call.state, turnkeeper.ToolCompleted)
        assert call.state.output == "mine"


async def test_a_component_tells_a_fact_and_then_what_changed(opened: Any) -> None:
    winds = ["west", "west", "north"]

    @turnkeeper.component("acme/wind")
    def wind() -> str | None:
        return f"The wind is {winds.pop(0)}." if winds else None

    model = Scripted().says("Ahoy.").forever()
    async with opened(model, components=[wind]) as tk:
        session = await tk.create()
        for _ in range(3):
            await tk.ask("Go on.", session=session)
    assert any("The wind is west." in text for text in model.requests[0].system)
    news = [[turn.text for turn in request.messages if hasattr(turn, "text")] for request in model.requests]
    assert news == [[], [], ["The wind is north."]]


def test_a_component_has_a_key_with_a_namespace() -> None:
    with pytest.raises(Invalid, match="namespace/name"):
        turnkeeper.component("wind")


async def test_an_agent_is_named_or_given(opened: Any) -> None:
    reviewer = Agent("reviewer", "You review boats.", model="acme/small", permission={"*": "deny"})
    later = Agent("later", "You come later.")
    model = Scripted().says("Seaworthy.").forever()
    async with opened(model, config=CONFIG, agents=[reviewer]) as tk:
        answer = await tk.ask("Review it.", agent="reviewer")
        assert str(answer.model) == "acme/small"
        assert [tool.name for tool in model.requests[0].tools] == []
        assert (await tk.get(answer.session_id)).agent == "reviewer"
        await tk.ask("Review it.", agent=later)
    assert [
        any(said in text for text in request.system)
        for request, said in zip(model.requests, ("You review boats.", "You come later."), strict=True)
    ] == [True, True]


def test_an_agent_with_children_is_the_configuration_of_all() -> None:
    scout = Agent("scout", "You look.", description="Looks at files")
    lead = Agent("lead", "You decide.", permission={"bash": "ask"}, children=[scout])
    assert lead.configuration() == {
        "agent": {
            "scout": {"prompt": "You look.", "description": "Looks at files", "mode": "subagent"},
            "lead": {
                "prompt": "You decide.",
                "mode": "all",
                "permission": {"bash": "ask", "task": {"*": "deny", "scout": "allow"}},
            },
        }
    }


def test_a_rule_for_tasks_holds_for_the_children() -> None:
    lead = Agent("lead", permission={"task": "ask"}, children=[Agent("scout")])
    settings = cast(Any, lead.configuration())
    assert settings["agent"]["lead"]["permission"] == {"task": {"*": "deny", "scout": "ask"}}


async def test_an_agent_can_be_the_child_of_several_and_answer_itself(opened: Any) -> None:
    scout = Agent("scout", "You look.")
    leads = [Agent(name, children=[scout]) for name in ("lead", "other")]
    model = Scripted().says("I see.")
    async with opened(model, config=CONFIG, agents=[scout, *leads]) as tk:
        assert (await tk.ask("Look.", agent="scout")).text == "I see."
    assert "You look." in model.requests[0].system[0]


async def test_a_wrong_agent_is_refused_when_it_is_asked(opened: Any) -> None:
    async with opened(Scripted().says("Hi."), config=CONFIG) as tk:
        with pytest.raises(Invalid, match="the children of the agent 'lead' are a list of Agents, not \\['scout'\\]"):
            await tk.ask("Look.", agent=Agent("lead", children=cast(Any, ["scout"])))
        assert (await tk.ask("Hi")).text == "Hi."


async def test_a_model_is_named_by_one_text_everywhere(opened: Any) -> None:
    async with opened(Scripted().says("Hi.").forever(), config=CONFIG) as tk:
        session = await tk.create(model="acme/small")
        assert str(session.model) == "acme/small"
        assert str((await tk.ask("Hi", session=session)).model) == "acme/small"
        assert str((await tk.ask("Hi", session=session, model="acme/large")).model) == "acme/large"
        again = await tk.ask("Hi", model=(await tk.get(session.id)).model)
        assert again.model == turnkeeper.ModelChoice.parse("acme/large")
        shown = await tk.shell(session.id, "true", model="acme/small")
        assert shown.info.model_id == "small"
        assert (await tk.compact(session.id, model="acme/small")).reason


async def test_a_program_that_exits_in_its_block_exits(opened: Any) -> None:
    async def program() -> None:
        async with opened(Scripted().says("Hello.")) as tk:
            await tk.ask("Hello?")
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        await program()


async def test_what_cannot_be_a_store_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    for engine, name, said in (
        ("sqlite", ".", "it is a directory"),
        ("sqlite", "pipe", "it is not a regular file"),
        ("sqlite", "loop", "it is a loop of symbolic links"),
        ("sqlite", "loop/store.db", "it is a loop of symbolic links"),
        ("sqlite", "nu\0l", "a path has no NUL character in it"),
        ("files", "file", "it is not a directory"),
        ("files", "nu\0l", "a path has no NUL character in it"),
    ):
        with pytest.raises(Invalid, match=f"cannot be a store: {said}"):
            async with turnkeeper.open(f"{engine}:{tmp_path}/{name}"):
                pass
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "loop", "pipe"]
