"""``turnkeeper models test``: it asks before money is spent, and its exit code is the verdict."""

import json
from pathlib import Path

from anyio.to_thread import run_sync
from workshop import Shop

from turnkeeper.testing import Script, ScriptedServer, replay_check

KEY = "sk-very-secret"


def configure(shop: Shop, url: str) -> None:
    model = {"name": "Large", "cost": {"input": 3, "output": 15}, "limit": {"context": 200000, "output": 8000}}
    options = {"baseURL": url, "apiKey": KEY}
    shop.configure(provider={"host": {"protocol": "openai-chat", "options": options, "models": {"large": model}}})


async def test_verdicts_cost_and_the_recording_are_told(shop: Shop, tmp_path: Path) -> None:
    script = Script().says("ready").then().calls("get_weather", city="Bern").then()
    script = script.calls("StructuredOutput", sum=42).then().says("ready").forever()
    file = tmp_path / "large.json"
    async with ScriptedServer(script) as server:
        configure(shop, server.url)
        words = ("models", "test", "host/large", "--yes", "--record", str(file), "--json")
        run = await run_sync(lambda: shop.process(*words, TURNKEEPER_TRUST="1"))
        again = await run_sync(lambda: shop.process(*words, TURNKEEPER_TRUST="1"))
    found = json.loads(run.stdout)
    assert {one["check"]: one["verdict"] for one in found["checks"]} == {
        "text": "ok",
        "usage": "ok",
        "tool call": "ok",
        "structured output": "ok",
        "image": "not supported",
        "cache": "not supported",
    }
    assert (run.returncode, found["requests"], found["tokens"]) == (0, 5, {"input": 50, "output": 25})
    assert found["cost"] > 0
    assert "is asked up to 7 times; it costs at most about $0.0" in run.stderr
    assert KEY not in run.stdout + run.stderr + file.read_text()
    assert (again.returncode, len(server.requests)) == (1, 5)
    assert "exists" in again.stderr
    assert len(await replay_check(file)) == 6


async def test_a_refused_key_is_exit_code_1_with_the_hosts_words(shop: Shop) -> None:
    async with ScriptedServer(Script().fails(401, message=f"no such key {KEY}").forever()) as server:
        configure(shop, server.url)
        run = await run_sync(lambda: shop.process("models", "test", "host/large", "--yes", TURNKEEPER_TRUST="1"))
    assert run.returncode == 1
    assert "text               failed         " in run.stdout
    assert "no such key" in run.stdout
    assert run.stdout.endswith("1 request, 0 tokens in and 0 out, $0.00\n")
    assert "cache              skipped        there was no answer to the first request" in run.stdout
    assert KEY not in run.stdout + run.stderr


async def test_what_a_model_without_a_price_cost_is_not_known(shop: Shop) -> None:
    async with ScriptedServer(Script().says("ready").forever()) as server:
        options = {"baseURL": server.url, "apiKey": KEY}
        shop.configure(provider={"host": {"protocol": "openai-chat", "options": options, "models": {"large": {}}}})
        run = await run_sync(lambda: shop.process("models", "test", "host/large", "--yes", TURNKEEPER_TRUST="1"))
    assert run.stdout.endswith(" out, cost unknown\n")


def test_nothing_is_sent_without_consent_key_or_host(shop: Shop) -> None:
    configure(shop, "http://127.0.0.1:9/v1")
    unasked = shop.process("models", "test", "host/large", TURNKEEPER_TRUST="1")
    assert (unasked.returncode, "--yes agrees" in unasked.stderr) == (1, True)
    keyless = shop.process("models", "test", "anthropic/claude-haiku-4-5", "--yes")
    assert (keyless.returncode, "auth login anthropic" in keyless.stderr) == (1, True)
    offline = shop.process("models", "test", "offline/tk-1", "--yes")
    assert (offline.returncode, "no host to ask" in offline.stderr) == (1, True)
    with shop.terminal("models", "test", "host/large", env={"TURNKEEPER_TRUST": "1"}) as seat:
        seat.read_until("Go on? [y/N] ")
        seat.types("n\n")
        assert seat.end() == 1
    assert "nothing was sent" in seat.seen
