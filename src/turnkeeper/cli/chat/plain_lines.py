"""Typed lines on a terminal that cannot move its cursor: a prompt, then its answer, then the next prompt."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio

from turnkeeper.cli.awaited_line import awaited_line
from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.typing_place import Desk
from turnkeeper.cli.feed import Display
from turnkeeper.cli.output import asked
from turnkeeper.cli.plain import Plain

MARK = "> "


class PlainLines:
    """Reads a line whenever the chat is idle. Lines typed during a turn are read after it; there is no steering."""

    def __init__(self, history: TypedLines) -> None:
        self._history = history
        self._ready, self._closed = asyncio.Event(), asyncio.Event()
        self._reading: anyio.CancelScope | None = None

    def display(self, *, thinking: bool) -> Display:
        """The display for plain text."""
        return Plain(thinking=thinking)

    def alone(self) -> AbstractAsyncContextManager[None]:
        """A context without effect: no line is read while a turn or a command runs."""
        return nullcontext()

    def asking(self) -> AbstractAsyncContextManager[None]:
        """A context without effect: no line is read while a turn runs."""
        return nullcontext()

    async def confirms(self, lines: Sequence[str], question: str) -> bool:
        """Ask on the terminal."""
        return await asked(lines, question)

    async def run(self, desk: Desk) -> None:
        """Read lines until ``close``."""
        while not self._closed.is_set():
            await self._ready.wait()
            self._ready.clear()
            if desk.state != "idle" or self._closed.is_set():
                continue
            line = await self._line()
            if self._closed.is_set():
                return
            if line is None:
                desk.heard("leave", "")
            elif line.strip():
                self._history.add(line)
                desk.heard("send", line)
            else:
                self._ready.set()

    def ready(self) -> None:
        """Read the next line if the chat is idle; if a line is being read, print the prompt mark again."""
        if self._reading is not None:
            print(MARK, end="", flush=True)
        else:
            self._ready.set()

    def put_back(self, text: str) -> None:
        """Nothing: the line is still on the screen."""

    def close(self) -> None:
        """End ``run``, also while it reads."""
        self._closed.set()
        self._ready.set()
        if self._reading is not None:
            self._reading.cancel()

    async def _line(self) -> str | None:
        """A line; None at the end of input."""
        print(MARK, end="", flush=True)
        line = None
        with anyio.CancelScope() as self._reading:
            line = await awaited_line()
        self._reading = None
        return line.rstrip("\r\n") if line is not None else None
