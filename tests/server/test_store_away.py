"""A server whose database goes away says so, and serves again once it is back."""

import asyncio
from pathlib import Path

import anyio
import httpx2
import pytest
from served_process import Place

from turnkeeper.testing.postgres import own_cluster
from turnkeeper.testing.server import ScriptedServer

DEADLINE_S = 240
REQUEST_S = 60
"""Longer than a read is tried again."""


async def status_of(http: httpx2.AsyncClient) -> int:
    """What the list of sessions is answered with. A database that was just stopped may leave a request unanswered."""
    return (await http.get("/session", timeout=REQUEST_S)).status_code


@pytest.mark.parametrize("options", [(), ("--no-run",)], ids=["runs", "no runs"])
async def test_a_server_outlives_an_outage_of_its_database(tmp_path: Path, options: tuple[str, ...]) -> None:
    with anyio.fail_after(DEADLINE_S), own_cluster() as database:
        async with (
            ScriptedServer() as provider,
            Place(tmp_path, provider, database.url()).serving(*options) as (process, http),
        ):
            assert await status_of(http) == 200
            await asyncio.to_thread(database.stop)
            try:
                # Two answers take longer than the tasks beside the requests need to fail as well.
                assert [await status_of(http), await status_of(http)] == [503, 503]
                assert process.poll() is None
                metrics = await http.get("/metrics", timeout=REQUEST_S)
                assert (metrics.status_code, metrics.text.count("\nturnkeeper_store_answers 0\n")) == (200, 1)
            finally:
                await asyncio.to_thread(database.start)
            while await status_of(http) != 200:
                assert process.poll() is None
