"""What a configuration takes from variables and files is not shown to clients."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from narrow import of_type
from served import Served, served

from turnkeeper.server.service import ServerOptions
from turnkeeper.testing.harness import CONFIG, MODEL

ENVIRON = {"TK_TEST_SECRET": 's3cr"et', "TK_TEST_MODEL": "acme/large", "TK_TEST_STEPS": "7"}

SETTINGS: dict[str, Any] = {
    "model": "{env:TK_TEST_MODEL}",
    "small_model": "acme/{env:TK_TEST_SECRET}",
    "default_agent": "helper",
    "username": "{env:TK_TEST_SECRET}",
    "instructions": ["https://me:s3cr%22et@example.com/rules.md", "{file:./secret.txt}"],
    "permission": {"bash": {"curl *{env:TK_TEST_SECRET}*": "deny"}},
    "agent": {
        "helper": {
            "prompt": "{file:./secret.txt}",
            "description": "knows {env:TK_TEST_SECRET}",
            "model": "acme/{env:TK_TEST_SECRET}",
            "options": {"nested": [{"key": "{env:TK_TEST_SECRET}"}]},
        }
    },
    "command": {"deploy": {"template": "token {env:TK_TEST_SECRET}", "description": "{file:./secret.txt}"}},
    "provider": {
        "acme": {
            **of_type(dict, CONFIG["provider"])["acme"],
            "name": "Acme of {env:TK_TEST_SECRET}",
            "options": {"baseURL": "http://me:{env:TK_TEST_SECRET}@localhost:1/v1", "apiKey": "{env:TK_TEST_SECRET}"},
            "models": {
                "large": {**MODEL, "variants": {"high": {"key": "{env:TK_TEST_SECRET}"}}},
                "{env:TK_TEST_SECRET}": MODEL,
            },
        }
    },
}

PATHS = [
    *("/config", "/agent", "/command", "/provider", "/config/providers"),
    *("/api/agent", "/api/model", "/api/provider", "/api/command"),
]


@asynccontextmanager
async def configured(directory: Path) -> AsyncIterator[Served]:
    """A server whose settings refer to variables and to a file."""
    (directory / "secret.txt").write_text("filesecret\n")
    options = ServerOptions(environ={"HOME": str(directory), "TURNKEEPER_TRUST": "1", **ENVIRON})
    async with served(directory, config=SETTINGS, environ=ENVIRON, options=options) as server:
        yield server


@pytest.mark.parametrize("path", PATHS)
async def test_no_list_shows_the_content_of_a_variable_or_a_file(tmp_path: Path, path: str) -> None:
    async with configured(tmp_path) as server:
        answer = await server.http.get(path)
        assert answer.status_code == 200, answer.text
        for secret in ("s3cr", "filesecret"):
            assert secret not in answer.text


async def test_settings_are_shown_as_they_were_written(tmp_path: Path) -> None:
    async with configured(tmp_path) as server:
        config: Any = await server.get("/config")
        assert config["username"] == "{env:TK_TEST_SECRET}"
        assert config["instructions"] == ["https://***@example.com/rules.md", "{file:./secret.txt}"]
        assert config["agent"]["helper"]["options"] == {"nested": [{"key": "{env:TK_TEST_SECRET}"}]}
        assert config["command"]["deploy"]["template"] == "token {env:TK_TEST_SECRET}"
        agents: Any = await server.get("/agent")
        [helper] = [one for one in agents if one["name"] == "helper"]
        assert (helper["prompt"], helper["description"]) == ("{file:./secret.txt}", "knows {env:TK_TEST_SECRET}")


async def test_what_clients_act_on_is_shown_filled_in(tmp_path: Path) -> None:
    async with configured(tmp_path) as server:
        config: Any = await server.get("/config")
        assert (config["model"], config["small_model"]) == ("acme/large", "acme/{env:TK_TEST_SECRET}")
        assert list(config["provider"]["acme"]["models"]) == ["large", "{env:TK_TEST_SECRET}"]
        agents: Any = await server.get("/agent")
        assert {"build", "plan", "helper"} <= {one["name"] for one in agents}


@pytest.mark.parametrize("model", ["{env:TK_TEST_SECRET}", "acme/{env:TK_TEST_SECRET}"])
async def test_a_model_that_is_a_secret_is_shown_as_it_was_written(tmp_path: Path, model: str) -> None:
    options = ServerOptions(environ={"HOME": str(tmp_path), "TURNKEEPER_TRUST": "1", **ENVIRON})
    async with served(tmp_path, config={"model": model}, environ=ENVIRON, options=options) as server:
        assert (await server.get("/config"))["model"] == model


async def test_an_address_is_shown_without_its_query(tmp_path: Path) -> None:
    config = {"instructions": ["https://example.com/rules.md?key=abc#top"]}
    async with served(tmp_path, config=config) as server:
        shown: Any = await server.get("/config")
        assert shown["instructions"] == ["https://example.com/rules.md?***#top"]
