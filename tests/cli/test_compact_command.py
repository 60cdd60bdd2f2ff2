"""The command that lets a summary take the place of older history; over a real provider's wire."""

import json

import pytest
from shop_runs import environ, history, run
from workshop import Shop

from turnkeeper.providers.script import Script
from turnkeeper.testing.server import ScriptedServer

SUMMARY = "## Objective\nsay hello to the harbour"


@pytest.fixture
def script() -> Script:
    return Script().says("hello").then().says(SUMMARY).then().says("well").titles("Hello")


async def test_a_small_session_is_left_alone_unless_it_is_forced(shop: Shop, script: Script) -> None:
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "say hello to the harbour")
        session_id, _ = await history(shop, env)
        little = await run(shop, env, "session", "compact", session_id)
        assert (little.returncode, little.stdout) == (0, b"")
        assert b"with force they are compacted all the same" in little.stderr
        done = await run(shop, env, "session", "compact", session_id, "--force")
        assert done.returncode == 0
        assert done.stdout.decode() == f"{SUMMARY}\n"
        assert b"Compacted from about" in done.stderr
        again = await run(shop, env, "session", "compact", session_id, "--force")
        assert b"there is nothing to compact" in again.stderr


async def test_programs_get_the_summary_and_the_sizes(shop: Shop, script: Script) -> None:
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "say hello to the harbour")
        session_id, _ = await history(shop, env)
        done = json.loads((await run(shop, env, "session", "compact", session_id, "--force", "--json")).stdout)
        assert "nothing became smaller" in done["reason"]
        assert done["summary"] == SUMMARY
        assert done["before"] > 0


async def test_it_can_be_said_as_a_message(shop: Shop, script: Script) -> None:
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "say hello to the harbour")
        done = await run(shop, env, "run", "-c", "/compact")
        assert done.returncode == 0
        _, messages = await history(shop, env)
        assert messages[-1]["text"] == SUMMARY


async def test_a_summary_that_a_run_makes_on_the_way_is_not_printed_as_its_answer(shop: Shop) -> None:
    script = Script().says("one").then().overflows().then().says(SUMMARY).then().says("two").titles("Hello")
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "say hello to the harbour")
        done = await run(shop, env, "run", "-c", "and the sea")
        assert (done.returncode, done.stdout) == (0, b"two\n")
        assert b"Older history is being summarised." in done.stderr


async def test_a_summariser_that_is_refused_is_named_and_is_exit_code_1(shop: Shop) -> None:
    script = Script().says("hello").titles("Hello")
    for _ in range(2):
        script.then().fails(401, message="this key is not valid")
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "say hello to the harbour")
        session_id, _ = await history(shop, env)
        done = await run(shop, env, "session", "compact", session_id, "--force")
        assert done.returncode == 1
        assert b"this key is not valid" in done.stderr


async def test_what_is_no_model_is_refused(shop: Shop, script: Script) -> None:
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "say hello to the harbour")
        session_id, _ = await history(shop, env)
        for given, named in (("nonsense", b"nonsense"), ("acme/none", b"acme")):
            refused = await run(shop, env, "session", "compact", session_id, "--force", "--model", given)
            assert refused.returncode in (1, 2)
            assert named in refused.stderr
