"""The disk fills while a session runs: the request is answered, nothing stays busy, and no result is lost."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.lowlevel
import apsw
import pytest
from faulty_disk import FaultyDisk, faulty_disk
from served import Served, served

from turnkeeper.core.limits import RELEASE_RETRY_S
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.store.sqlite_layout import open_sqlite
from turnkeeper.testing.harness import a_tool
from turnkeeper.tools.tool import ToolContext

FULL = "the disk is full; make room and try again"


@dataclass
class World:
    """A server on a disk that a test can fill, with a tool that waits for that."""

    server: Served
    disk: FaultyDisk
    gates: list[Gate]
    """One for each call that was begun."""

    def fill(self) -> None:
        self.disk.fail(("write",), first=1, count=1_000_000, error=apsw.FullError)

    async def prompted(self, session: str, calls: int = 1) -> str:
        """What a prompt is answered if the disk fills when it has begun these calls."""
        answers = []

        async def ask() -> None:
            body = {"parts": [{"type": "text", "text": "work"}]}
            answers.append(await self.server.post(f"/session/{session}/message", body, 507))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            for number in range(calls):
                await self.gates[number].wait_reached()
            self.fill()
            for gate in self.gates:
                gate.open()
        return str(answers[0]["data"]["message"])

    async def is_busy(self, session: str) -> bool:
        return session in await self.server.get("/session/status")

    async def said(self, session: str) -> list[object]:
        """The texts and the outputs of the assistant, oldest first; of a call without output, its status."""
        found = []
        for message in await self.server.get(f"/session/{session}/message"):
            for part in message["parts"] if message["info"]["role"] == "assistant" else ():
                if part["type"] == "text":
                    found.append(part["text"])
                elif part["type"] == "tool":
                    found.append(part["state"].get("output", part["state"]["status"]))
        return found


@asynccontextmanager
async def world(directory: Path, script: Scripted) -> AsyncIterator[World]:
    gates = [Gate(), Gate()]
    free = iter(gates)

    async def waits(text: str, context: ToolContext) -> str:
        await next(free).pass_through()
        await context.progress(metadata={"said": text})
        return text

    with faulty_disk(directory.name) as disk:
        engine = await open_sqlite(directory / "store", vfs=directory.name)
        async with served(directory, script, store=engine, tools=[a_tool("waits", waits)]) as server:
            yield World(server, disk, gates)
            disk.heal()
            assert (await server.stage.tk.doctor()).problems == ()


def one_call() -> Scripted:
    return Scripted().calls("waits", text="one").then().says("answer").then().says("more")


def two_calls() -> Scripted:
    return Scripted().calls("waits", text="one").calls("waits", text="two").then().says("answer").then().says("more")


CALLS = pytest.mark.parametrize(
    ("script", "results"), [(one_call, ["one"]), (two_calls, ["one", "two"])], ids=["one call", "two calls"]
)


@CALLS
async def test_a_session_goes_on_with_its_results_once_there_is_room(
    tmp_path: Path, script: Callable[[], Scripted], results: list[str]
) -> None:
    async with world(tmp_path, script()) as full:
        session = await full.server.session()
        assert FULL in await full.prompted(session, len(results))
        full.disk.heal()
        await full.server.stage.time.asleep(RELEASE_RETRY_S)
        full.server.stage.time.advance(round(RELEASE_RETRY_S * 1000))
        with anyio.fail_after(60):
            while await full.said(session) != [*results, "answer"]:
                await anyio.lowlevel.checkpoint()
        await full.server.stage.tk.wait(session)
        assert not await full.is_busy(session)


@CALLS
async def test_a_prompt_that_finds_room_again_goes_on_from_the_results(
    tmp_path: Path, script: Callable[[], Scripted], results: list[str]
) -> None:
    async with world(tmp_path, script()) as full:
        session = await full.server.session()
        await full.prompted(session, len(results))
        full.disk.heal()
        await full.server.ask(session, "more")
        assert (await full.said(session))[: len(results)] == results
        assert not await full.is_busy(session)


async def test_a_call_that_the_full_disk_kept_from_starting_is_interrupted(tmp_path: Path) -> None:
    async with world(tmp_path, two_calls()) as full:
        session = await full.server.session()
        await full.prompted(session, 1)
        full.disk.heal()
        await full.server.post(f"/session/{session}/abort")
        assert set(await full.said(session)) <= {"one", "two", "error"}
        assert not await full.is_busy(session)


async def test_an_abort_is_refused_by_the_full_disk_alone_and_works_with_room(tmp_path: Path) -> None:
    async with world(tmp_path, one_call()) as full:
        session = await full.server.session()
        await full.prompted(session)
        refused = await full.server.post(f"/session/{session}/abort", status=507)
        assert FULL in refused["data"]["message"]
        full.disk.heal()
        assert await full.server.post(f"/session/{session}/abort") is True
        assert not await full.is_busy(session)
        assert await full.said(session) == ["one"]


async def test_a_session_whose_release_waits_for_room_can_be_removed(tmp_path: Path) -> None:
    async with world(tmp_path, one_call()) as full:
        session = await full.server.session()
        await full.prompted(session)
        full.disk.heal()
        assert await full.server.call("DELETE", f"/session/{session}") is True


async def test_the_result_of_a_users_command_is_kept_until_there_is_room(tmp_path: Path) -> None:
    async with world(tmp_path, one_call()) as full:
        session = await full.server.session()
        fifo = tmp_path / "fifo"
        body = {"agent": "build", "command": f"mkfifo {fifo}; echo begun > {fifo}; cat {fifo}"}
        refused = []

        async def run() -> None:
            refused.append(await full.server.post(f"/session/{session}/shell", body, 507))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                while not fifo.exists():
                    await anyio.lowlevel.checkpoint()
                assert await anyio.Path(fifo).read_text() == "begun\n"
                full.fill()
                await anyio.Path(fifo).write_text("ended\n")
        assert FULL in refused[0]["data"]["message"]
        full.disk.heal()
        await full.server.post(f"/session/{session}/abort")
        assert await full.said(session) == ["ended"]


async def test_a_store_that_is_closed_with_room_again_keeps_the_results(tmp_path: Path) -> None:
    async with world(tmp_path, one_call()) as full:
        session = await full.server.session()
        await full.prompted(session)
        full.disk.heal()
    async with served(tmp_path, one_call(), store=f"sqlite:{tmp_path}/store") as server:
        assert not await World(server, full.disk, full.gates).is_busy(session)
        assert await World(server, full.disk, full.gates).said(session) == ["one"]
