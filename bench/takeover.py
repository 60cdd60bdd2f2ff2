"""How long the sessions of a worker that was killed, or stopped by SIGSTOP, wait until another worker owns them."""

import asyncio
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio

from bench.hosts import configure, new_session, prompt, serving, started
from bench.measure import Figure
from turnkeeper.app import Turnkeeper, look
from turnkeeper.testing.postgres import own_cluster

SESSIONS, WORKERS = 8, 3
KILLS, STOPS = 12, 4
LEASE_S = 10
LOOK_S = 0.02
AIMS = {"killed": 5.0, "stopped": LEASE_S + 5.0}
"""Killed on the same machine, it is found dead at the next look, every 2 s; stopped, after its lease."""


async def measure(folder: Path) -> list[Figure]:
    """Sessions whose model never answers go from worker to worker, as each of them is ended."""
    taken: dict[str, list[float]] = {"killed": [], "stopped": []}
    with own_cluster() as cluster:
        url = cluster.url()
        async with _silent_model(folder), AsyncExitStack() as stack:
            _, http = await stack.enter_async_context(serving(folder, url))
            tk = await stack.enter_async_context(look(url, directory=folder))

            async def add() -> "subprocess.Popen[str]":
                words = ("worker", "--concurrency", str(SESSIONS), "--lease", str(LEASE_S))
                return (await stack.enter_async_context(started(folder, url, *words)))[0]

            workers = [await add() for _ in range(WORKERS)]
            for _ in range(SESSIONS):
                await prompt(http, await new_session(http))
            for number in range(KILLS + STOPS):
                owners = await _all_owned(tk)
                busiest = max(workers, key=lambda one: list(owners.values()).count(one.pid))
                how = "killed" if number < KILLS else "stopped"
                busiest.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
                taken[how] += await _taken(tk, busiest.pid)
                busiest.kill()
                workers = [one for one in workers if one is not busiest] + [await add()]
    return [_figure(how, times) for how, times in taken.items()]


def _figure(how: str, times: list[float]) -> Figure:
    times.sort()
    middle, last = times[len(times) // 2], times[len(times) * 99 // 100]
    what = f"sessions of a worker that is {how}: until another has them, p99"
    told = f"{last:.1f} s (median {middle:.1f} s, {len(times)} sessions)"
    return Figure(what, told, f"aim {AIMS[how]:g} s", last / AIMS[how], "<= 1.00", last <= AIMS[how])


async def _owners(tk: Turnkeeper) -> dict[str, int]:
    return {one.session_id: one.owner.pid for one in (await tk.cluster()).leases}


async def _all_owned(tk: Turnkeeper) -> dict[str, int]:
    with anyio.fail_after(120):
        while len(owners := await _owners(tk)) < SESSIONS:  # noqa: ASYNC110 # Other processes take them.
            await anyio.sleep(LOOK_S)
    return owners


async def _taken(tk: Turnkeeper, pid: int) -> list[float]:
    """After how long each session of a process has another owner."""
    start, times = time.monotonic(), []
    mine = {name for name, owner in (await _owners(tk)).items() if owner == pid}
    with anyio.fail_after(300):
        while mine:
            owners = await _owners(tk)
            gone = {name for name in mine if owners.get(name, pid) != pid}
            times += [time.monotonic() - start] * len(gone)
            mine -= gone
            await anyio.sleep(LOOK_S)
    return times


@asynccontextmanager
async def _silent_model(folder: Path) -> AsyncIterator[None]:
    """A model that takes requests and says nothing. A turn of which nothing was recorded is asked again."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    configure(folder, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    try:
        yield
    finally:
        server.close()
