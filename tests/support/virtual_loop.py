"""An event loop whose clock stands still while tasks run, and jumps to the next timer when all of them wait."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Nothing waits for real time, so hours pass in moments, and in the same order every time."""

    def __init__(self) -> None:
        self._instant = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        return self._instant

    def jump(self, seconds: float) -> None:
        self._instant += seconds


class _Jump(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every task waits, and no timer runs")
        self._loop.jump(max(timeout, 0.0))
        return super().select(0)


def run_virtual(main: Callable[[], Awaitable[T]]) -> T:
    """Run a function to its end on a loop of its own."""

    async def whole() -> T:
        return await main()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(whole())


async def pass_time(seconds: float) -> None:
    """Let virtual time pass; real time does not."""
    passed = anyio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()
