"""A streamed answer, from the provider's bytes to a subscriber: CPU a delta, and bytes made durable."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

import turnkeeper
from bench.measure import Figure, ms
from bench.provider import a_prompt, talking
from bench.talker import WORD
from turnkeeper.app import Turnkeeper
from turnkeeper.model.notification import Delta
from turnkeeper.run.runtime import Settings
from turnkeeper.store.engine import Engine, Key

DELTAS = 20_000


async def measure(folder: Path) -> list[Figure]:
    """At most 40 us of CPU a delta, and five times the text in durable bytes."""
    async with (
        talking(folder, DELTAS),
        turnkeeper.open(f"sqlite:{folder / 'stream.db'}", directory=folder, settings=Settings(titles=False)) as tk,
    ):
        best_cpu = best_wall = float("inf")
        counter = _Counting(tk.store.engine)
        for _ in range(3):
            session = await tk.create(directory=folder)
            counter.bytes = 0
            text, cpu, wall = await _watch(tk, session.id)
            assert text == WORD * DELTAS, f"{len(text)} characters arrived"
            best_cpu, best_wall = min(best_cpu, cpu), min(best_wall, wall)
    written = counter.bytes / len(WORD * DELTAS)
    cpu_us = best_cpu * 1e6 / DELTAS
    return [
        Figure("CPU a streamed delta", f"{cpu_us:.1f} us", "aim 40 us", cpu_us / 40, "<= 1.00", cpu_us <= 40),
        Figure(f"{DELTAS:,} deltas, flat out", ms(best_wall), "-", 0, "as fast as sent", True),
        Figure("durable bytes to bytes of text", f"{written:.2f}", "text 1", written, "<= 5.00", written <= 5),
    ]


async def _watch(tk: Turnkeeper, session_id: str) -> tuple[str, float, float]:
    """Run one prompt with one subscriber; the text it saw, and what it cost."""
    pieces: list[str] = []
    async with tk.subscribe(session_id=session_id, size=100_000) as heard, anyio.create_task_group() as group:

        async def listen() -> None:
            async for one in heard:
                if isinstance(one, Delta):
                    pieces.append(one.delta)

        group.start_soon(listen)
        cpu, wall = time.process_time(), time.perf_counter()
        await tk.prompt(session_id, a_prompt())
        await tk.wait(session_id)
        cost = time.process_time() - cpu, time.perf_counter() - wall
        await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    return "".join(pieces), *cost


class _Counting:
    """Counts what an engine is asked to keep."""

    def __init__(self, engine: Engine) -> None:
        self.bytes = 0
        append = engine.append

        async def counted(
            log: str, after: int, entries: Sequence[bytes], documents: Mapping[Key, bytes | None], **rest: object
        ) -> None:
            self.bytes += sum(map(len, entries)) + sum(len(body or b"") for body in documents.values())
            await append(log, after, entries, documents, **rest)  # type: ignore[arg-type]

        engine.append = counted  # type: ignore[method-assign,assignment]
