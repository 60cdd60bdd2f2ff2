"""A place to type in for tests of a chat: lines that are typed one after another."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio

from turnkeeper.cli.chat.typing_place import Desk
from turnkeeper.cli.feed import Display
from turnkeeper.cli.plain import Plain


class Lines:
    """A place where each line is typed when the chat is idle, and then the user leaves.

    In place of a line something else may be done.
    """

    def __init__(self, *lines: str | Callable[[], Awaitable[object]]) -> None:
        self._lines = iter(lines)
        self._ready, self._closed = anyio.Event(), anyio.Event()

    def display(self, *, thinking: bool) -> Display:
        return Plain(thinking=thinking)

    def alone(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def asking(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def confirms(self, lines: Sequence[str], question: str) -> bool:
        return True

    async def run(self, desk: Desk) -> None:
        while not self._closed.is_set():
            await self._ready.wait()
            self._ready = anyio.Event()
            if desk.state == "idle" and not self._closed.is_set():
                line = next(self._lines, None)
                while callable(line):
                    await line()
                    line = next(self._lines, None)
                desk.heard("leave" if line is None else "send", line or "")

    def ready(self) -> None:
        self._ready.set()

    def put_back(self, text: str) -> None:
        raise AssertionError(f"refused: {text}")

    def close(self) -> None:
        self._closed.set()
        self._ready.set()
