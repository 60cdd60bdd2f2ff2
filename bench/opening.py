"""Opening a session of 20,000 events: from its documents, so the log's length does not matter."""

import subprocess
import sys
from pathlib import Path

import anyio

import turnkeeper
from bench.data import a_session
from bench.measure import Figure, best_of, ms
from turnkeeper.core.entry import chain
from turnkeeper.core.projector import project


async def measure(folder: Path) -> list[Figure]:
    """Under a second; and what a full replay costs, which only ``doctor`` and a repair pay."""
    path = folder / "open.db"
    async with turnkeeper.open(f"sqlite:{path}") as tk:
        long = await a_session(tk, messages=20_000, parts=1)
        short = await a_session(tk, messages=100, parts=1)

    async def cold(session_id: str) -> None:
        async with turnkeeper.open(f"sqlite:{path}") as tk:
            await tk.store.journal.view(session_id)

    many = await best_of(5, lambda: cold(long.id))
    few = await best_of(5, lambda: cold(short.id))
    async with turnkeeper.open(f"sqlite:{path}") as tk:

        async def replay() -> None:
            entries = await tk.store.engine.read(long.id)
            project(recorded for recorded, _ in chain(long.id, entries))

        folded = await best_of(3, replay)
    memory = await anyio.to_thread.run_sync(_memory, path, long.id)
    base = await anyio.to_thread.run_sync(_memory, path, short.id)
    return [
        Figure(
            "open a session of 20,000 events",
            ms(many),
            f"of 100: {ms(few)}",
            many / few,
            "<= 1.50, < 1 s",
            many < 1 and many / few <= 1.5,
        ),
        Figure("fold 20,000 events from the log", ms(folded), "-", 0, "< 1 s", folded < 1),
        Figure(
            "memory to open 20,000 events",
            f"{memory} MB",
            f"100 events: {base} MB",
            memory / base,
            "<= 1.50",
            memory <= base * 1.5,
        ),
    ]


def _memory(path: Path, session_id: str) -> int:
    """The peak of a fresh process that opens the session."""
    program = (
        "import anyio, sys, turnkeeper\n"
        "async def main():\n"
        "    async with turnkeeper.open(sys.argv[1]) as tk:\n"
        "        await tk.store.journal.view(sys.argv[2])\n"
        "        await tk.messages(sys.argv[2])\n"
        "anyio.run(main)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"sqlite:{path}", session_id], capture_output=True, check=True
    )
    return int(done.stdout) // 1024
