"""What an agent's settings do to the requests of its turns, and what a switch of agents leaves as it was."""

import pytest

from turnkeeper.context.texts import text
from turnkeeper.model.message import ModelChoice, UserMessage
from turnkeeper.model.request import ModelRequest, SystemTurn
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import CONFIG, MODEL, Play

VARIANTS: JsonObject = {
    **CONFIG,
    "provider": {
        "acme": {
            "protocol": "openai-chat",
            "options": {"baseURL": "http://localhost:1/v1"},
            "models": {"large": MODEL, "other": {**MODEL, "temperature": True, "variants": {"high": {"effort": 3}}}},
        }
    },
}
HELPER: JsonObject = {
    "prompt": "You help.",
    "model": "acme/other",
    "variant": "high",
    "temperature": 0.3,
    "top_p": 0.8,
    "steps": 2,
    "options": {"seed": 7},
    "colour_blind": True,
    "permission": {"asks": "deny"},
}


def with_agents(**agents: JsonObject) -> JsonObject:
    return {**VARIANTS, "agent": agents}


def news(request: ModelRequest) -> list[str]:
    return [one.text for one in request.messages if isinstance(one, SystemTurn)]


async def test_every_setting_of_an_agent_is_in_its_request(play: Play) -> None:
    script = Scripted().says("ok")
    async with play(script, config=with_agents(helper=HELPER)) as stage:
        await stage.ask(await stage.session(), "go", agent="helper")
    [request] = script.requests
    assert request.system[0] == "You help."
    assert (request.model.id, request.model.options) == ("other", {"effort": 3})
    assert (request.temperature, request.top_p) == (0.3, 0.8)
    assert request.options == {"seed": 7, "colour_blind": True}
    assert [tool.name for tool in request.tools] == ["echo"]


async def test_the_model_and_variant_of_a_prompt_are_stronger_than_the_agents(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=with_agents(helper=HELPER)) as stage:
        session = await stage.session()
        large = ModelChoice(provider_id="acme", model_id="large")
        await stage.ask(session, "one", agent="helper", model=large)
        await stage.ask(session, "two", agent="helper", variant="low")
        said = [one.info.model for one in await stage.messages(session) if isinstance(one.info, UserMessage)]
    assert said == [large, ModelChoice(provider_id="acme", model_id="other", variant="low")]
    assert [one.model.id for one in script.requests] == ["large", "other"]


async def test_in_its_last_step_an_agent_is_told_to_answer_without_tools(play: Play) -> None:
    script = Scripted().calls("echo", text="one").then().says("done")
    async with play(script, config=with_agents(helper=HELPER)) as stage:
        await stage.ask(await stage.session(), "go", agent="helper")
    first, last = script.requests
    assert (first.tool_choice, last.tool_choice) == ("auto", "none")
    assert text("max_steps") not in news(first)
    assert last.messages[-1] == SystemTurn(text=text("max_steps"))
    assert [tool.name for tool in last.tools] == [tool.name for tool in first.tools]


async def test_an_agent_of_a_file_answers(play: Play) -> None:
    script = Scripted().says("ok")
    async with play(script, config=VARIANTS) as stage:
        file = stage.directory / ".opencode" / "agent" / "team" / "poet.md"
        file.parent.mkdir(parents=True)
        file.write_text("---\ntemperature: 0.9\nmodel: acme/other\n---\nYou rhyme.\n")
        await stage.ask(await stage.session(), "go", agent="team/poet")
    [request] = script.requests
    assert (request.system[0], request.temperature, request.model.id) == ("You rhyme.", 0.9, "other")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (text("title"), "large", None)),
        ({"prompt": "A title!", "model": "acme/other", "temperature": 0.1}, ("A title!", "other", 0.1)),
    ],
)
async def test_the_settings_of_the_title_agent_are_used(
    play: Play, given: JsonObject, expected: tuple[str, str, float | None]
) -> None:
    script = Scripted().says("ok").titles("Given")
    async with play(script, titles=True, config=with_agents(title=given)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.tk.runtime.wait_upkeep(session)
    [asked] = [one for one in script.requests if not one.tools]
    assert (asked.system[0], asked.model.id, asked.temperature) == expected
