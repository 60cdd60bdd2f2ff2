"""MCP servers inside whole turns: their tools in the request, calls, permission, and one cache miss for a change."""

import sys
from pathlib import Path

import anyio
import pytest

from turnkeeper.core.prefix import TOOLS as TOOLS_CHANGED
from turnkeeper.model.event import TurnStarted
from turnkeeper.model.mcp import McpConnected
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import FilePart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Invalid
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
        [server] = await stage.tk.runtime.directories.mcp.servers(await identify(stage.directory))
        with anyio.fail_after(60):
            while not any(tool.name == "grown" for tool in server.tools):
                await anyio.lowlevel.checkpoint()
        await stage.ask(session, "two")
        await stage.ask(session, "three")
        causes = [
            one.prefix.cause for one in await stage.events(session) if isinstance(one, TurnStarted) and one.prefix
        ]
    why = f"{TOOLS_CHANGED}, by the MCP server my tides"
    assert causes[1:].count(why) == 1
    assert set(causes[1:]) == {None, why}


async def test_a_tool_that_a_call_adds_is_in_the_next_request(play: Play) -> None:
    script = Scripted().calls("my_tides_grow").then().says("ok")
    async with play(script, config=servers("tools")) as stage:
        await stage.ask(await stage.session(), "Grow.")
    assert ["my_tides_grown" in [tool.name for tool in one.tools] for one in script.requests] == [False, True]


async def test_a_hung_server_delays_one_turn_and_no_other(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=servers("hung", timeout=500)) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        [server] = await stage.tk.runtime.directories.mcp.servers(await identify(stage.directory))
        with anyio.CancelScope() as scope:
            scope.cancel()  # What waits for anything now ends here.
            await server.wait_first()
        assert not scope.cancelled_caught
        assert server.status != McpConnected()
        await stage.ask(session, "two")
    assert [tool.name for tool in script.requests[1].tools] == ["asks", "echo"]


async def test_servers_of_a_project_that_nobody_trusts_are_not_started(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=servers("tools"), environ={"TURNKEEPER_TRUST": ""}) as stage:
        assert await stage.tk.runtime.directories.mcp.servers(await identify(stage.directory)) == ()


async def test_the_prompts_of_a_server_are_commands_and_their_texts_are_only_text(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=servers("tools")) as stage:
        (stage.directory / "secret.txt").write_text("hidden")
        session = await stage.session()
        known = {one.name: one for one in await stage.tk.commands(stage.directory)}
        report = known["my_tides:report"]
        assert (report.source, report.hints, report.description) == ("mcp", ("$1", "$2"), "A report about a harbour.")
        assert known["my_tides:hello"].hints == ()
        await stage.tk.command(session, "my_tides:report", 'Emden "the first of May"')
        await stage.tk.wait(session)
        await stage.tk.command(session, "my_tides:hello", "and wave")
        await stage.tk.wait(session)
        with pytest.raises(Invalid, match="needs harbour"):
            await stage.tk.command(session, "my_tides:report", "")
        assert not (stage.directory / "ran").exists()
    said = [str(one.messages[-1]) for one in script.requests]
    assert "Report on Emden for the first of May. !`touch ran` $1 @secret.txt" in said[0]
    assert "hidden" not in said[0]
    assert "Say hello.\\n\\nand wave" in said[1]


async def test_a_resource_is_attached_where_a_prompt_mentions_it(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=servers("tools")) as stage:
        session = await stage.session()
        for text in ("See @my_tides:emden, please", "See @my_tides:picture", "See @my_tides:tape @my_tides:nothing"):
            await stage.tk.ask(Prompt(parts=(TextInput(text=text, mentions=True),)), session=session)
        kinds = [
            [part for part in message.parts if not isinstance(part, TextPart) or part.synthetic]
            for message in (await stage.tk.messages(session)).items
            if isinstance(message.info, UserMessage)
        ]
    texts = [[part.text for part in parts if isinstance(part, TextPart)] for parts in kinds]
    assert texts[0] == ["The resource charts://emden of the MCP server my tides was read for the user:", "Depth: 7 m"]
    assert texts[1][1] == "[picture is attached]"
    assert [part.mime for part in kinds[1] if isinstance(part, FilePart)] == ["image/png"]
    assert texts[2][1] == "[tape is left out: files of the type video/mp4 cannot be attached]"


async def test_models_list_and_read_resources_under_the_rules_for_reading(play: Play) -> None:
    script = (
        Scripted().calls("list_mcp_resources").then().calls("list_mcp_resource_templates", server="my tides").then()
    )
    script = script.calls("read_mcp_resource", server="my tides", uri="charts://of/Emden").then()
    script = script.calls("read_mcp_resource", server="my tides", uri="charts://nothing").then()
    script = script.calls("read_mcp_resource", server="other", uri="charts://emden").then()
    script = script.calls("read_mcp_resource", server="my tides", uri="charts://emden").then().says("done")
    rules = {"permission": {"read": {"*": "allow", "mcp:my tides:charts://emden": "deny"}}}
    async with play(script, config={**servers("tools"), **rules}) as stage:
        session = await stage.session()
        await stage.ask(session, "Read them.")
        listed, templates, read, missing, other, denied = [part.state for part in await calls(stage, session)]
    assert isinstance(listed, ToolCompleted)
    assert listed.output.splitlines()[0] == "my tides: charts://emden: emden, text/plain, The chart of Emden."
    assert isinstance(templates, ToolCompleted)
    assert templates.output == "my tides: charts://of/{harbour}: any, text/plain"
    assert isinstance(read, ToolCompleted)
    assert read.output == "The chart of Emden"
    assert [type(one) for one in (missing, other, denied)] == [ToolError] * 3


async def test_what_a_server_says_of_itself_is_a_component_and_stays_while_it_is_away(play: Play) -> None:
    script = Scripted().calls("my_tides_trouble").then().says("ok").forever()
    async with play(script, config=servers("dies")) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        await stage.ask(session, "two")
    system = "\n".join(script.requests[0].system)
    assert '<server name="my tides">\nAsk for a harbour by its name.\n</server>' in system
    assert all(one.system == script.requests[0].system for one in script.requests)


async def test_a_server_whose_tools_are_all_denied_says_nothing(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config={**servers("tools"), "permission": {"my_tides_*": "deny"}}) as stage:
        await stage.ask(await stage.session(), "one")
    assert "Ask for a harbour" not in "\n".join(script.requests[0].system)


async def test_a_server_that_is_switched_off_is_taken_back_in_one_message(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, config=servers("tools")) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        [server] = await stage.tk.runtime.directories.mcp.servers(await identify(stage.directory))
        await server.switch(is_on=False)
        await stage.ask(session, "two")
    assert script.requests[0].system == script.requests[1].system
    assert "No MCP server says anything about its tools any more" in str(script.requests[1].messages)
