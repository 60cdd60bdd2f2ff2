"""Typed lines on a terminal that cannot move its cursor: a prompt, then its answer, then the next prompt."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.typing_place import Desk
from turnkeeper.cli.feed import Display
from turnkeeper.cli.output import asked
from turnkeeper.cli.permission_prompt import LINE_BYTES_MAX
from turnkeeper.cli.plain import Plain

MARK = "> "


class PlainLines:
    """Reads a line whenever the chat is idle. What is typed meanwhile is read then; there is no steering."""

    def __init__(self, history: TypedLines) -> None:
        self._history = history
        self._ready, self._typed, self._closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._is_reading = False

    def display(self, *, thinking: bool) -> Display:
        """The display for plain text."""
        return Plain(thinking=thinking)

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Nothing is read while a turn or a command runs."""
        return nullcontext()

    def asking(self) -> AbstractAsyncContextManager[None]:
        """Nothing is read while a turn runs."""
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
        """Read the next line, if the chat is idle; or say that one is still read."""
        if self._is_reading:
            print(MARK, end="", flush=True)
        else:
            self._ready.set()

    def put_back(self, text: str) -> None:
        """Nothing: the line still stands on the screen."""

    def close(self) -> None:
        """End ``run``, also while it reads."""
        self._closed.set()
        self._ready.set()
        self._typed.set()

    async def _line(self) -> str | None:
        """A line; None at the end of input. No thread waits for it, so that it can be cancelled."""
        self._is_reading = True
        print(MARK, end="", flush=True)
        loop, handle = asyncio.get_running_loop(), sys.stdin.fileno()
        self._typed.clear()
        loop.add_reader(handle, self._typed.set)
        try:
            await self._typed.wait()
        finally:
            loop.remove_reader(handle)
            self._is_reading = False
        if self._closed.is_set():
            return None
        try:
            line = os.read(handle, LINE_BYTES_MAX)
        except OSError:  # The terminal is gone.
            return None
        return line.decode("utf-8", "replace").rstrip("\r\n") if line else None
