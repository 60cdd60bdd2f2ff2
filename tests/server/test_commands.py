"""Commands with templates, over HTTP."""

from pathlib import Path

import anyio
import pytest
from served import served

from turnkeeper.model.notification import Notification
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.tools import load

COMMANDS = {
    "greet": {"template": "Greet $1 in $2", "description": "A greeting", "agent": "plan"},
    "later": {"template": "Look at $1", "subtask": True, "description": "A look"},
    "state": {"template": "Look: !`git status`"},
}


async def test_commands_of_the_configuration_are_listed_and_said(tmp_path: Path) -> None:
    provider = Scripted().says("Hello, Ada.")
    async with served(tmp_path, provider, config={"command": COMMANDS}) as server:
        listed = await server.get("/command")
        assert [one["name"] for one in listed] == ["greet", "init", "later", "review", "state"]
        assert listed[0] == {
            "name": "greet",
            "description": "A greeting",
            "agent": "plan",
            "source": "command",
            "template": "Greet $1 in $2",
            "hints": ["$1", "$2"],
        }
        second = (await server.get("/api/command"))["data"]
        assert [one["name"] for one in second] == [one["name"] for one in listed]
        assert second[0] == {
            "name": "greet",
            "description": "A greeting",
            "agent": "plan",
            "template": "Greet $1 in $2",
        }
        session = await server.session()
        async with server.stage.tk.subscribe(session_id=session) as heard:
            answer = await server.post(
                f"/session/{session}/command", {"command": "greet", "arguments": "Ada plain words"}
            )
            told = []
            async for one in heard:
                told.append(one.type)
                if isinstance(one, Notification) and one.type == "command.executed":
                    assert one.properties["name"] == "greet"
                    break
        assert answer["info"]["agent"] == "plan"
        assert told[-1] == "command.executed"
        asked = (await server.get(f"/session/{session}/message"))[0]
        assert asked["parts"][0]["text"] == "Greet Ada in plain words"


async def test_what_cannot_be_said_is_refused_with_a_reason(tmp_path: Path) -> None:
    async with served(tmp_path, config={"command": COMMANDS}) as server:
        session = await server.session()
        for name, status, words in (
            ("gret", 404, "nearest are: greet"),
            ("undo", 400, "action"),
            ("/x", 404, "known are"),
        ):
            body = {"command": name, "arguments": ""}
            refused = await server.post(f"/session/{session}/command", body, status=status)
            assert words in str(refused)
        odd = {"command": "greet", "arguments": "", "model": "nonsense"}
        assert "PROVIDER/MODEL" in str(await server.post(f"/session/{session}/command", odd, status=400))
        assert await server.get(f"/session/{session}/message") == []


async def test_agents_md_is_asked_for_with_the_model_and_the_id_that_are_named(tmp_path: Path) -> None:
    body = {"providerID": "acme", "modelID": "other", "messageID": "msg_0000000000010000000000abcd"}
    async with served(tmp_path, Scripted().says("Written.")) as server:
        session = await server.session()
        assert await server.post(f"/session/{session}/init", body) is True
        asked, answer = await server.get(f"/session/{session}/message")
        assert (asked["info"]["id"], answer["info"]["modelID"]) == (body["messageID"], "other")
        assert asked["parts"][0]["text"].startswith("Write AGENTS.md")
        assert "$ARGUMENTS" not in asked["parts"][0]["text"]
        await server.post("/session/ses_none/init", body, status=404)
        await server.post(f"/session/{session}/init", {**body, "messageID": "prt_1"}, status=400)


async def test_a_configuration_may_say_what_init_is(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Done."), config={"command": {"init": {"template": "Mine"}}}) as server:
        session = await server.session()
        await server.post(f"/session/{session}/command", {"command": "init", "arguments": ""})
        assert (await server.get(f"/session/{session}/message"))[0]["parts"][0]["text"] == "Mine"


@pytest.mark.parametrize("name", ["later", "helped"])
async def test_a_command_for_a_subagent_is_run_in_a_child_session(tmp_path: Path, name: str) -> None:
    agents = {"helper": {"mode": "subagent"}}
    commands = {**COMMANDS, "helped": {"template": "Look at $1", "agent": "helper"}}
    provider = Scripted().says("It is large.").then().says("I have looked.")
    config = {"command": commands, "agent": agents}
    async with served(tmp_path, provider, config=config, tools=load(["task"])) as server:
        session = await server.session()
        answer = await server.post(f"/session/{session}/command", {"command": name, "arguments": "README"})
        assert answer["parts"][1]["text"] == "I have looked."
        [child] = await server.get(f"/session/{session}/children")
        assert child["agent"] == ("helper" if name == "helped" else "build")
        [asked, handed_on, go_on, _] = await server.get(f"/session/{session}/message")
        [subtask] = asked["parts"]
        assert (subtask["type"], subtask["prompt"], subtask["command"]) == ("subtask", "Look at README", name)
        assert handed_on["parts"][0]["state"]["metadata"]["sessionId"] == child["id"]
        assert go_on["parts"][0]["synthetic"] is True


async def test_a_command_for_a_session_of_other_hosts_is_refused_and_admits_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session(label="gpu")
        refused = await server.post(f"/session/{session}/command", {"command": "init", "arguments": ""}, 409)
        assert "hosts with label 'gpu'" in refused["data"]["message"]
        assert (await server.stage.tk.store.journal.view(session)).inbox == ()


async def test_a_command_that_a_stopped_session_did_not_take_up_is_not_answered_with_something_else(
    tmp_path: Path,
) -> None:
    gate, statuses = Gate(), []
    provider = Scripted().says("half").waits(gate).then().says("two").forever()
    async with served(tmp_path, provider, config={"command": COMMANDS}) as server:
        session = await server.session()
        await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "one"}]}, 204)
        await gate.wait_reached()

        async def command() -> None:
            body = {"command": "greet", "arguments": "Ada"}
            statuses.append((await server.http.post(f"/session/{session}/command", json=body)).status_code)

        async with anyio.create_task_group() as group, server.stage.tk.subscribe(session_id=session) as heard:
            group.start_soon(command)
            async for _ in heard:
                if (await server.stage.tk.store.journal.view(session)).inbox:
                    break
            await server.post(f"/session/{session}/abort", {})
        assert statuses == [409]
