"""A Postgres store whose connection or server is lost: nothing is half applied, nothing is doubled, reads go on."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import psycopg
import pytest
from cutting_proxy import Side, cutting_proxy
from stores import store_url

from turnkeeper.store.engine import Engine, LogConflict, StoreUnavailable
from turnkeeper.store.engines.postgres import PostgresEngine
from turnkeeper.store.engines.postgres.address import parse
from turnkeeper.store.engines.postgres.connection import OutcomeUnknown
from turnkeeper.store.engines.postgres.schema import Layout
from turnkeeper.testing.postgres import OwnCluster, own_cluster

DEADLINE_S = 240
SIDES: tuple[Side, ...] = ("asked", "answered")


async def opened(url: str, **options: object) -> PostgresEngine:
    return await PostgresEngine.open(url, Layout(), **{"reconnect_s": 100, "outcome_s": 100, **options})  # type: ignore[arg-type]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return store_url("postgres", tmp_path)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    direct = await opened(url)
    yield direct
    await direct.aclose()


async def add(engine: Engine, log: str, number: int) -> None:
    """An append in which everything takes part that an append can have."""
    body = f"{log} {number}".encode()
    await engine.append(
        log, number, [body], {("doc", log, f"{number:05}"): body}, texts={("doc", log, f"{number:05}"): f"n{number}"}
    )


async def check(engine: Engine, log: str, count: int) -> None:
    """A log has so many appends, each once and whole."""
    bodies = [f"{log} {number}".encode() for number in range(count)]
    assert await engine.read(log) == bodies
    assert [body for _, body in await engine.scan(("doc", log))] == bodies
    assert len(await engine.search("n", ("doc", log), limit=count + 1)) == count


# Stopped in the middle.


@pytest.mark.parametrize("moment", ["postgres.checked", "postgres.before-commit"])
async def test_a_host_that_is_stopped_in_the_middle_of_a_write_does_not_hold_others_up(url: str, moment: str) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def stop(point: str) -> None:
        if point == moment and not goes_on.is_set():
            began.set()
            assert goes_on.wait(DEADLINE_S)

    other = await opened(url, silence_s=0.5)
    await add(other, "log", 0)
    stopped = await opened(url, silence_s=0.5, crash=stop)
    with anyio.fail_after(DEADLINE_S):
        late = asyncio.create_task(add(stopped, "log", 1))
        await asyncio.to_thread(began.wait, DEADLINE_S)
        await add(other, "log", 1)
        goes_on.set()
        with pytest.raises(LogConflict):
            await late
    await stopped.aclose()
    await check(other, "log", 2)
    await other.aclose()


# Cut at a byte.


@pytest.mark.parametrize("side", SIDES)
async def test_cut_at_any_byte_an_append_is_there_once_and_acknowledged(engine: Engine, url: str, side: Side) -> None:
    await cut_everywhere(engine, url, side, step=41)


@pytest.mark.soak
@pytest.mark.parametrize("side", SIDES)
async def test_cut_at_every_byte_an_append_is_there_once_and_acknowledged(engine: Engine, url: str, side: Side) -> None:
    await cut_everywhere(engine, url, side, step=1)


async def cut_everywhere(engine: Engine, url: str, side: Side, step: int) -> None:
    with cutting_proxy(url) as (proxy, through), anyio.fail_after(DEADLINE_S * 10):
        cut = await opened(through)
        count = 0
        for count in range(2000):
            proxy.arm(side, count * step)
            await add(cut, "ses_1", count)
            if proxy.disarm():
                break  # An append, with all that follows it, has fewer bytes.
        assert proxy.cuts == count > 3
        await check(engine, "ses_1", count + 1)
        await cut.aclose()


@pytest.mark.parametrize("side", SIDES)
async def test_a_read_that_is_cut_is_read_again(engine: Engine, url: str, side: Side) -> None:
    await engine.append("ses_1", 0, [b"x" * 1000], {("a",): b"y" * 1000})
    with cutting_proxy(url) as (proxy, through), anyio.fail_after(DEADLINE_S):
        cut = await opened(through)
        for after in (0, 1, 5, 30, 200):
            proxy.arm(side, after)
            assert await cut.read("ses_1") == [b"x" * 1000]
            proxy.arm(side, after)
            assert await cut.get([("a",)]) == [b"y" * 1000]
        assert proxy.cuts > 4
        await cut.aclose()


async def test_a_commit_whose_outcome_cannot_be_looked_up_is_called_unknown(engine: Engine, url: str) -> None:
    with cutting_proxy(url) as (proxy, through), anyio.fail_after(DEADLINE_S):
        cut = await opened(through, outcome_s=0, reconnect_s=0)
        await add(cut, "ses_1", 0)
        length, answers = 1, set[type[Exception]]()
        for after in range(0, 2000, 40):
            proxy.arm("answered", after, for_good=True)
            try:
                await add(cut, "ses_1", length)
            except StoreUnavailable as error:
                answers.add(type(error))
            if proxy.disarm():
                break
            length = await settled(engine, "ses_1", length)
            await check(engine, "ses_1", length)
        assert answers == {OutcomeUnknown, StoreUnavailable}
        await cut.aclose()


async def settled(engine: Engine, log: str, length: int) -> int:
    """The length of a log of which an append may be under way, once the server has ended that."""
    # Waits for the lock that the append holds, if it is under way, and is then refused or is the last word.
    number = length
    while True:
        try:
            await add(engine, log, number)
        except LogConflict:
            number += 1
        else:
            return number + 1


# Connections that the server ends.


async def test_while_backends_are_terminated_every_append_is_there_once(engine: Engine, url: str) -> None:
    url += f"&application_name=victim{os.getpid()}"  # Other tests use the same server.
    busy = await opened(url)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(fill, busy, f"ses_{number}", 40)
            for _ in range(25):
                await asyncio.to_thread(terminate, url)
                await asyncio.to_thread(terminate, url)
    for number in range(6):
        await check(busy, f"ses_{number}", 40)
    assert (await busy.inspect())["problems"] == []
    await busy.aclose()


async def fill(engine: Engine, log: str, count: int) -> None:
    for number in range(count):
        await add(engine, log, number)
        assert await engine.length(log) == number + 1


def terminate(url: str) -> None:
    """End all connections of the store, as an administrator may."""
    address = parse(url)
    with psycopg.connect(**{**address.parameters, "application_name": "other"}) as connection:  # type: ignore[arg-type]
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            (address.parameters["application_name"],),
        )


# A server that is stopped and started.


@pytest.fixture(scope="module")
def cluster() -> Iterator[OwnCluster]:
    with own_cluster() as started:
        yield started


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["in order", "as in a crash"])
async def test_while_the_server_is_restarted_every_append_is_there_once(
    cluster: OwnCluster, how: signal.Signals
) -> None:
    engine = await opened(cluster.url())
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(fill, engine, f"ses_{number}", 60)
            for _ in range(2):
                await asyncio.to_thread(cluster.stop, how)
                await asyncio.to_thread(cluster.start)
    for number in range(4):
        await check(engine, f"ses_{number}", 60)
    await engine.aclose()


async def test_steps_of_the_driver_that_fail_over_a_lost_connection_are_not_logged(
    cluster: OwnCluster, caplog: pytest.LogCaptureFixture
) -> None:
    url = cluster.url()
    engine = await opened(url)
    with (
        pytest.raises(psycopg.OperationalError),
        psycopg.connect(**parse(url).parameters) as lost,  # type: ignore[arg-type]
        lost.pipeline(),
    ):
        lost.execute("SELECT pg_terminate_backend(pg_backend_pid())").fetchone()
    await engine.aclose()
    assert [record.getMessage() for record in caplog.records] == []


async def test_a_lost_connection_is_one_line_in_the_log(cluster: OwnCluster, caplog: pytest.LogCaptureFixture) -> None:
    engine, restarted, counts = await opened(cluster.url()), anyio.Event(), [0]

    async def write() -> None:
        while not restarted.is_set():
            await add(engine, "ses_line", counts[0])
            counts[0] += 1

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await asyncio.to_thread(cluster.stop, signal.SIGQUIT)
            await asyncio.to_thread(cluster.start)
            restarted.set()
    await check(engine, "ses_line", counts[0])
    await engine.aclose()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition("': ")[2] for line in lines] == ["the connection to the server was lost; connecting again"]


async def test_while_the_server_is_down_calls_are_refused_and_afterwards_they_work(cluster: OwnCluster) -> None:
    url = cluster.url()
    engine = await opened(url, reconnect_s=0.3, outcome_s=0.3)
    await add(engine, "ses_1", 0)
    await asyncio.to_thread(cluster.stop)
    try:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await engine.read("ses_1")
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await add(engine, "ses_1", 1)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await opened(url)
    finally:
        await asyncio.to_thread(cluster.start)
    await add(engine, "ses_1", 1)
    await check(engine, "ses_1", 2)
    await engine.aclose()
