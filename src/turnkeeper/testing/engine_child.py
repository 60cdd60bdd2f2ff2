"""A process that writes to a store and prints acknowledged writes, for tests with kills and concurrent writers.

``python -m turnkeeper.testing.engine_child ROLE MODULE:OPENER URL [COUNT]``
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module

from turnkeeper.store.engine import Engine, LogConflict

LOGS = ("ses_a", "ses_b", "ses_c")
"""The logs that ``stream`` writes concurrently."""

Opener = Callable[[str], Awaitable[Engine]]


def entry(log: str, number: int) -> bytes:
    """The entry that ``stream`` appends with this number. The sizes differ, so that pages fill unevenly."""
    return f'{{"log":"{log}","seq":{number},"pad":"{"é" * (number * 37 % 500)}"}}'.encode()


async def extend(engine: Engine, log: str, number: int) -> None:
    """Append the entry with this number to a log, with its documents and its text."""
    item = ("item", log, f"{number:06}")
    documents = {("head", log): str(number).encode(), item: entry(log, number)}
    await engine.append(log, number - 1, [entry(log, number)], documents, texts={item: f"entry number{number}"})


async def stream(engine: Engine, count: int) -> None:
    """Append ``count`` entries to each log, and print each after its acknowledgement."""

    async def fill(log: str) -> None:
        start = await engine.length(log)
        for number in range(start + 1, start + count + 1):
            await extend(engine, log, number)
            # One write call, because a kill may come between two.
            os.write(sys.stdout.fileno(), f"{log} {number}\n".encode())

    async with asyncio.TaskGroup() as group:
        for log in LOGS:
            group.create_task(fill(log))


async def compete(engine: Engine, count: int) -> None:
    """Append ``count`` entries to a log that other processes write too, with a retry after each conflict."""
    mine = str(os.getpid())
    for number in range(count):
        while True:
            length = await engine.length("shared")
            body = f"{mine} {number}".encode()
            try:
                await engine.append("shared", length, [body], {("slot", f"{length:06}"): body})
            except LogConflict:
                continue
            break


async def main(role: str, opener: str, url: str, count: str = "100000") -> None:
    """Open the store and run the role."""
    module, _, function = opener.partition(":")
    # The type of the function is documented in engine_contract.StoreUnderTest.
    opened: Opener = getattr(import_module(module), function)
    engine = await opened(url)
    await {"stream": stream, "compete": compete}[role](engine, int(count))
    await engine.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
