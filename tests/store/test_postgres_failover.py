"""A Postgres store whose server dies and whose standby is promoted: nothing acknowledged is lost or doubled."""

import asyncio
import signal
from collections.abc import Iterator

import anyio
import pytest

from turnkeeper.store.engine import Engine, StoreUnavailable
from turnkeeper.store.engines.postgres import PostgresEngine
from turnkeeper.store.engines.postgres.schema import Layout
from turnkeeper.testing.postgres import OwnCluster, own_cluster

DEADLINE_S = 240
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND now() - state_change > interval '2 seconds'"
)
"""How many commits have waited for the standby, for longer than a statement may take."""


@pytest.fixture
def pair() -> Iterator[tuple[OwnCluster, OwnCluster]]:
    """A server and its standby."""
    with own_cluster() as primary, primary.standby() as standby:
        yield primary, standby


async def opened(url: str, **options: float) -> PostgresEngine:
    return await PostgresEngine.open(url, Layout(), **{"reconnect_s": 100, "outcome_s": 100, **options})  # type: ignore[arg-type]


async def add(engine: Engine, log: str, number: int) -> None:
    body = f"{log} {number}".encode()
    await engine.append(log, number, [body], {("doc", log, f"{number:05}"): body})


async def test_while_a_standby_is_promoted_every_append_is_there_once_and_reads_go_on(
    pair: tuple[OwnCluster, OwnCluster],
) -> None:
    primary, standby = pair
    engine, logs, half, total = await opened(primary.url_with(standby)), ["ses_1", "ses_2", "ses_3"], 20, 60
    ready = {log: anyio.Event() for log in logs}

    async def fill(log: str) -> None:
        for number in range(total):
            await add(engine, log, number)
            assert await engine.length(log) == number + 1
            if number == half:
                ready[log].set()

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            for log in logs:
                group.start_soon(fill, log)
            for event in ready.values():
                await event.wait()
            await asyncio.to_thread(primary.stop, signal.SIGKILL)
            await asyncio.to_thread(standby.promote)
    for log in logs:
        bodies = [f"{log} {number}".encode() for number in range(total)]
        assert await engine.read(log) == bodies
        assert [body for _, body in await engine.scan(("doc", log))] == bodies
    assert (await engine.inspect())["problems"] == []
    await engine.aclose()


async def test_before_the_standby_is_promoted_calls_are_refused_with_the_reason(
    pair: tuple[OwnCluster, OwnCluster],
) -> None:
    primary, standby = pair
    engine = await opened(primary.url_with(standby), reconnect_s=0.3, outcome_s=0.3)
    await add(engine, "ses_1", 0)
    await asyncio.to_thread(primary.stop, signal.SIGKILL)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await engine.read("ses_1")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await add(engine, "ses_1", 1)
    await asyncio.to_thread(standby.promote)
    await add(engine, "ses_1", 1)
    assert await engine.length("ses_1") == 2
    await engine.aclose()


async def test_what_the_standby_has_not_got_is_not_acknowledged(pair: tuple[OwnCluster, OwnCluster]) -> None:
    primary, standby = pair
    engine = await opened(primary.url_with(standby), statement_timeout_s=1)
    await add(engine, "ses_1", 0)
    await asyncio.to_thread(standby.stop)
    acknowledged: list[int] = []

    async def append() -> None:
        await add(engine, "ses_1", 1)
        acknowledged.append(1)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(append)
            while await asyncio.to_thread(primary.query, WAITING) != "1":
                assert acknowledged == []
            assert await engine.length("ses_1") == 1  # Reads do not wait, and see what is acknowledged.
            assert acknowledged == []
            await asyncio.to_thread(standby.start)
    assert acknowledged == [1]
    await asyncio.to_thread(primary.stop, signal.SIGKILL)
    await asyncio.to_thread(standby.promote)
    assert await engine.length("ses_1") == 2
    await engine.aclose()
