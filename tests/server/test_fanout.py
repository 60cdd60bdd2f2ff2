"""Live text across processes: a server streams what another process says, as it is said, once and in order."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psycopg
import pytest
from served_process import Place
from stores import store_url

from turnkeeper.providers.script import Gate, Script
from turnkeeper.store.engines.postgres.address import parse
from turnkeeper.testing.server import ScriptedServer

DEADLINE_S = 120
FIRST = "".join(f"{number:<6}" for number in range(300))
HOSTILE = (
    '\'; DROP TABLE log; --\ndata: {}\n\nid: 1\r\n\u2028 %s \\u0000 "</script>" 👩‍👩‍👧 e\u0301 \U0010ffff\x1b[31m '
)
LISTENERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND application_name = %s AND query ~ 'LISTEN|pg_notify'"
)


class Stream:
    """What a subscriber is told of the texts of a session, and whether it is right."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.whole: dict[str, str] = {}
        self.is_idle = False
        self.events: list[dict[str, Any]] = []
        self._news = anyio.Event()

    def take(self, event: dict[str, Any]) -> None:
        properties = event["properties"]
        self.events.append(event)
        if event["type"] == "message.part.delta":
            part_id = properties["partID"]
            assert part_id in self.texts, "the part is told before its text"
            assert part_id not in self.whole, "no delta follows the whole text"
            assert properties["offset"] == len(self.texts[part_id]), "no text is missing or told twice"
            self.texts[part_id] += properties["delta"]
        elif event["type"] == "message.part.updated" and "messageID" in properties["part"]:
            part = properties["part"]
            if part["type"] == "text" and "time" in part:
                self.texts.setdefault(part["id"], part["text"])
                if "end" in part["time"]:
                    self.whole[part["id"]] = part["text"]
        self.is_idle = self.is_idle or event["type"] == "session.idle"
        self._news.set()

    @property
    def text(self) -> str:
        return "".join(self.texts.values())

    async def wait(self, text: str) -> None:
        """Wait until the deltas add up to this text."""
        while self.text != text:
            assert text.startswith(self.text)
            assert not self.whole, "the text was to come as deltas"
            self._news = anyio.Event()
            await self._news.wait()

    async def rest(self) -> None:
        while not self.is_idle:
            self._news = anyio.Event()
            await self._news.wait()


@asynccontextmanager
async def listening(http: httpx2.AsyncClient) -> AsyncIterator[Stream]:
    """A subscriber of a server, from when it is connected."""
    stream, connected = Stream(), anyio.Event()

    async def read() -> None:
        async with http.stream("GET", "/event", timeout=DEADLINE_S) as response:
            rest = b""
            async for chunk in response.aiter_bytes():
                *lines, rest = (rest + chunk).split(b"\n")  # Not at other line breaks, which text may have.
                for line in lines:
                    if line.startswith(b"data:"):
                        connected.set()
                        stream.take(json.loads(line.removeprefix(b"data:")))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await connected.wait()
        yield stream
        group.cancel_scope.cancel()


async def metric(http: httpx2.AsyncClient, name: str) -> int:
    told = (await http.get("/metrics")).text
    return int(next(line for line in told.splitlines() if line.startswith(f"{name} ")).split()[1])


@asynccontextmanager
async def two_servers(
    path: Path, url: str, script: Script
) -> AsyncIterator[tuple[httpx2.AsyncClient, httpx2.AsyncClient]]:
    """One that runs sessions and one that runs none, in processes of their own."""
    async with ScriptedServer(script) as provider, AsyncExitStack() as stack:
        place = Place(path, provider, url)
        place.configure()
        _, near = await stack.enter_async_context(place.serving())
        _, far = await stack.enter_async_context(place.serving("--no-run"))
        yield near, far


async def prompted(http: httpx2.AsyncClient) -> None:
    session = (await http.post("/session", json={"title": "titled"})).json()["id"]
    await asked(http, session, "go")


async def asked(http: httpx2.AsyncClient, session: str, text: str) -> None:
    answer = await http.post(f"/session/{session}/prompt_async", json={"parts": [{"type": "text", "text": text}]})
    assert answer.is_success, answer.text


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_what_one_server_says_is_streamed_by_another_while_it_is_said(tmp_path: Path, engine: str) -> None:
    first, second, hostile = Gate(), Gate(), HOSTILE * 20
    long = "漢字" * 10_000  # In one delta, and several times what Postgres carries at once.
    script = Script().says(FIRST, pieces=300).waits(first).says(hostile, pieces=40).says(long, pieces=1).waits(second)
    url = store_url(engine, tmp_path)
    with anyio.fail_after(DEADLINE_S):
        async with (
            two_servers(tmp_path, url, script) as (near, far),
            listening(far) as stream,
            listening(near) as own,
        ):
            await prompted(near)
            await stream.wait(FIRST)
            first.open()
            await stream.wait(FIRST + hostile + long)
            second.open()
            await stream.rest()
            await own.rest()
            assert own.whole == own.texts == stream.texts == stream.whole
            if engine == "postgres":
                assert await metric(far, "turnkeeper_live_heard_total") > 0
                assert await metric(near, "turnkeeper_live_sent_total") > 0
                assert await metric(near, "turnkeeper_live_heard_total") == 0


def is_user_text(event: dict[str, Any], text: str) -> bool:
    part = event["properties"].get("part", {})
    return event["type"] == "message.part.updated" and (part.get("type"), part.get("text")) == ("text", text)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_the_first_subscriber_is_told_nothing_of_turns_that_were_over_when_it_came(
    tmp_path: Path, engine: str
) -> None:
    script = Script().says("The first answer.").then().says("The second answer.")
    with anyio.fail_after(DEADLINE_S):
        async with two_servers(tmp_path, store_url(engine, tmp_path), script) as (near, far):
            session = (await far.post("/session", json={"title": "titled"})).json()["id"]
            async with listening(near) as own:
                await asked(near, session, "one")
                await own.rest()
            async with listening(far) as stream:
                await asked(near, session, "two")
                await stream.rest()
            assert list(stream.whole.values()) == ["The second answer."]
            assert [text for text in ("one", "two") if any(is_user_text(one, text) for one in stream.events)] == ["two"]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_subscriber_is_told_the_beginning_of_a_turn_of_a_session_that_its_server_never_read(
    tmp_path: Path, engine: str
) -> None:
    gate = Gate()
    script = Script().calls("bash", command="echo hello", description="greet").then().says("Done.").waits(gate)
    with anyio.fail_after(DEADLINE_S):
        async with two_servers(tmp_path, store_url(engine, tmp_path), script) as (near, far), listening(far) as stream:
            await prompted(near)
            await stream.wait("Done.")
            told = stream.events
            assert any(one["properties"].get("status", {}).get("type") == "busy" for one in told)
            assert any(is_user_text(one, "go") for one in told)
            assert any(one["properties"].get("part", {}).get("tool") == "bash" for one in told)
            gate.open()
            await stream.rest()
            assert list(stream.whole.values()) == ["Done."]


async def test_when_the_listening_connections_are_killed_the_rest_of_the_text_still_arrives(tmp_path: Path) -> None:
    gates = [Gate() for _ in range(4)]
    script = Script().says(FIRST, pieces=300)
    for gate in gates:
        script = script.waits(gate).says(FIRST, pieces=300)
    name = f"fanout{tmp_path.name}"[:60]
    url = f"{store_url('postgres', tmp_path)}&application_name={name}"
    with anyio.fail_after(DEADLINE_S):
        async with two_servers(tmp_path, url, script) as (near, far), listening(far) as stream:
            await prompted(near)
            said, killed = FIRST, 0
            with psycopg.connect(autocommit=True, **dict(parse(url).parameters)) as admin:  # type: ignore[arg-type]
                for gate in gates:
                    await stream.wait(said)
                    killed += admin.execute(LISTENERS, (name,)).rowcount
                    gate.open()
                    said += FIRST
            await stream.rest()
            assert killed >= 2, "each of the two servers had a connection that listens"
            assert list(stream.whole.values()) == [said]
            assert said.startswith(stream.text)  # The end of a text may come with the whole only.
