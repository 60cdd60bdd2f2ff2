"""MCP servers inside whole turns: their tools in the request, calls, permission, and one cache miss for a change."""

import sys
from pathlib import Path

import anyio

from turnkeeper.core.prefix import TOOLS as TOOLS_CHANGED
from turnkeeper.model.event import TurnStarted
from turnkeeper.model.mcp import McpConnected
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import reject_all
from turnkeeper.testing.harness import Play, Stage
from turnkeeper.workspace.project import identify

SERVER = Path(__file__).parents[1] / "support/mcp_server.py"


def servers(manner: str, **given: object) -> JsonObject:
    command = [sys.executable, str(SERVER), manner]
    return {"mcp": {"my tides": {"type": "local", "command": command, "timeout": 60_000, **given}}}


async def calls(stage: Stage, session: str) -> list[ToolPart]:
    return [part for _, parts in await stage.turns(session) for part in parts if isinstance(part, ToolPart)]


async def test_a_model_calls_the_tools_of_a_server_by_the_names_of_opencode(play: Play) -> None:
    script = Scripted().calls("my_tides_tide", harbour="Emden").then().calls("my_tides_wrong_name").then()
    script = script.calls("my_tides_long").then().calls("my_tides_picture").then().says("done")
    async with play(script, config=servers("tools")) as stage:
        session = await stage.session()
        await stage.ask(session, "How high is it?")
        tide, wrong, long, picture = [part.state for part in await calls(stage, session)]
        events = [one.prefix for one in await stage.events(session) if isinstance(one, TurnStarted)]
    assert isinstance(tide, ToolCompleted)
    assert (tide.title, tide.output) == ("tide", "Emden: 2.5")
    assert isinstance(wrong, ToolError)
    assert wrong.error == "no such harbour"
    assert isinstance(long, ToolCompleted)
    assert long.metadata["truncated"] is True
    assert isinstance(picture, ToolCompleted)
    assert [file.mime for file in picture.attachments or ()] == ["image/png"]
    names = [tool.name for tool in script.requests[0].tools]
    assert names == sorted(names)
    assert "my_tides_tide" in names
    assert all(one.tools is script.requests[0].tools for one in script.requests)
    assert [one.cause for one in events[1:] if one is not None] == [None, None, None, None]


async def test_rules_go_by_the_name_of_the_tool(play: Play) -> None:
    script = Scripted().calls("my_tides_tide", harbour="Emden").then().says("done")
    rules = {"permission": {"my_tides_picture": "deny", "my_tides_tide": "ask"}}
    async with play(script, config={**servers("tools"), **rules}, ask=reject_all) as stage:
        session = await stage.session()
        await stage.ask(session, "How high is it?")
        [part] = await calls(stage, session)
    assert isinstance(part.state, ToolError)
    assert "my_tides_picture" not in [tool.name for tool in script.requests[0].tools]


async def test_a_server_that_dies_in_mid_call_costs_the_call_and_no_cache(play: Play) -> None:
    script = Scripted().calls("my_tides_trouble").then().calls("my_tides_tide", harbour="Emden").then().says("done")
    async with play(script, config=servers("dies")) as stage:
        session = await stage.session()
        await stage.ask(session, "How high is it?")
        lost, tide = [part.state for part in await calls(stage, session)]
        assert await stage.is_sound(session)
    assert isinstance(lost, ToolError)
    assert "was lost in mid-call: it ended with exit code 7" in lost.error
    assert isinstance(tide, ToolCompleted)
    assert all(one.tools is script.requests[0].tools for one in script.requests)


async def test_a_change_of_the_tools_is_one_cache_miss_with_its_reason(play: Play) -> None:
    script = Scripted().calls("my_tides_grow").then().says("ok").forever()
    async with play(script, config=servers("tools")) as stage:
        session = await stage.session()
        await stage.ask(session, "Grow.")
        [server] = await stage.tk.runtime.directories.mcp(await identify(stage.directory))
        with anyio.fail_after(60):
            while not any(tool.name == "grown" for tool in server.tools):
                await anyio.lowlevel.checkpoint()
        await stage.ask(session, "two")
        await stage.ask(session, "three")
        causes = [
            one.prefix.cause for one in await stage.events(session) if isinstance(one, TurnStarted) and one.prefix
        ]
    assert causes[1:].count(TOOLS_CHANGED) == 1
    assert set(causes[1:]) == {None, TOOLS_CHANGED}


async def test_a_hung_server_delays_one_turn_and_no_other(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=servers("hung", timeout=500)) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        begun = anyio.current_time()
        place = await identify(stage.directory)
        [server] = await stage.tk.runtime.directories.mcp(place)
        assert anyio.current_time() - begun < 0.4
        assert server.status != McpConnected()
        await stage.ask(session, "two")
    assert [tool.name for tool in script.requests[1].tools] == ["asks", "echo"]


async def test_servers_of_a_project_that_nobody_trusts_are_not_started(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=servers("tools"), environ={"TURNKEEPER_TRUST": ""}) as stage:
        assert await stage.tk.runtime.directories.mcp(await identify(stage.directory)) == ()
