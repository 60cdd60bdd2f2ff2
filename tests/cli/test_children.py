"""Child Sessions on the command line: drawn as a tree, paid for with their parent, and named when they ask."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from cli_store import command, tk
from shop_runs import environ, run
from workshop import Shop

import turnkeeper
from turnkeeper.cli.request_lines import origin
from turnkeeper.client import Client
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import TextPart
from turnkeeper.run.runtime import Settings
from turnkeeper.testing.server import ScriptedServer

AGENTS = {"general": {"mode": "subagent", "description": "Helps."}}
ASKING = "[[task [[bash echo hi]] [[text sub answer]]]] [[text All done.]]"
DEADLINE_S = 60


async def only_session(shop: Shop, env: dict[str, str]) -> str:
    listed = json.loads((await run(shop, env, "session", "list", "--json")).stdout)
    [session] = listed["items"]
    return str(session["id"])


async def test_a_session_with_children_is_drawn_as_a_tree(shop: Shop) -> None:
    shop.configure(agent=AGENTS)
    async with ScriptedServer() as server:
        env = environ(shop, server)
        done = await run(shop, env, "run", "[[task say [[text sub answer]]]] [[text All done.]]")
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode().strip() == "All done."
        session = await only_session(shop, env)
        tree: dict[str, Any] = json.loads((await run(shop, env, "session", "tree", session, "--json")).stdout)
        [child] = tree["children"]
        assert (tree["agent"], tree["status"]) == ("build", "idle")
        assert (child["agent"], child["title"]) == ("general", "Scripted task (@general subagent)")
        assert tree["totalCost"] == pytest.approx(tree["cost"] + child["cost"])
        assert child["cost"] > 0
        drawn = (await run(shop, env, "session", "tree", session)).stdout.decode().splitlines()
        assert drawn[0].startswith(f"{session}  idle  @build  $")
        assert f" of ${tree['totalCost']:.4f}  " in drawn[0]
        assert drawn[1] == f"└─ {child['id']}  idle  @general  ${child['cost']:.4f}  {child['title']}"
        shown = (await run(shop, env, "session", "show", session)).stdout.decode()
        assert f"${tree['cost']:,.4f}, with child sessions ${tree['totalCost']:,.4f}" in shown
        assert b"without child sessions" in done.stderr


async def left_asking(shop: Shop, env: dict[str, str]) -> str:
    """A session that a process left while a call of its Child Session asked."""
    url = f"sqlite:{shop.data / 'turnkeeper.db'}"
    settings = Settings(ask=None, environ=env, titles=False)
    with anyio.fail_after(DEADLINE_S):
        async with turnkeeper.open(url, directory=shop.project, settings=settings) as opened:
            session = (await opened.create(title="Tides")).id
            async with opened.subscribe() as heard:
                await opened.prompt(session, ASKING)
                async for one in heard:
                    if isinstance(one, Notification) and one.type == "permission.asked":
                        return session
    raise AssertionError("nothing was asked")


async def test_what_a_child_session_asks_names_it_and_its_answer_has_the_whole_family_go_on(shop: Shop) -> None:
    shop.configure(agent=AGENTS, permission={"bash": "ask"})
    async with ScriptedServer() as server:
        env = environ(shop, server)
        session = await left_asking(shop, env)
        [request] = json.loads((await run(shop, env, "permission", "list", "--json")).stdout)["items"]
        assert request["sessionID"] != session
        listed = (await run(shop, env, "permission", "list")).stdout.decode()
        assert f"  asked by Scripted task (@general subagent), for {session}" in listed.splitlines()
        drawn = (await run(shop, env, "session", "tree", session)).stdout.decode().splitlines()
        assert f"{request['sessionID']}  waits  @general" in drawn[1]
        allowed = await run(shop, env, "permission", "allow", request["id"], "--json")
        assert json.loads(allowed.stdout)["outcome"] == "answered"
        messages = json.loads((await run(shop, env, "session", "messages", session, "--json")).stdout)["items"]
        texts = [part["text"] for part in messages[-1]["parts"] if part["type"] == "text"]
        assert texts == ["All done."]
        [call] = [part for one in messages for part in one["parts"] if part["type"] == "tool"]
        assert "sub answer" in call["state"]["output"]


def sit(shop: Shop, env: dict[str, str], *more: str) -> int:
    """Somebody at a terminal who allows what a Child Session asks."""
    with shop.terminal("run", ASKING, *more, env=env) as seat:
        asked = seat.read_until("or say what to do instead")
        assert "asked by Scripted task (@general subagent), for ses_" in asked
        seat.types("y\n")
        seat.read_until("All done.")
        return seat.end()


async def test_a_run_asks_for_its_child_sessions_and_says_who_asks(shop: Shop) -> None:
    shop.configure(agent=AGENTS, permission={"bash": "ask"})
    async with ScriptedServer() as server:
        with anyio.fail_after(DEADLINE_S):
            assert await to_thread.run_sync(sit, shop, environ(shop, server)) == 0


@asynccontextmanager
async def serving(shop: Shop, env: dict[str, str]) -> AsyncIterator[tuple["subprocess.Popen[str]", str]]:
    """A server in a process of its own, and its address."""
    with subprocess.Popen(
        command("serve", "--port", "0", "--json"), cwd=shop.project, env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(await to_thread.run_sync(process.stdout.readline))["url"]
        finally:
            process.kill()


async def test_a_run_on_a_server_asks_for_its_child_sessions_too(shop: Shop) -> None:
    shop.configure(agent=AGENTS, permission={"bash": "ask"})
    with anyio.fail_after(DEADLINE_S):
        async with ScriptedServer() as model, serving(shop, environ(shop, model)) as (_, url):
            assert await to_thread.run_sync(sit, shop, environ(shop, model), "--server", url) == 0


async def test_a_server_that_is_killed_while_a_child_session_asks_goes_on_with_the_answer(shop: Shop) -> None:
    shop.configure(agent=AGENTS, permission={"bash": "ask"})
    with anyio.fail_after(2 * DEADLINE_S):
        async with ScriptedServer() as model:
            env = environ(shop, model)
            async with serving(shop, env) as (process, url), Client(url, directory=shop.project) as client:
                session = (await client.create(title="Tides")).id
                async with client.subscribe() as heard:
                    await client.prompt_async(session, ASKING)
                    async for one in heard:
                        if isinstance(one, Notification) and one.type == "permission.asked":
                            break
                process.kill()
                await to_thread.run_sync(process.wait)
            async with serving(shop, env) as (_, url), Client(url, directory=shop.project) as client:
                [request] = await client.permissions()
                [child] = await client.children(session)
                assert request.session_id == child.id
                await client.reply(request.id, "once")
                async with client.subscribe(session_id=session) as heard:
                    said = (await client.messages(session)).items[-1]
                    while not any(isinstance(part, TextPart) and part.text == "All done." for part in said.parts):
                        await anext(heard)
                        said = (await client.messages(session)).items[-1]
                assert [one.id for one in await client.children(session)] == [child.id]


async def test_a_run_waits_for_its_background_tasks_and_answers_their_results(shop: Shop) -> None:
    shop.configure(agent=AGENTS)
    task = {"description": "Look", "prompt": "[[text sub answer]]", "subagent_type": "general", "background": True}
    async with ScriptedServer() as server:
        env = environ(shop, server)
        done = await run(shop, env, "run", f"[[tool task {json.dumps(task)}]] [[text It runs.]]")
        assert done.returncode == 0, done.stderr
        session = await only_session(shop, env)
        messages = json.loads((await run(shop, env, "session", "messages", session, "--json")).stdout)["items"]
        reported = [part["text"] for one in messages[2:] if one["info"]["role"] == "user" for part in one["parts"]]
        assert len(reported) == 1
        assert "<task_result>\nsub answer\n</task_result>" in reported[0]
        assert messages[-1]["info"]["role"] == "assistant"


def test_a_session_without_children_is_a_tree_of_one(shop: Shop) -> None:
    made = tk(shop.data, "session", "create", "--title", "Alone", "--json").json["id"]
    assert tk(shop.data, "session", "tree", made).out.splitlines() == [f"{made}  idle  $0.00  Alone"]


async def test_the_origin_of_a_session_without_a_parent_is_not_named(tmp_path: Path) -> None:
    async with turnkeeper.open("memory:", directory=tmp_path) as opened:
        root = await opened.create(title="Root")
        child = await opened.create(title="Child", parent_id=root.id)
        grandchild = await opened.create(title="Grandchild", parent_id=child.id)
        assert await origin(opened.get, root.id) == ""
        assert await origin(opened.get, grandchild.id) == f"asked by Grandchild, for {root.id}"
        await opened.remove(root.id)
        assert await origin(opened.get, child.id) == ""
