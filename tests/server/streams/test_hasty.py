"""Clients that go as soon as they are answered: their streams are given time first."""

from pathlib import Path

import anyio
import pytest
from heard import listening
from served import Served, served

from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.routes.event import hub
from turnkeeper.server.routes.turn import HASTE_S
from turnkeeper.server.streams.hub import Hub, HubSettings
from turnkeeper.testing.harness import VirtualTime

PROMPT = {"parts": [{"type": "text", "text": "Hello"}]}


def its_time(server: Served) -> VirtualTime:
    """The time of a hub that stands in the place of the server's own."""
    time = VirtualTime(server.stage.mint)
    settings = HubSettings(now=server.stage.mint.now, sleep=time.sleep)
    server.service.give(hub, Hub(server.stage.tk, str(server.stage.directory), settings))
    return time


async def test_opencode_is_answered_a_moment_after_its_stream_has_the_end(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Hi.")) as server:
        time = its_time(server)
        session = await server.session()
        answered = anyio.Event()

        async def ask() -> None:
            await server.post(f"/session/{session}/message", PROMPT, headers={"user-agent": "opencode/1.18.33"})
            answered.set()

        async with listening(server.service, "/event") as heard, anyio.create_task_group() as group:
            group.start_soon(ask)
            await heard.until_type("session.idle")
            await anyio.wait_all_tasks_blocked()
            assert not answered.is_set()
            time.advance(int(HASTE_S * 1000))
            await answered.wait()


@pytest.mark.parametrize("agent", ["node", "python"])
async def test_others_are_answered_at_once(tmp_path: Path, agent: str) -> None:
    async with served(tmp_path, Scripted().says("Hi.")) as server:
        its_time(server)  # It never passes.
        session = await server.session()
        async with listening(server.service, "/event") as heard:
            await server.post(f"/session/{session}/message", PROMPT, headers={"user-agent": agent})
            await heard.until_type("session.idle")


async def test_opencode_is_answered_at_once_if_nobody_listens(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Hi.")) as server:
        its_time(server)
        session = await server.session()
        await server.post(f"/session/{session}/message", PROMPT, headers={"user-agent": "opencode/1.18.33"})
