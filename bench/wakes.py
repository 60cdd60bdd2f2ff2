"""From a wake to the start of the run in another process, on Postgres: as jobs of Procrastinate, and as documents."""

import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import anyio
from anyio.streams.text import TextReceiveStream

from bench.measure import Figure, ms
from turnkeeper.app import look, open_store
from turnkeeper.core.labels import ANY_HOST
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.host import Host
from turnkeeper.run.job_wakes import new_wakes
from turnkeeper.run.lease_keeper import LeaseKeeper
from turnkeeper.run.ownership import new_lease_keeper
from turnkeeper.run.settings import Settings
from turnkeeper.run.wakes import StoredWakes, Wakes
from turnkeeper.run.worker import Worker
from turnkeeper.store.store import Store
from turnkeeper.testing.postgres import own_cluster

WAKES, PAUSE_S = 60, 0.05
READY = "ready"


async def measure(folder: Path) -> list[Figure]:
    """Under 50 ms for half of the wakes of a worker that has nothing to do."""
    with own_cluster() as cluster:
        stored = await _delays(cluster.url("stored"), folder, "stored")
        jobs = await _delays(cluster.url("jobs"), folder, "jobs")
    middle, p90 = median(jobs), sorted(jobs)[len(jobs) * 9 // 10]
    return [
        Figure(
            "wake to start of the run in another process, median",
            f"{ms(middle)} (p90 {ms(p90)})",
            f"documents {ms(median(stored))}",
            middle / 0.05,
            "<= 1.00",
            middle <= 0.05,
        )
    ]


def _wakes(store: Store, kind: str) -> Wakes:
    if kind == "stored":
        return StoredWakes(store.engine, store.mint)
    return new_wakes(store, Host(store, ANY_HOST).label_of)


async def _delays(url: str, folder: Path, kind: str) -> list[float]:
    """Seconds from asking to running, one wake after the other."""
    delays: list[float] = []
    async with look(url, directory=folder) as tk:
        wakes = _wakes(tk.store, kind)
        await wakes.withdraw("ses_none")  # Everything that the first call needs is there.
        command = [sys.executable, "-m", "bench.wakes", url, kind]
        async with await anyio.open_process(command, stderr=None) as worker:
            assert worker.stdout is not None
            lines = _lines(TextReceiveStream(worker.stdout))
            assert await anext(lines) == READY
            for number in range(WAKES):
                session = (await tk.create(directory=folder)).id
                await anyio.sleep(PAUSE_S * (0.5 + number % 7 / 7))
                begun = time.monotonic()
                await wakes.post(session)
                name, begun_ns = (await anext(lines)).split()
                assert name == session
                delays.append(int(begun_ns) / 1e9 - begun)
            worker.terminate()
    return delays[5:]


async def _lines(stream: TextReceiveStream) -> AsyncIterator[str]:
    rest = ""
    async for text in stream:
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield line


async def _work(url: str, kind: str) -> None:
    """Take wakes, and say for each when its run would have begun."""

    async def run(session_id: str, *, resume: bool = False) -> Outcome:
        print(session_id, time.monotonic_ns(), flush=True)
        return Outcome(kind="rested")

    async def nothing(session_id: str) -> None: ...

    async with open_store(url) as tk:
        assert tk.group is not None
        lease_keeper: LeaseKeeper = new_lease_keeper(
            tk.store, tk.group, Settings(), stop=nothing, interrupt=nothing, wake=lambda session_id: None
        )
        worker = Worker(_wakes(tk.store, kind), lease_keeper, run, 8)
        tk.group.start_soon(worker.work)
        await anyio.sleep(1)
        print(READY, flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(_work, sys.argv[1], sys.argv[2])
