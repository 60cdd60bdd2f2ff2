"""A request to the user waits through a kill of the server, as its clients see it."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from cli_store import command, tk
from workshop import Shop

from turnkeeper.client import Client
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted

DEADLINE_S = 90


@asynccontextmanager
async def serving(shop: Shop, *more: str) -> AsyncIterator[tuple["subprocess.Popen[str]", Client]]:
    """A server in a process of its own, and a client of it."""
    words = command("serve", "--port", "0", "--json", *more)
    with subprocess.Popen(
        words, cwd=shop.project, env=shop.environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = await anyio.to_thread.run_sync(process.stdout.readline)
            assert line, process.communicate()[1]
            async with Client(json.loads(line)["url"], directory=shop.project) as client:
                yield process, client
        finally:
            process.kill()


async def asked(client: Client, session_id: str) -> None:
    """Send a prompt, and wait until its call asks."""
    async with client.subscribe() as heard:
        await client.prompt_async(session_id, "read .env")
        async for one in heard:
            if isinstance(one, Notification) and one.type == "permission.asked":
                return


async def outputs(client: Client, session_id: str) -> list[str]:
    found = (await client.messages(session_id)).items
    states = [part.state for message in found for part in message.parts if isinstance(part, ToolPart)]
    return [state.output if isinstance(state, ToolCompleted) else type(state).__name__ for state in states]


async def test_killed_and_started_again_a_server_lists_the_request_and_its_answer_lets_the_call_run(shop: Shop) -> None:
    (shop.project / ".env").write_text("WIND=7\n")
    with anyio.fail_after(DEADLINE_S):
        async with serving(shop) as (process, client):
            session_id = (await client.create(title="Tides")).id
            await asked(client, session_id)
            before = await client.permissions()
            process.kill()
            await anyio.to_thread.run_sync(process.wait)
        async with serving(shop) as (_, client):
            [request] = after = await client.permissions()
            assert after == before
            await client.reply(request.id, "once")
            await client.wait(session_id)
            [output] = await outputs(client, session_id)
            assert "WIND=7" in output
            assert await client.permissions() == ()


async def test_the_command_line_answers_what_a_living_server_asks(shop: Shop) -> None:
    (shop.project / ".env").write_text("WIND=7\n")
    with anyio.fail_after(DEADLINE_S):
        async with serving(shop) as (_, client):
            session_id = (await client.create(title="Tides")).id
            await asked(client, session_id)
            [request] = await client.permissions()
            given = await anyio.to_thread.run_sync(tk, shop.data, "permission", "allow", request.id, "--json")
            assert given.json == {"id": request.id, "sessionID": session_id, "answer": "once"}
            await client.wait(session_id)
            [output] = await outputs(client, session_id)
            assert "WIND=7" in output


@pytest.mark.parametrize("is_living", [True, False], ids=["asked by it", "asked by a dead one"])
@pytest.mark.parametrize("engine", ["sqlite", "files"])
async def test_a_server_finds_an_answer_that_another_process_only_recorded(
    shop: Shop, tmp_path: Path, engine: str, is_living: bool
) -> None:
    (shop.project / ".env").write_text("WIND=7\n")
    store = ("--store", f"{engine}:{tmp_path / 'store'}")
    with anyio.fail_after(DEADLINE_S):
        async with AsyncExitStack() as servers:
            _, client = await servers.enter_async_context(serving(shop, *store))
            session_id = (await client.create(title="Tides")).id
            await asked(client, session_id)
            if not is_living:
                await servers.aclose()
                _, client = await servers.enter_async_context(serving(shop, *store))
            [request] = await client.permissions()
            async with client.subscribe() as heard:
                words = ("permission", "allow", request.id, "--record-only", "--json", *store)
                given = await anyio.to_thread.run_sync(lambda: shop.process(*words))
                assert given.returncode == 0, given.stderr
                kinds = [one.type async for one in until_idle(heard)]
            assert kinds.count("permission.replied") == 1
            [output] = await outputs(client, session_id)
            assert "WIND=7" in output


async def until_idle(heard: AsyncIterator[object]) -> AsyncIterator[Notification]:
    async for one in heard:
        if isinstance(one, Notification):
            yield one
            if one.type == "session.idle":
                return
