"""Two servers of one store: a session that one of them runs, asked for at the other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from served import Served, served

from turnkeeper.model import event as e
from turnkeeper.model.status import BUSY, Owner
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.store.engine import Key, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.workspace.owner import this_process


class AsksNobody(MemoryEngine):
    """A store that takes no documents, so that no worker can be asked for anything."""

    is_cut = False

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        if self.is_cut:
            raise StoreUnavailable("the network is cut")
        await super().put(documents)


PROMPT = {"parts": [{"type": "text", "text": "go"}]}


async def run_at(server: Served, gate: Gate) -> str:
    """A session that this server runs and that waits at a gate."""
    session = await server.session()
    await server.post(f"/session/{session}/prompt_async", PROMPT, 204)
    await gate.wait_reached()
    return session


async def test_a_prompt_to_a_session_that_another_server_runs_is_answered_when_it_rests(tmp_path: Path) -> None:
    gate, store = Gate(), f"sqlite:{tmp_path / 'store.db'}"
    first = Scripted().waits(gate).says("one").then().says("two")
    async with served(tmp_path, first, store=store) as owner, served(tmp_path, store=store) as other:
        session = await run_at(owner, gate)
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await other.ask(session, "and then?"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            with anyio.fail_after(60):
                while len(await other.stage.tk.store.queries.waiting(session)) == 0:
                    await anyio.sleep(0)
            gate.open()
        assert [part["text"] for part in answers[0]["parts"] if part["type"] == "text"] == ["two"]
        told: Any = await other.get(f"/session/{session}/message")
        assert [one["info"]["role"] for one in told] == ["user", "assistant", "user", "assistant"]


async def test_a_prompt_is_run_here_if_the_server_that_ran_its_session_dies(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("here")) as server:
        session = await server.session()
        living = this_process().but(runtime="another")
        await server.stage.tk.store.journal.append(session, e.StatusChanged(status=BUSY, owner=living))
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await server.ask(session, "go"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            with anyio.fail_after(60):
                while len(await server.stage.tk.store.queries.waiting(session)) == 0:
                    await anyio.sleep(0)
            await anyio.wait_all_tasks_blocked()
            dead = Owner(host=living.host, pid=living.pid, started="before the flood")
            await server.stage.tk.store.journal.append(session, e.StatusChanged(status=BUSY, owner=dead))
        assert [part["text"] for part in answers[0]["parts"] if part["type"] == "text"] == ["here"]


@pytest.mark.parametrize("path", ["/session/{id}/abort", "/api/session/{id}/interrupt"])
async def test_a_server_has_another_one_stop_what_that_one_runs(tmp_path: Path, path: str) -> None:
    gate, store = Gate(), f"sqlite:{tmp_path / 'store.db'}"
    first = Scripted().waits(gate).says("one")
    async with served(tmp_path, first, store=store) as owner, served(tmp_path, store=store) as other:
        session = await run_at(owner, gate)
        await other.post(path.replace("{id}", session), status=200 if path.endswith("abort") else 204)
        with anyio.fail_after(60):
            while owner.stage.tk.running:  # It rests in the log a moment before its owner has put it away.
                await anyio.sleep(0)
        told: Any = await other.get(f"/session/{session}/message")
        assert told[-1]["info"]["error"]["name"] == "MessageAbortedError"


async def test_a_server_says_that_another_process_cannot_be_asked_to_stop(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        old = this_process().but(runtime="another")  # Of a version without leases.
        await server.stage.tk.store.journal.append(session, e.StatusChanged(status=BUSY, owner=old))
        refused: Any = await server.post(f"/session/{session}/abort", status=409)
        assert "is being run by process" in refused["message"]


async def test_the_second_generation_waits_for_what_another_server_runs(tmp_path: Path) -> None:
    gate, store = Gate(), f"sqlite:{tmp_path / 'store.db'}"
    first = Scripted().waits(gate).says("one")
    async with served(tmp_path, first, store=store) as owner, served(tmp_path, store=store) as other:
        session = await run_at(owner, gate)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: other.post(f"/api/session/{session}/wait", status=204))
            await anyio.wait_all_tasks_blocked()
            assert await other.get("/api/session/active") == {"data": {session: {"type": "running"}}}
            gate.open()
        assert await other.get("/api/session/active") == {"data": {}}


@pytest.mark.parametrize(
    ("path", "body", "acknowledged"),
    [
        ("/api/session/{}/prompt", {"id": "msg_once", "prompt": {"text": "go"}}, 200),
        ("/session/{}/prompt_async", {"messageID": "msg_once", **PROMPT}, 204),
    ],
)
async def test_a_prompt_is_acknowledged_when_a_worker_is_asked_and_not_before(
    tmp_path: Path, path: str, body: dict[str, Any], acknowledged: int
) -> None:
    engine = AsksNobody()
    async with served(tmp_path, store=engine, runs=False) as server:
        session = await server.session()
        engine.is_cut = True
        await server.post(path.format(session), body, 503)
        engine.is_cut = False
        assert (await server.stage.tk.cluster()).queue.sessions == 0
        await server.post(path.format(session), body, acknowledged)
        assert (await server.stage.tk.cluster()).queue.sessions == 1
