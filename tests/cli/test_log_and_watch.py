"""``session log`` and ``session watch``: what another process does, as it does it, without touching it."""

import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from anyio.streams.text import TextReceiveStream
from cli_store import Family, api, command, environment, tk
from served_process import Place
from shop_runs import environ, history, run
from steps import left_open
from workshop import Shop

from turnkeeper.cli.feed import FinishedParts
from turnkeeper.client import Client
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import TextPart
from turnkeeper.model.parts.base import Span
from turnkeeper.providers.script import Gate, Script
from turnkeeper.testing.server import ScriptedServer

DEADLINE_S = 60


@asynccontextmanager
async def started(shop: Shop, env: dict[str, str], *words: str) -> AsyncIterator[anyio.abc.Process]:
    async with await anyio.open_process(command(*words), env=env, cwd=shop.project, stdin=subprocess.DEVNULL) as made:
        try:
            yield made
        finally:
            if made.returncode is None:
                made.kill()


async def read_until(stream: anyio.abc.ByteReceiveStream | None, wanted: str) -> str:
    """What came up to these words, or (empty) up to the end."""
    assert stream is not None
    seen = ""
    with anyio.fail_after(DEADLINE_S):
        try:
            async for more in TextReceiveStream(stream):
                seen += more
                if wanted and wanted in seen:
                    break
        except anyio.EndOfStream:
            pass
    return seen


def test_the_log_has_a_line_for_each_event(data: Path, family: Family) -> None:
    said = tk(data, "session", "log", family.root.id)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert lines[0].split()[3:] == ["session.created", "Wind", "over", "the", "bay", "in", str(data)]
    assert [line.split()[3] for line in lines[1:4]] == ["message.recorded"] * 3
    assert lines[-1].split()[3:] == ["todos.set", "3", "todos"]
    assert all(len(line) <= 160 for line in lines)
    assert tk(data, "session", "log", family.root.slug, "--from", str(len(lines))).out.splitlines() == lines[-1:]
    assert tk(data, "session", "log", family.root.id, "--from", "99").out == ""


def test_json_gives_the_events_as_they_are_stored(data: Path, family: Family) -> None:
    found = [json.loads(line) for line in tk(data, "session", "log", family.root.id, "--json").out.splitlines()]
    stored = api(data, lambda opened: opened.store.engine.read(family.root.id))
    assert found == [json.loads(one) for one in stored]
    assert [one["seq"] for one in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("nobody-at-all",), 1, "there is no session"),
        (("--from", "-1", "x"), 2, "is not the number of an event"),
        (("--from", "two", "x"), 2, "is not the number of an event"),
        (("x", "--server", "http://127.0.0.1:9"), 2, "session log needs a store"),
    ],
)
def test_a_wrong_command_is_refused(data: Path, family: Family, words: tuple[str, ...], code: int, why: str) -> None:
    done = subprocess.run(
        command("session", "log", *words), env=environment(data), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert why in done.stderr


async def test_a_followed_log_goes_on_with_events_of_others_until_ctrl_c(shop: Shop) -> None:
    async with ScriptedServer(Script().titles("T").says("One.").then().says("Two.").forever()) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "hello")
        session_id, _ = await history(shop, env)
        async with started(shop, env, "session", "log", session_id, "--follow") as log:
            assert "text: One." in await read_until(log.stdout, "turn.ended")
            assert (await run(shop, env, "run", "-c", "again")).returncode == 0
            assert "prompt.admitted" in await read_until(log.stdout, "turn.ended")
            log.send_signal(signal.SIGINT)
            assert "Traceback" not in await read_until(log.stderr, "")
            assert await log.wait() == 0


async def test_a_followed_log_ends_when_the_session_is_deleted(shop: Shop) -> None:
    async with ScriptedServer(Script().titles("T").says("One.")) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "hello")
        session_id, _ = await history(shop, env)
        async with started(shop, env, "session", "log", session_id, "-f", "--json") as log:
            await read_until(log.stdout, "turn.ended")
            await run(shop, env, "session", "delete", session_id, "--yes")
            assert f"{session_id} was deleted." in await read_until(log.stderr, "")
            assert await log.wait() == 0


async def test_a_session_of_another_process_is_watched_from_the_beginning_of_its_turn(shop: Shop) -> None:
    gate = Gate()
    script = Script().titles("T").calls("read", filePath="tides.py").then().says("Half an answer. " * 200)
    script.waits(gate).says("The other half.")
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        async with started(shop, env, "run", "hello") as running:
            with anyio.fail_after(DEADLINE_S):
                await gate.wait_reached()
            [one] = json.loads((await run(shop, env, "session", "status", "--json")).stdout)["items"]
            async with started(shop, env, "session", "watch", str(one["sessionID"])) as watch:
                await read_until(watch.stderr, "> build")
                gate.open()
                shown = await read_until(watch.stdout, "")
                assert await watch.wait() == 0
            assert await running.wait() == 0
            own = await read_until(running.stdout, "")
    assert shown.endswith("The other half.\n")
    assert own == shown


async def test_ctrl_c_ends_the_watching_and_not_the_session(shop: Shop) -> None:
    gate = Gate()
    script = Script().titles("T").says("Half an answer. " * 200).waits(gate).says("The other half.")
    async with ScriptedServer(script) as server:
        env = environ(shop, server)
        async with started(shop, env, "run", "hello") as running:
            with anyio.fail_after(DEADLINE_S):
                await gate.wait_reached()
            [one] = json.loads((await run(shop, env, "session", "status", "--json")).stdout)["items"]
            with shop.terminal("session", "watch", str(one["sessionID"]), env=env) as seat:
                await to_thread.run_sync(seat.read_until, "Half an answer.")
                seat.process.send_signal(signal.SIGINT)
                assert await to_thread.run_sync(seat.end) == 0
            gate.open()
            assert (await read_until(running.stdout, "")).endswith("The other half.\n")
            assert await running.wait() == 0
    assert (await run(shop, env, "doctor")).returncode == 0


async def test_an_idle_session_is_told_and_with_follow_its_next_run_is_shown(shop: Shop) -> None:
    async with ScriptedServer(Script().titles("T").says("One.").then().says("Two.").forever()) as server:
        env = environ(shop, server)
        await run(shop, env, "run", "hello")
        session_id, _ = await history(shop, env)
        done = await run(shop, env, "session", "watch", session_id)
        assert (done.returncode, done.stdout, b"is idle" in done.stderr) == (0, b"", True)
        async with started(shop, env, "session", "watch", session_id, "-f", "--json") as watch:
            await run(shop, env, "run", "-c", "again")
            line = (await read_until(watch.stdout, "step_finish")).splitlines()
            assert "Two." in [json.loads(one)["part"].get("text") for one in line if '"text"' in one]
            await run(shop, env, "session", "delete", session_id, "--yes")
            assert "was deleted" in await read_until(watch.stderr, "")
            assert await watch.wait() == 0


def test_a_part_that_is_finished_is_told_of_once_and_one_that_is_open_as_often_as_it_changes() -> None:
    finished = FinishedParts()

    def told(part: TextPart) -> bool:
        properties = {"part": part}
        one = Notification(type="message.part.updated", session_id="s", directory="", seq=1, properties=properties)
        return finished.is_repeated(one)

    part = TextPart(id="prt_1", session_id="s", message_id="m", text="Half", time=Span(start=1))
    whole = part.but(text="Half and half", time=Span(start=1, end=2))
    assert [told(one) for one in (part, part, whole, whole, part)] == [False, False, False, True, True]
    assert not told(whole.but(id="prt_2"))


def test_a_session_whose_process_is_gone_is_said_to_be_left(shop: Shop) -> None:
    session_id = api(shop.data, lambda opened: left_open(opened, str(shop.project)))
    said = tk(shop.data, "session", "watch", session_id)
    assert said.code == 1
    assert f"`turnkeeper session resume {session_id}` goes on." in said.err


async def test_a_failed_turn_is_exit_code_1(shop: Shop) -> None:
    gate = Gate()
    async with ScriptedServer(Script().titles("T").waits(gate).fails(400, message="no such thing")) as server:
        env = environ(shop, server)
        async with started(shop, env, "run", "hello") as running:
            with anyio.fail_after(DEADLINE_S):
                await gate.wait_reached()
            [one] = json.loads((await run(shop, env, "session", "status", "--json")).stdout)["items"]
            async with started(shop, env, "session", "watch", str(one["sessionID"])) as watch:
                await read_until(watch.stderr, "> build")
                gate.open()
                assert "no such thing" in await read_until(watch.stderr, "")
                assert await watch.wait() == 1
            await running.wait()


async def test_a_session_of_a_server_is_watched(tmp_path: Path, shop: Shop) -> None:
    gate = Gate()
    async with ScriptedServer(Script().titles("T").says("Half. ").waits(gate).says("Whole.")) as provider:
        place = Place(tmp_path / "served", provider)
        place.path.mkdir()
        place.configure()
        async with place.serving() as (_, http):
            url = str(http.base_url)
            async with Client(url) as client:
                session = await client.create()
                await client.prompt_async(session.id, "hello")
                with anyio.fail_after(DEADLINE_S):
                    await gate.wait_reached()
                async with started(shop, shop.environ(), "session", "watch", session.id, "--server", url) as watch:
                    await read_until(watch.stderr, "> build")
                    gate.open()
                    assert await read_until(watch.stdout, "") == "Half. Whole.\n"
                    assert await watch.wait() == 0
