"""``turnkeeper run`` against real HTTP: key and address from the environment alone, failures, stops and kills."""

import json
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from cli_store import command
from shop_runs import KEY, MODELS, environ, history, run
from workshop import Shop

from turnkeeper.providers.script import Gate, Script
from turnkeeper.testing.server import ScriptedServer


@asynccontextmanager
async def started(shop: Shop, env: dict[str, str], *words: str) -> AsyncIterator[anyio.abc.Process]:
    async with await anyio.open_process(
        command(*words), env=env, cwd=shop.project, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


async def status(shop: Shop, env: dict[str, str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((await run(shop, env, "session", "status", "--json")).stdout)["items"]
    return found


@pytest.mark.parametrize("protocol", MODELS)
async def test_a_key_and_an_address_in_the_environment_are_enough(shop: Shop, protocol: str) -> None:
    model, _, header = MODELS[protocol]
    script = Script().titles("Tides").calls("read", filePath="tides.py").then().says("It divides by 100.")
    async with ScriptedServer(script) as server:
        env = environ(shop, server, protocol)
        done = await run(shop, env, "run", "what does it do?")
        assert (done.returncode, done.stdout.decode()) == (0, "It divides by 100.\n"), done.stderr
        assert {one.protocol for one in server.requests} == {protocol}
        assert all(KEY in one.headers[header] for one in server.requests)
        said = done.stderr.decode()
        assert f"> build · {model}" in said
        assert "→ read tides.py" in said
        stats = json.loads((await run(shop, env, "stats", "--json")).stdout)
        assert stats["total"]["attempts"] == len(server.requests) == 3
        assert stats["total"]["cost"] > 0
        assert f"${stats['total']['cost']:.4f}" in said
        listed = json.loads((await run(shop, env, "session", "list", "--json")).stdout)
        assert [one["title"] for one in listed["items"]] == ["Tides"]


async def test_a_session_that_had_to_do_without_a_model_is_not_stuck_with_the_offline_one(shop: Shop) -> None:
    assert b"offline/tk-1" in (await run(shop, shop.environ(), "run", "read tides.py")).stderr
    async with ScriptedServer(Script().says("Hello from a real one.")) as server:
        done = await run(shop, environ(shop, server), "run", "-c", "and now?")
    assert (done.returncode, done.stdout) == (0, b"Hello from a real one.\n"), done.stderr


async def test_a_refused_key_is_one_clear_line_and_exit_code_1(shop: Shop) -> None:
    async with ScriptedServer(Script().titles("T").fails(401, message="invalid x-api-key")) as server:
        done = await run(shop, environ(shop, server), "run", "hello")
    assert (done.returncode, done.stdout) == (1, b"")
    [line] = [line for line in done.stderr.decode().splitlines() if line.startswith("✗")]
    assert "invalid x-api-key" in line
    assert "turnkeeper auth login anthropic" in line


@pytest.mark.parametrize("form", ["default", "json"])
@pytest.mark.parametrize(
    ("script", "said", "words"),
    [
        (lambda: Script().says("Half an ans").finishes("length"), "Half an ans", "the answer is cut off"),
        (lambda: Script().forever(), "", "the model gave an empty answer"),
        (lambda: Script().thinks("Hm.").forever(), "", "the model gave an empty answer"),
    ],
    ids=["cut off", "empty", "only thoughts"],
)
async def test_an_answer_that_is_cut_off_or_empty_is_told_and_is_exit_code_1(
    shop: Shop, script: Callable[[], Script], said: str, words: str, form: str
) -> None:
    async with ScriptedServer(script()) as server:
        done = await run(shop, environ(shop, server), "run", "--title", "T", "--format", form, "hello")
    assert done.returncode == 1, done.stderr
    assert said in done.stdout.decode()
    [line] = [line for line in done.stderr.decode().splitlines() if line.startswith("✗")]
    assert words in line


async def test_json_ends_with_the_failure(shop: Shop) -> None:
    async with ScriptedServer(Script().titles("T").fails(400, message="no such thing")) as server:
        done = await run(shop, environ(shop, server), "run", "--format", "json", "hello")
    last = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, last["type"], last["error"]["name"]) == (1, "error", "APIError")
    assert last["error"]["data"]["message"] == "no such thing"


async def test_ctrl_c_keeps_what_was_said_and_resume_goes_on(shop: Shop) -> None:
    gate = Gate()
    script = Script().titles("T").says("Half an answer. ").waits(gate).then().says("The other half.")
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        with shop.terminal("run", "hello", env=env) as seat:
            await anyio.to_thread.run_sync(seat.read_until, "Half an answer.")
            seat.process.send_signal(signal.SIGINT)
            assert await anyio.to_thread.run_sync(seat.end) == 130
        assert await status(shop, env) == []
        session_id, parts = await history(shop, env)
        assert [one["text"] for one in parts if one["type"] == "text"] == ["Half an answer. "]
        done = await run(shop, env, "session", "resume", session_id)
        assert (done.returncode, done.stdout.decode()) == (0, "The other half.\n"), done.stderr
    assert (await run(shop, env, "doctor")).returncode == 0


async def test_a_kill_in_the_middle_of_an_answer_is_told_and_resumed(shop: Shop) -> None:
    gate = Gate()
    said = "So much was said that it is on the disk. " * 100
    script = Script().titles("T").says(said).waits(gate).then().says("And the rest.")
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        async with started(shop, env, "run", "hello") as process:
            await gate.wait_reached()
            process.kill()
            await process.wait()
        [left] = await status(shop, env)
        assert (left["status"], left["alive"]) == ({"type": "busy"}, False)
        done = await run(shop, env, "session", "resume", str(left["sessionID"]))
        assert (done.returncode, done.stdout.decode()) == (0, "And the rest.\n"), done.stderr
        assert b"is gone" in done.stderr
        assert await status(shop, env) == []
    assert (await run(shop, env, "doctor")).returncode == 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
async def test_an_attempt_that_is_stopped_or_killed_is_in_the_ledger(shop: Shop, sent: signal.Signals) -> None:
    gate = Gate()
    script = Script().says("Half an answer. ").waits(gate).usage(input=1000, output=50)
    script = script.then().says("The rest.").usage(input=1100, output=3)
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        with shop.terminal("run", "--title", "T", "hello", env=env) as seat:
            await anyio.to_thread.run_sync(seat.read_until, "Half an answer.")
            seat.process.send_signal(sent)
            await anyio.to_thread.run_sync(seat.end)
        session_id, _ = await history(shop, env)
        assert (await run(shop, env, "session", "abort", session_id)).returncode == 0
        stats = json.loads((await run(shop, env, "stats", "--json")).stdout)
        # The provider counts the input at once, and one token of output. Dollars are exact.
        assert (stats["total"]["attempts"], stats["total"]["cost"]) == (1, 0.003015)
        assert (stats["total"]["tokens"]["input"], stats["total"]["tokens"]["output"]) == (1000, 1)
        assert (await run(shop, env, "session", "resume", session_id)).returncode == 0
        stats = json.loads((await run(shop, env, "stats", "--json")).stdout)
        assert (stats["total"]["attempts"], stats["total"]["cost"]) == (2, 0.00636)
        shown = json.loads((await run(shop, env, "session", "show", session_id, "--json")).stdout)
        assert shown["cost"] == 0.00636
    assert (await run(shop, env, "doctor")).returncode == 0
