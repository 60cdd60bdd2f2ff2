"""Ctrl-C in the moment after Enter: whatever is on its way then is stopped."""

import asyncio
import json
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import anyio
from cli_store import command
from held_prompts import DEADLINE_S, held_prompts
from pane import Pane
from server_process import serving
from workshop import Shop

import turnkeeper
from turnkeeper.cli.failures import INTERRUPTED
from turnkeeper.cli.live import Live
from turnkeeper.cli.plain import Plain
from turnkeeper.run.coordinator import Outcome

Opens = Callable[..., AbstractContextManager[Pane]]
IDLE = r"Alt-Enter new line"
ENDLESS = "run `until test -e go; do sleep 0.05; done`"


def busy(url: str) -> object:
    """The sessions that a server runs."""
    with urllib.request.urlopen(f"{url}/session/status", timeout=DEADLINE_S) as answer:
        return json.load(answer)


def test_a_chat_stops_a_prompt_that_has_not_reached_the_server(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "allow"})
    with serving(shop) as url, held_prompts(url) as road, opens("chat", "--server", road.url) as at:
        at.shows("new session", IDLE)
        at.types(ENDLESS)
        at.presses("Enter")
        assert road.arrived.wait(DEADLINE_S)
        at.presses("C-c")
        assert road.answered.wait(DEADLINE_S)
        at.shows("■ stopped", IDLE)
        assert busy(url) == {}
        at.presses("C-d")
        at.shows("exit code 0")


def test_run_stops_a_prompt_that_has_not_reached_the_server(shop: Shop) -> None:
    shop.configure(permission={"bash": "allow"})
    with serving(shop) as url, held_prompts(url) as road:
        words = command("run", "--server", road.url, ENDLESS)
        with subprocess.Popen(words, cwd=shop.project, env=shop.environ(), stdin=subprocess.DEVNULL) as process:
            assert road.arrived.wait(DEADLINE_S)
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_S) == INTERRUPTED
        assert road.answered.wait(DEADLINE_S)
        assert busy(url) == {}


async def test_a_session_that_begins_to_run_as_it_is_stopped_is_stopped(tmp_path: Path) -> None:
    settings = turnkeeper.Settings(titles=False, environ={"HOME": str(tmp_path)})
    model = turnkeeper.Scripted().says("The wind ").hangs()
    async with turnkeeper.open("memory:", directory=tmp_path, provider=model, settings=settings) as tk:
        session = await tk.create()
        stop = asyncio.Event()

        async def work() -> Outcome:
            await tk.prompt(session.id, "Wind?", resume=False)
            stop.set()
            try:
                await anyio.sleep_forever()
            finally:
                tk.runtime.wake(session.id)  # Its next line, if the cancellation had come one step later.
            raise AssertionError("it never ends by itself")

        live = Live(as_json=False, thinking=False, auto=True, display=Plain(thinking=False))
        with anyio.fail_after(DEADLINE_S):
            assert await live.run(tk, session.id, work, stop=stop) == INTERRUPTED
        assert tk.running == frozenset()


async def test_what_was_stopped_before_it_began_is_not_sent(tmp_path: Path) -> None:
    settings = turnkeeper.Settings(titles=False, environ={"HOME": str(tmp_path)})
    async with turnkeeper.open("memory:", directory=tmp_path, settings=settings) as tk:
        session, stop = await tk.create(), asyncio.Event()
        stop.set()

        async def work() -> Outcome:
            raise AssertionError("it began")

        live = Live(as_json=False, thinking=False, auto=True, display=Plain(thinking=False))
        assert await live.run(tk, session.id, work, stop=stop) == INTERRUPTED
