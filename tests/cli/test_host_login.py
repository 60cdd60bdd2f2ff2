"""``turnkeeper auth login URL``: a token from a command or a pipe, and the settings that a host publishes."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from subprocess import CompletedProcess
from typing import Any, Final

import anyio.to_thread
import pytest
from web_site import Page, Site, redirect, site
from workshop import Shop

from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.published import host_address
from turnkeeper.providers.script import Script
from turnkeeper.testing.server import ScriptedServer

PATH: Final = "/.well-known/opencode"
TOKEN: Final = "t0ken-of-the-harbour"
PRINTS: Final = [sys.executable, "-c", f"print({TOKEN[::-1]!r}[::-1])"]

Process = Callable[..., Awaitable["CompletedProcess[str]"]]


def page(value: object) -> Page:
    return Page(json.dumps(value).encode(), "application/json")


def login(command: object = PRINTS, env: object = "HARBOUR_TOKEN") -> dict[str, object]:
    return {"command": command, "env": env}


@asynccontextmanager
async def host(**published: object) -> AsyncIterator[tuple[Site, dict[str, Page]]]:
    pages: dict[str, Page] = {}
    async with site(pages) as found:
        pages[PATH] = page(published)
        yield found, pages


def process(shop: Shop) -> Process:
    async def run(*words: str, **more: str) -> "CompletedProcess[str]":
        return await anyio.to_thread.run_sync(partial(shop.process, *words, **more))

    return run


def stored(shop: Shop) -> Any:
    file = shop.data / "auth.json"
    return json.loads(file.read_text()) if file.exists() else {}


async def test_a_login_stores_the_token_and_the_settings_hold_until_the_logout(shop: Shop) -> None:
    run = process(shop)
    async with ScriptedServer(Script().says("high water").forever()) as provider:
        harbour = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": provider.url, "apiKey": "{env:HARBOUR_TOKEN}"},
            "models": {"large": {"limit": {"context": 100_000, "output": 1_000}}},
        }
        config = {"model": "harbour/large", "small_model": "harbour/large", "provider": {"harbour": harbour}}
        async with host(auth=login(), config=config) as (found, pages):
            made = await run("auth", "login", f"{found.url}/", "--yes", "--json")
            assert made.returncode == 0, made.stderr
            said = json.loads(made.stdout)
            assert (said["provider"], said["keys"]) == (found.url, ["model", "provider", "small_model"])
            entry = {"type": "wellknown", "key": "HARBOUR_TOKEN", "token": TOKEN}
            assert stored(shop) == {found.url: entry}
            [listed] = json.loads((await run("auth", "list", "--json")).stdout)["items"][:1]
            explained = json.loads((await run("config", "explain", "model", "--json")).stdout)["said"]
            assert [(one["layer"], one["where"]) for one in explained] == [("well-known", f"{found.url}{PATH}")]
            answered = await run("run", "when?")
            assert "high water" in answered.stdout, answered.stderr
            assert provider.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
            shown = [await run(*words.split()) for words in ("auth list", "config show", "config show --origin")]
            assert not any(TOKEN in one.stdout + one.stderr for one in (made, answered, *shown))
            assert listed["kind"] in ("wellknown", None)

            shop.configure(model="offline/tk-1")
            assert json.loads((await run("config", "show")).stdout)["model"] == "offline/tk-1"
            pages[PATH] = page({"auth": login(), "config": {"username": "Ada"}})
            assert (await run("config", "fetch")).returncode == 0
            assert json.loads((await run("config", "show")).stdout) == {"username": "Ada", "model": "offline/tk-1"}

            assert (await run("auth", "logout", f"{found.url}/")).returncode == 0
            assert stored(shop) == {}
            assert json.loads((shop.data / "well-known.json").read_text()) == {}
            assert json.loads((await run("config", "show")).stdout) == {"model": "offline/tk-1"}


async def test_without_a_yes_the_command_of_a_host_is_not_run(shop: Shop) -> None:
    trace = shop.home / "ran"
    command = [sys.executable, "-c", f"open({str(trace)!r}, 'w'); print('t')"]
    async with host(auth=login(command), config={"username": "Ada"}) as (found, _):
        refused = await process(shop)("auth", "login", found.url)
        assert (refused.returncode, "nobody can be asked" in refused.stderr) == (1, True)
        assert str(trace) in refused.stderr, "what would be run is shown"

        def at_terminal() -> tuple[int, str]:
            with shop.terminal("auth", "login", found.url) as seat:
                seat.read_until("Run it? [y/N] ")
                seat.types("n\n")
                return seat.end(), seat.seen

        code, seen = await anyio.to_thread.run_sync(at_terminal)
        assert (code, "nothing was stored" in seen) == (1, True)
        assert (trace.exists(), stored(shop)) == (False, {})


async def test_a_token_can_be_piped_in(shop: Shop) -> None:
    async with host(auth={"env": "HARBOUR_TOKEN"}, config={"username": "{env:HARBOUR_TOKEN}"}) as (found, _):
        run = process(shop)
        assert "pipe one in with --key -" in (await run("auth", "login", found.url, "--yes")).stderr
        made = await run("auth", "login", found.url, "--key", "-", stdin=f" {TOKEN}\n")
        assert (made.returncode, stored(shop)[found.url]["token"]) == (0, TOKEN)
        assert json.loads((await run("config", "show")).stdout) == {"username": "{env:HARBOUR_TOKEN}"}


@pytest.mark.parametrize(
    ("published", "said"),
    [
        ({}, "has no `auth`"),
        ({"auth": {"command": ["true"]}}, "has no settings"),
        ({"auth": login(env="A B")}, "no name of a variable"),
        ({"auth": login(["/nowhere/at/all"])}, "cannot be run"),
        ({"auth": login([sys.executable, "-c", "raise SystemExit(3)"])}, "failed with exit code 3"),
        ({"auth": login([sys.executable, "-c", ""])}, "there is no token"),
        ({"auth": login([sys.executable, "-c", "print('a b')"])}, "a token is one word"),
        ({"auth": login([sys.executable, "-c", "while True: print('x' * 9999)"])}, "prints more than a token"),
        ({"auth": login(), "config": {"permission": 5}}, "permission"),
        ({"auth": login(), "config": {"model": "{file:nowhere}"}}, "{file:nowhere} cannot be read"),
        ({"auth": login(), "remote_config": {"url": "http://harbour.example/more"}}, "has to begin with https://"),
        ([1], "has no settings"),
    ],
)
async def test_a_login_that_fails_stores_nothing_and_says_why(shop: Shop, published: object, said: str) -> None:
    async with host() as (found, pages):
        pages[PATH] = page(published)
        refused = await process(shop)("auth", "login", found.url, "--yes")
        assert (refused.returncode, stored(shop), (shop.data / "well-known.json").exists()) in (
            (1, {}, False),
            (2, {}, False),
        )
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr


async def test_no_redirect_takes_the_token_to_another_host(shop: Shop) -> None:
    headers = {"x-token": "{env:HARBOUR_TOKEN}"}
    async with host() as (other, _), host() as (found, pages):
        pages["/more"] = redirect(f"{other.url}/more")
        pages[PATH] = page({"auth": login(), "remote_config": {"url": f"{found.url}/more", "headers": headers}})
        refused = await process(shop)("auth", "login", found.url, "--yes")
        assert (refused.returncode, other.requests) == (1, [])
        assert f"which leads to {other.url}/more" in refused.stderr
        pages[PATH] = redirect(f"{other.url}{PATH}")
        assert (await process(shop)("auth", "login", found.url, "--yes")).returncode == 1
        assert other.requests == []


@pytest.mark.parametrize(
    "address",
    [
        "http://harbour.example",
        "http://127.0.0.1.harbour.example",
        "http://localhost.harbour.example",
        "https://ada:secret@harbour.example",
        "https://harbour.example/?a=b",
        "https://harbour.example/#a",
        "https://",
        "ftp://harbour.example",
        "https://[::1",
    ],
)
def test_an_address_that_should_not_be_believed_is_refused(address: str) -> None:
    with pytest.raises(Invalid):
        host_address(address)


@pytest.mark.parametrize(
    "address", ["https://harbour.example", "http://127.0.0.1:8080", "http://[::1]:8", "http://localhost"]
)
def test_https_and_this_machine_are_believed(address: str) -> None:
    assert host_address(f"{address}/") == address
