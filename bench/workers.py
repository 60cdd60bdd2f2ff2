"""Turns a second with one, two and three workers on one Postgres, how soon a prompt is begun, and what each part costs.

All of it through the commands: a server that runs nothing, workers, and a client of the server.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median

import anyio
import httpx2

from bench.hosts import cpu_s, database_cpu_s, new_session, prompt, serving, started
from bench.measure import Figure, ms
from bench.provider import talking
from turnkeeper.app import Turnkeeper, look
from turnkeeper.testing.postgres import Cluster, own_cluster

WORKERS = (1, 2, 3)
SESSIONS, PROMPTS = 16, 6
WAKES = 40


async def measure(folder: Path) -> list[Figure]:
    """A prompt is begun within 50 ms; how turns a second grow with workers is told, not aimed at."""
    rates: dict[int, float] = {}
    costs: dict[int, dict[str, float]] = {}
    begun: list[float] = []
    stored: list[float] = []
    async with talking(folder, 1):
        given = json.loads((folder / "turnkeeper.json").read_text())
        (folder / "turnkeeper.json").write_text(json.dumps({**given, "model": "bench/bench"}))
        with own_cluster(fsync=True) as cluster:
            for count in WORKERS:
                url = cluster.url()
                async with AsyncExitStack() as stack:
                    server, http = await stack.enter_async_context(serving(folder, url))
                    commands = [started(folder, url, "worker", "--concurrency", "16") for _ in range(count)]
                    workers = [(await stack.enter_async_context(one))[0].pid for one in commands]
                    tk = await stack.enter_async_context(look(url, directory=folder))
                    await _turns(http, SESSIONS, 2)  # The first turn of a process reads and imports.
                    parts: dict[str, Callable[[], float]] = {
                        "worker": partial(cpu_s, *workers),
                        "server": partial(cpu_s, server.pid),
                        "Postgres": partial(database_cpu_s, cluster.directory),
                    }
                    used = _used(cluster)
                    rates[count], costs[count] = await _rate(http, parts)
                    if count == 1:
                        stored = [
                            (now - was) / (SESSIONS * PROMPTS) for was, now in zip(used, _used(cluster), strict=True)
                        ]
                        begun = await _wakes(tk, http)
    begun.sort()
    middle = median(begun)
    last = begun[len(begun) * 99 // 100]
    figures = [
        Figure(
            "prompt acknowledged until a worker has begun, median",
            f"{ms(middle)} (p99 {ms(last)})",
            "aim 50 ms",
            middle / 0.05,
            "<= 1.00",
            middle <= 0.05,
        )
    ]
    for count in WORKERS:
        told = ", ".join(f"{name} {ms(seconds)}" for name, seconds in costs[count].items())
        ratio = rates[count] / rates[1]
        what = f"turns a second with {count} worker{'s' * (count > 1)}"
        figures.append(Figure(what, f"{rates[count]:.1f}/s", f"CPU of a turn: {told}", ratio, "told", True))
    told = "{:.1f} transactions, {:.1f} KB of write-ahead log, {:.1f} KB on disk".format(*stored)
    return [*figures, Figure("what a turn leaves in Postgres", told, "-", 0, "told", True)]


def _used(cluster: Cluster) -> list[float]:
    """Transactions so far, KB of write-ahead log, and KB of the database."""
    told = cluster.query(
        "SELECT xact_commit, pg_current_wal_lsn() - '0/0', pg_database_size('postgres')"
        " FROM pg_stat_database WHERE datname = 'postgres'"
    )
    commits, log, size = map(float, told.split("|"))
    return [commits, log / 1000, size / 1000]


async def _rate(http: httpx2.AsyncClient, parts: dict[str, Callable[[], float]]) -> tuple[float, dict[str, float]]:
    """Turns a second, and seconds of CPU for each turn by part."""
    before = {name: used() for name, used in parts.items()}
    start = time.perf_counter()
    await _turns(http, SESSIONS, PROMPTS)
    elapsed, turns = time.perf_counter() - start, SESSIONS * PROMPTS
    return turns / elapsed, {name: (used() - before[name]) / turns for name, used in parts.items()}


async def _turns(http: httpx2.AsyncClient, sessions: int, prompts: int) -> None:
    """Run so many prompts in each of so many sessions, all sessions at once."""

    async def one() -> None:
        session_id = await new_session(http)
        for _ in range(prompts):
            await prompt(http, session_id)
        (await http.post(f"/api/session/{session_id}/wait", json={})).raise_for_status()

    async with anyio.create_task_group() as group:
        for _ in range(sessions):
            group.start_soon(one)


async def _wakes(tk: Turnkeeper, http: httpx2.AsyncClient) -> list[float]:
    """Seconds from when a prompt was in the log until a worker owned its session, one prompt after another."""
    found = []
    for _ in range(WAKES):
        session_id = await new_session(http)
        await prompt(http, session_id)
        (await http.post(f"/api/session/{session_id}/wait", json={})).raise_for_status()
        found.append(_begun(await tk.store.engine.read(session_id)))
    return found


def _begun(log: Sequence[bytes]) -> float:
    times = {str(entry["type"]): int(entry["time"]) for entry in map(json.loads, reversed(log))}
    return (times["status.changed.1"] - times["prompt.admitted.1"]) / 1000
