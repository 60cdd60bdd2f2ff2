"""What a command costs in CPU: the whole process, byte-compiled, best of several."""

import os
import subprocess
import sys
from pathlib import Path

import anyio

import turnkeeper
from bench.measure import Figure

RUNS = 7


async def measure(folder: Path) -> list[Figure]:
    """``--help`` under 150 ms and ``session list`` under 250 ms of CPU."""
    store = f"sqlite:{folder / 'commands.db'}"
    async with turnkeeper.open(store) as tk:
        for number in range(60):
            await tk.create(title=f"Session {number}")
    return [
        await anyio.to_thread.run_sync(_figure, "turnkeeper --help", ["--help"], 150),
        await anyio.to_thread.run_sync(_figure, "tk session list", ["session", "list", "--store", store], 250),
    ]


def _figure(what: str, arguments: list[str], limit_ms: int) -> Figure:
    spent = min(_cpu([sys.executable, "-m", "turnkeeper.cli.main", *arguments]) for _ in range(RUNS))
    # The system counts in hundredths of a second, and a bare interpreter may take less.
    bare = max(10.0, min(_cpu([sys.executable, "-c", "pass"]) for _ in range(RUNS)))
    return Figure(
        what, f"{spent:.0f} ms CPU", f"bare python {bare:.0f} ms", spent / bare, f"< {limit_ms} ms", spent < limit_ms
    )


def _cpu(command: list[str]) -> float:
    before = os.times()
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=environment)
    after = os.times()
    return 1000 * (after.children_user + after.children_system - before.children_user - before.children_system)
