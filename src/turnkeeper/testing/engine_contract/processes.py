"""Contract tests of several processes, and of a process that is killed while it writes."""

import asyncio
import os
import random
import signal
import subprocess

import pytest

from turnkeeper.testing import engine_child
from turnkeeper.testing.engine_contract.store import StoreUnderTest

PROCESS_TIMEOUT_S = 60
STREAM_MAX = "50000"
"""How many entries a child writes to each log before the test decides that it passed no crash point."""


async def test_two_processes_share_one_store_and_no_write_is_lost(durable: StoreUnderTest) -> None:
    engine = await durable.open()
    before = await engine.version()
    with durable.child("compete", "40") as child:
        await engine_child.compete(engine, 40)
        assert await asyncio.to_thread(child.wait, PROCESS_TIMEOUT_S) == 0
    assert await engine.version() != before
    entries = [entry.decode() for entry in await engine.read("shared")]
    assert entries == [body.decode() for _, body in await engine.scan(("slot",))]
    for process in (os.getpid(), child.pid):
        mine = [entry for entry in entries if entry.startswith(f"{process} ")]
        assert mine == [f"{process} {number}" for number in range(40)]
    await engine.aclose()


@pytest.mark.parametrize("acknowledged", [1, 20, 150])
async def test_killed_at_any_write_a_store_keeps_what_was_acknowledged(
    durable: StoreUnderTest, acknowledged: int
) -> None:
    await kill_after(durable, acknowledged)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
async def test_killed_again_and_again_a_store_keeps_what_was_acknowledged(durable: StoreUnderTest, seed: int) -> None:
    moments = random.Random(seed)
    # Each check reads the whole store again, so the time grows with the square of the number of kills.
    for _ in range(15):
        await kill_after(durable, moments.randrange(300))


async def test_killed_at_each_crash_point_a_store_keeps_what_was_acknowledged(
    durable: StoreUnderTest,
) -> None:
    for point in durable.crash_points:
        for hit in (1, 2, 5):
            with durable.child("stream", STREAM_MAX, crash=f"{point}:{hit}") as child:
                acknowledged = read_acknowledged(child)
            assert child.returncode == 137, f"{point} was not reached {hit} times"
            await check_streamed(durable, acknowledged)


async def kill_after(store: StoreUnderTest, count: int) -> None:
    """Kill a writing child after ``count`` acknowledged entries, and check the store."""
    with store.child("stream") as child:
        assert child.stdout is not None
        acknowledged: dict[str, int] = {}
        for _ in range(count):
            log, number = child.stdout.readline().split()
            acknowledged[log] = int(number)
        child.send_signal(signal.SIGKILL)
        acknowledged |= read_acknowledged(child)
    assert child.returncode == -signal.SIGKILL
    await check_streamed(store, acknowledged)


def read_acknowledged(child: "subprocess.Popen[str]") -> dict[str, int]:
    """The last acknowledged entry of each log that a child printed before it ended."""
    assert child.stdout is not None
    # A line without a line break was cut by the kill.
    lines = [line.split() for line in child.stdout if line.endswith("\n")]
    child.wait(PROCESS_TIMEOUT_S)
    return {log: int(number) for log, number in lines}


async def check_streamed(store: StoreUnderTest, acknowledged: dict[str, int]) -> None:
    """Check that acknowledged entries exist, entries are a prefix of the stream, and documents agree with them."""
    engine = await store.open()
    assert (await engine.inspect())["problems"] == []
    for log in engine_child.LOGS:
        entries = await engine.read(log)
        assert len(entries) >= acknowledged.get(log, 0)
        assert entries == [engine_child.entry(log, number) for number in range(1, len(entries) + 1)]
        assert await engine.get([("head", log)]) == [b"%d" % len(entries) if entries else None]
        items = [(("item", log, f"{number:06}"), entry) for number, entry in enumerate(entries, 1)]
        assert await engine.scan(("item", log)) == items
        newest = await engine.search(f"number{len(entries)}", ("item", log))
        assert (("item", log, f"{len(entries):06}") in newest) == bool(entries)
        await engine_child.extend(engine, log, len(entries) + 1)
    await engine.aclose()
