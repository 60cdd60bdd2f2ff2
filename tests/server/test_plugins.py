"""Plugins in a running server: clients are told what went wrong last, and an edited or removed plugin is followed."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import httpx2
from served import DEADLINE_S
from served_process import Place

from turnkeeper.providers.script import Script
from turnkeeper.testing.server import ScriptedServer

BAD: Final = """
def plugin(context, options):
    def headers(input, output):
        raise KeyError("tide")
    def system(input, output):
        output.system.append("The tide is low.")
    def greet(name: str) -> str:
        "Greets."
        return name
    return {"chat.headers": headers, "experimental.chat.system.transform": system, "tool": {"greet": greet}}
"""


def put(place: Path, text: str) -> Path:
    file = place / ".config/turnkeeper/plugins/tide.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


async def answered(http: httpx2.AsyncClient) -> None:
    session = (await http.post("/session", json={"title": "t"})).json()["id"]
    answer = await http.post(f"/session/{session}/message", json={"parts": [{"type": "text", "text": "go"}]})
    assert answer.status_code == 200, answer.text


async def listed(http: httpx2.AsyncClient) -> list[dict[str, Any]]:
    answer = await http.get("/plugin")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def command(place: Path, url: str, *words: str) -> "subprocess.CompletedProcess[str]":
    environ = {"HOME": str(place), "PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-m", "turnkeeper.cli.main", "plugin", "list", "--server", url, *words],
        cwd=place,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


async def test_a_server_tells_the_last_error_of_each_plugin_and_follows_its_file(tmp_path: Path) -> None:
    async with ScriptedServer(Script().says("yes").forever()) as provider:
        place = Place(tmp_path, provider)
        place.configure()
        file = put(tmp_path, BAD)
        async with place.serving() as (_, http):
            [before] = await listed(http)
            hooks = ["chat.headers", "experimental.chat.system.transform", "tool"]
            assert before == {
                "name": "tide",
                "kind": "file",
                "source": str(file),
                "hooks": hooks,
                "state": "loaded",
                "error": None,
                "failures": 0,
                "failedAt": None,
                "stopped": [],
            }
            for _ in range(2):
                await answered(http)
            [after] = await listed(http)
            assert (after["state"], after["error"]) == ("loaded", "chat.headers: KeyError: 'tide'")
            assert after["failures"] >= 2
            assert after["failedAt"] > 1_600_000_000_000
            assert "The tide is low." in str(provider.requests[0].body)

            ask = partial(command, tmp_path, str(http.base_url))
            run = await anyio.to_thread.run_sync(partial(ask, "--json"))
            [row] = json.loads(run.stdout)["items"]
            assert (row["error"], row["failures"]) == (after["error"], after["failures"]), run.stderr
            shown = (await anyio.to_thread.run_sync(ask)).stdout
            assert f"chat.headers: KeyError: 'tide' ({after['failures']} times)" in shown

            put(tmp_path, BAD.replace("raise KeyError", "print").replace("is low", "is high"))
            await answered(http)
            assert "The tide is high." in str(provider.requests[-1].body)
            assert [(one["error"], one["failures"]) for one in await listed(http)] == [(None, 0)]
            put(tmp_path, "def plugin(")
            [broken] = await listed(http)
            assert (broken["state"], broken["hooks"], "SyntaxError" in broken["error"]) == ("failed", [], True)
            file.unlink()
            await answered(http)
            assert "The tide is" not in str(provider.requests[-1].body)
            assert await listed(http) == []
            assert "greet" not in (await http.get("/experimental/tool/ids")).json()


async def test_an_error_that_quotes_a_secret_of_the_settings_is_masked(tmp_path: Path) -> None:
    async with ScriptedServer(Script().says("yes").forever()) as provider:
        place = Place(tmp_path, provider)
        place.configure(key="{env:TIDE_WORD}")
        put(tmp_path, "def plugin(context, options):\n    raise ValueError('with ' + context.environ['TIDE_WORD'])\n")
        async with place.serving(TIDE_WORD="s3cret-w0rd") as (_, http):
            [found] = await listed(http)
            assert found["error"] == "ValueError: with {env:TIDE_WORD}"
