"""A running server notices changed settings at the next boundary, and keeps the last good ones."""

import json
import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from served import DEADLINE_S
from served_process import Place

from turnkeeper.providers.script import Script
from turnkeeper.testing.server import ScriptedServer

PROVIDER = {
    "npm": "@ai-sdk/openai-compatible",
    "models": {name: {"limit": {"context": 100_000, "output": 1_000}} for name in ("one", "two")},
}


def configure(file: Path, provider: ScriptedServer, model: str, **more: object) -> None:
    acme = {**PROVIDER, "options": {"baseURL": provider.url, "apiKey": "none"}}
    given = {"model": f"acme/{model}", "small_model": f"acme/{model}", "provider": {"acme": acme}, **more}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(given))


async def answered(http: httpx2.AsyncClient, session: str) -> Any:
    body = {"parts": [{"type": "text", "text": "go"}]}
    answer = await http.post(f"/session/{session}/message", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["info"]["modelID"]


async def test_an_edit_holds_for_the_next_prompt_and_a_broken_one_is_told_once(tmp_path: Path) -> None:
    async with ScriptedServer(Script().says("yes").forever()) as provider:
        place = Place(tmp_path, provider)
        own = tmp_path / ".config/turnkeeper/turnkeeper.json"
        configure(own, provider, "one")
        async with place.serving() as (process, http):
            session = (await http.post("/session", json={"title": "t"})).json()["id"]
            assert await answered(http, session) == "one"
            configure(own, provider, "two")
            assert await answered(http, (await http.post("/session", json={"title": "u"})).json()["id"]) == "two"
            own.write_text('{"model": ')
            for _ in range(2):
                new = (await http.post("/session", json={"title": "v"})).json()["id"]
                assert await answered(http, new) == "two"
                assert (await http.get("/config")).json()["model"] == "acme/two"
            configure(own, provider, "one", permission={"bsh": "deny"})
            new = (await http.post("/session", json={"title": "w"})).json()["id"]
            assert await answered(http, new) == "two"
            configure(own, provider, "one")
            new = (await http.post("/session", json={"title": "x"})).json()["id"]
            assert await answered(http, new) == "one"
            process.terminate()
            said = process.communicate(timeout=60)[1]
        told = [line for line in said.splitlines() if "the last good settings of the file hold" in line]
        assert len(told) == 2, said
        assert f"{own}:1:11: Expecting value" in told[0]
        assert "there is no tool or permission 'bsh'" in told[1]


async def test_an_edit_that_changes_no_setting_is_told_of_once_all_the_same(tmp_path: Path) -> None:
    async with ScriptedServer(Script().says("yes").forever()) as provider:
        place = Place(tmp_path, provider)
        own = tmp_path / ".config/turnkeeper/turnkeeper.json"
        configure(own, provider, "one")
        async with place.serving() as (process, http):
            session = (await http.post("/session", json={"title": "t"})).json()["id"]
            assert await answered(http, session) == "one"
            configure(own, provider, "one", modle="acme/two")
            for _ in range(2):
                assert await answered(http, session) == "one"
            configure(own, provider, "one", modle="acme/two", username="ada", shell=7)
            assert await answered(http, session) == "one"
            process.terminate()
            said = process.communicate(timeout=60)[1]
        told = [line.partition(": ")[2] for line in said.splitlines() if str(own) in line]
        assert [line.split(": ", 1)[1] for line in told] == [
            "there is no setting 'modle'; did you mean 'model'?",
            "shell: Expected `str | null`, got `int`; it is left out",
        ]


async def test_a_server_that_begins_with_broken_settings_refuses_prompts_and_says_why(tmp_path: Path) -> None:
    async with ScriptedServer(Script().says("yes").forever()) as provider:
        place = Place(tmp_path, provider)
        own = tmp_path / ".config/turnkeeper/turnkeeper.json"
        configure(own, provider, "one", permission={"bsh": "deny"})
        async with place.serving() as (_, http):
            answer = await http.get("/config")
            assert answer.status_code == 400
            assert "there is no tool or permission 'bsh'; did you mean 'bash'?" in answer.text
            configure(own, provider, "one", permission={"bash": "deny"})
            session = (await http.post("/session", json={"title": "t"})).json()["id"]
            assert await answered(http, session) == "one"


async def test_an_edit_of_a_projects_file_only_narrows_until_it_is_trusted(tmp_path: Path) -> None:
    async with ScriptedServer(Script().says("yes").forever()) as provider:
        place = Place(tmp_path, provider)
        configure(tmp_path / ".config/turnkeeper/turnkeeper.json", provider, "one")
        project = tmp_path / "turnkeeper.json"
        project.write_text('{"model": "acme/two"}')
        async with place.serving() as (process, http):
            first = (await http.post("/session", json={"title": "t"})).json()["id"]
            assert await answered(http, first) == "two", "it is older than the server, which trusts it"
            project.write_text('{"model": "acme/two", "permission": {"bash": "deny"}}')
            second = (await http.post("/session", json={"title": "u"})).json()["id"]
            assert await answered(http, second) == "one"
            process.terminate()
            assert "turnkeeper.json: new or changed since the project was trusted" in process.communicate(timeout=60)[1]


async def test_a_server_that_watches_tells_of_a_mistake_without_a_prompt(tmp_path: Path) -> None:
    async with ScriptedServer(Script().says("yes").forever()) as provider:
        place = Place(tmp_path, provider)
        own = tmp_path / ".config/turnkeeper/turnkeeper.json"
        configure(own, provider, "one")
        async with place.serving(OPENCODE_EXPERIMENTAL_WATCHER="1") as (process, http):
            assert (await http.get("/config")).json()["model"] == "acme/one"
            assert await answered(http, (await http.post("/session", json={"title": "t"})).json()["id"]) == "one"
            own.write_text('{"model": ')
            await told(process, "the last good settings of the file hold")
            own.with_name("config.json").write_text("[")  # There are no last good settings of a new file.
            await told(process, "config.json:1:2: ")


async def told(process: "subprocess.Popen[str]", words: str) -> None:
    """Wait until a server logs a line with these words."""
    assert process.stderr is not None
    with anyio.fail_after(DEADLINE_S):
        while words not in (line := await anyio.to_thread.run_sync(process.stderr.readline)):
            assert line, "the server ended"


@pytest.mark.parametrize("names", ["OPENCODE", "TURNKEEPER"])
async def test_a_server_takes_its_password_and_user_from_variables(tmp_path: Path, names: str) -> None:
    variables = {"OPENCODE": ("OPENCODE_SERVER_PASSWORD", "OPENCODE_SERVER_USERNAME")}.get(
        names, ("TURNKEEPER_SERVER_PASSWORD", "TURNKEEPER_SERVER_USERNAME")
    )
    async with ScriptedServer(Script()) as provider:
        given = dict(zip(variables, ("t1des", "ada"), strict=True))
        async with Place(tmp_path, provider).serving(**given) as (_, http):
            tried = [None, ("opencode", "t1des"), ("ada", "t1des")]
            assert [(await http.get("/config", auth=one)).status_code for one in tried] == [401, 401, 200]
