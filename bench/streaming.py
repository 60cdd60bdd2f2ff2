"""A streamed answer, from the provider's bytes to a subscriber: CPU a delta, and bytes made durable."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import msgspec

import turnkeeper
from bench.data import a_session
from bench.measure import Figure, ms
from bench.talker import WORD
from turnkeeper.app import Turnkeeper
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.notification import Delta
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.run.runtime import Settings
from turnkeeper.store.engine import Engine, Key

DELTAS = 20_000


async def measure(folder: Path) -> list[Figure]:
    """At most 40 us of CPU a delta and five times the text in durable bytes; a turn costs the same in any history."""
    return [*await _deltas(folder), *await _overhead(folder)]


async def _deltas(folder: Path) -> list[Figure]:
    async with (
        _Talker(folder, DELTAS),
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
        await tk.prompt(session_id, _prompt())
        await tk.wait(session_id)
        cost = time.process_time() - cpu, time.perf_counter() - wall
        await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    return "".join(pieces), *cost


async def _overhead(folder: Path) -> list[Figure]:
    """What a trivial turn costs us with a short and with a long history."""
    async with (
        _Talker(folder, 1),
        turnkeeper.open(f"sqlite:{folder / 'overhead.db'}", directory=folder, settings=Settings(titles=False)) as tk,
    ):
        costs = []
        for messages in (10, 2000):
            session = await a_session(tk, messages=messages, parts=1)
            spent = []
            for _ in range(12):
                cpu = time.process_time()
                await tk.prompt(session.id, _prompt())
                await tk.wait(session.id)
                spent.append(time.process_time() - cpu)
            costs.append(min(spent[2:]))
    ratio = costs[1] / costs[0]
    return [
        Figure(
            "CPU of a turn at 2,000 messages", ms(costs[1]), f"at 10: {ms(costs[0])}", ratio, "<= 1.20", ratio <= 1.2
        )
    ]


def _prompt() -> Prompt:
    return Prompt(parts=(TextInput(text="go"),), model=ModelChoice(provider_id="bench", model_id="bench"))


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


class _Talker:
    """The provider's process, and a configuration that names it."""

    def __init__(self, folder: Path, deltas: int) -> None:
        self._folder, self._deltas = folder, deltas

    async def __aenter__(self) -> None:
        root = Path(__file__).parent.parent
        command = [sys.executable, "-m", "bench.talker", str(self._deltas)]

        def start() -> int:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, env=os.environ
            )
            assert self._process.stdout is not None, "it was asked for"
            return int(self._process.stdout.readline())

        port = await anyio.to_thread.run_sync(start)
        model = {"limit": {"context": 2_000_000, "output": 8000}}
        provider = {
            "protocol": "openai-chat",
            "options": {"baseURL": f"http://127.0.0.1:{port}/v1"},
            "models": {"bench": model},
        }
        (self._folder / "turnkeeper.json").write_bytes(msgspec.json.encode({"provider": {"bench": provider}}))

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
