"""A process that writes to a store and says what was acknowledged, for tests that kill it or write beside it.

``python -m turnkeeper.testing.engine_child ROLE MODULE:OPENER URL [COUNT]``
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import cast

from turnkeeper.store.engine import Engine, LogConflict

LOGS = ("ses_a", "ses_b", "ses_c")
"""The logs that ``stream`` writes at the same time."""

Opener = Callable[[str], Awaitable[Engine]]


def entry(log: str, number: int) -> bytes:
    """What ``stream`` appends as this entry of a log; the sizes differ, so that pages fill unevenly."""
    return f'{{"log":"{log}","seq":{number},"pad":"{"é" * (number * 37 % 500)}"}}'.encode()


async def extend(engine: Engine, log: str, number: int) -> None:
    """Append this entry to a log, with its documents and its text."""
    item = ("item", log, f"{number:06}")
    documents = {("head", log): str(number).encode(), item: entry(log, number)}
    await engine.append(log, number - 1, [entry(log, number)], documents, texts={item: f"entry number{number}"})


async def stream(engine: Engine, count: int) -> None:
    """Extend each log by ``count`` entries, and print each entry once it is acknowledged."""

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
    """Add ``count`` entries to one log that others extend too, and read again whenever another was first."""
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
    """Open the store and play the role."""
    module, _, function = opener.partition(":")
    # The name comes from the command line; what it must be is said in engine_contract.StoreUnderTest.
    engine = await cast(Opener, getattr(import_module(module), function))(url)
    await {"stream": stream, "compete": compete}[role](engine, int(count))
    await engine.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
