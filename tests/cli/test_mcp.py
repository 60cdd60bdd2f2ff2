"""``turnkeeper mcp``: which servers there are, how they do, and what one wrote before it ended."""

import json
import sys
from pathlib import Path

import anyio
from workshop import Shop

import turnkeeper
from turnkeeper.core.mcp import output
from turnkeeper.model.config import McpConfig
from turnkeeper.workspace.mcp_server import McpPlace, McpServer

SERVER = Path(__file__).parents[1] / "support/mcp_server.py"
HOSTILE = Path(__file__).parents[1] / "support/mcp_hostile.py"


def local(manner: str) -> dict[str, object]:
    return {"type": "local", "command": [sys.executable, str(SERVER), manner], "timeout": 60_000}


def test_the_list_says_how_each_server_does(shop: Shop) -> None:
    shop.configure(mcp={"my tides": local("tools"), "broken": local("bad"), "off": {**local("bad"), "enabled": False}})
    run = shop.process("mcp", "list", "--json")
    assert run.returncode == 0, run.stderr
    broken, tides, off = json.loads(run.stdout)["items"]
    assert (broken["name"], broken["status"], broken["tools"]) == ("broken", "failed", [])
    assert broken["error"] == "it ended with exit code 1"
    assert (tides["status"], tides["type"], tides["error"]) == ("connected", "local", None)
    assert "my_tides_wrong_name" in tides["tools"]
    assert (off["status"], off["enabled"]) == ("disabled", False)


def test_what_a_server_wrote_before_it_ended_is_shown(shop: Shop) -> None:
    shop.configure(mcp={"broken": local("bad"), "empty": {"enabled": True}})
    run = shop.process("mcp", "debug", "broken")
    assert run.returncode == 1
    assert run.stdout.endswith("Its error output ended with:\nthere is no harbour here\n")
    for name, words in (("nothing", "the servers are: broken, empty"), ("empty", "neither a `command` nor a `url`")):
        run = shop.process("mcp", "debug", name)
        assert (run.returncode, words in run.stderr, "Traceback" in run.stderr) == (1, True, False)


def test_a_tool_that_cannot_be_used_is_left_out_and_named(shop: Shop) -> None:
    shop.configure(
        mcp={"sea": {"type": "local", "command": [sys.executable, str(HOSTILE), "unreadable"], "timeout": 60_000}}
    )
    [row] = json.loads(shop.process("mcp", "list", "--json").stdout)["items"]
    assert (row["status"], row["tools"]) == ("connected", ["sea_a", "sea_b"])
    reason = "inputSchema.type: Input should be 'object'"
    assert {"kind": "tool", "name": "array", "reason": reason} in row["left_out"]
    assert "sea_a, sea_b (6 left out; see `turnkeeper mcp debug`)" in shop.process("mcp", "list").stdout
    run = shop.process("mcp", "debug", "sea")
    assert (run.returncode, f"tool array: {reason}" in run.stdout) == (0, True)


def test_a_server_that_missed_its_time_limit_is_said_to_have_missed_it(shop: Shop) -> None:
    shop.configure(mcp={"slow": {**local("hung"), "timeout": 300}})
    [row] = json.loads(shop.process("mcp", "list", "--json").stdout)["items"]
    assert (row["status"], row["error"]) == ("failed", "it did not answer within 0.3 s")
    run = shop.process("mcp", "debug", "slow")
    assert (run.returncode, "it did not answer within 0.3 s" in run.stdout) == (1, True)


def test_without_servers_the_list_says_where_they_are_named(shop: Shop) -> None:
    run = shop.process("mcp", "list")
    assert (run.returncode, run.stdout.startswith("There are no MCP servers here.")) == (0, True)


def test_other_agents_search_and_read_past_sessions(shop: Shop) -> None:
    assert shop.process("run", "the harbour master sleeps").returncode == 0
    [session] = shop.sessions()
    anyio.run(_remember, shop, session["id"])


def test_other_agents_are_told_the_version(shop: Shop) -> None:
    shop.run("the harbour master sleeps")
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    answers = shop.process("mcp", "serve", stdin=f"{asked}\n").stdout.splitlines()
    info = json.loads(answers[0])["result"]["serverInfo"]
    assert (info["name"], info["version"]) == ("turnkeeper", turnkeeper.__version__)


async def _remember(shop: Shop, session_id: str) -> None:
    config = McpConfig(command=(sys.executable, "-m", "turnkeeper", "mcp", "serve"), timeout=60_000)
    with anyio.fail_after(200):
        async with anyio.create_task_group() as group:
            server = McpServer("memory", config, McpPlace(shop.project, shop.environ()))
            group.start_soon(server.serve)
            await server.wait_first()
            assert [tool.name for tool in server.tools if tool.read_only] == ["recall", "search"], server.errors.text
            found = output(await server.call("search", {"words": "harbour"}))
            assert f"session {session_id}: " in found.text
            told = output(await server.call("recall", {"session": session_id, "query": "harbour"}))
            handle = told.text.split()[0]
            text = output(await server.call("recall", {"session": session_id, "handle": handle}))
            assert "harbour master" in text.text
            assert output(await server.call("recall", {"session": "nothing", "query": "x"})).is_error
            group.cancel_scope.cancel()
