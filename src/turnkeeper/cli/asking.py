"""Asking a person for permission, at the terminal; where nobody can be asked, the answer is no, with a hint."""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import anyio

from turnkeeper.cli.calls import arguments
from turnkeeper.cli.patch import patch_lines
from turnkeeper.cli.screen import Screen, harmless, one_line, show
from turnkeeper.run.permission import PermissionRequest, Reply

if TYPE_CHECKING:
    from turnkeeper.cli.feed import Display

LINE_BYTES_MAX: Final = 64 * 1024


class Desk:
    """Where questions are put. One at a time; meanwhile the display is left alone."""

    def __init__(self, display: "Display") -> None:
        self._display = display
        self.lock = anyio.Lock()
        """Held while somebody is being asked."""

    async def ask(self, request: PermissionRequest) -> Reply:
        """Put a question to the person at the terminal."""
        async with self.lock:
            self._display.close()
            screen = Screen.of(sys.stderr)
            show("\n".join(["", *_question(screen, request)]), to=sys.stderr)
            while True:
                reply = understood(await self._line(_choices(screen, request)))
                if reply is not None:
                    return reply

    async def _line(self, prompt: str) -> str | None:
        """What is typed; None at the end of input. Can be cancelled, as no thread waits for a key."""
        _forget_typed()
        print(prompt, end="", file=sys.stderr, flush=True)
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        handle = sys.stdin.fileno()
        loop.add_reader(handle, typed.set)
        try:
            await typed.wait()
        except BaseException:
            print(file=sys.stderr)
            raise
        finally:
            loop.remove_reader(handle)
        line = os.read(handle, LINE_BYTES_MAX)
        return line.decode("utf-8", "replace") if line else None


class Nobody:
    """Says no, and says once how it could have been yes."""

    def __init__(self, display: "Display") -> None:
        self._display = display
        self._told: set[str] = set()

    async def ask(self, request: PermissionRequest) -> Reply:
        """Refuse."""
        if request.permission not in self._told:
            self._told.add(request.permission)
            wanted = ", ".join(map(one_line, request.patterns))
            self._display.note(
                f"! {request.permission} was wanted for {wanted}, and nobody can be asked here. Add --auto to allow "
                f'everything, or set "permission": {{"{request.permission}": "allow"}} in turnkeeper.json.'
            )
        return Reply(answer="reject")


def understood(typed: str | None) -> Reply | None:
    """What an answer means; None if it means nothing. Words are advice for the model."""
    if typed is None:
        return Reply(answer="reject")
    match typed.strip().casefold():
        case "":
            return None
        case "y" | "yes":
            return Reply(answer="once")
        case "a" | "always":
            return Reply(answer="always")
        case "n" | "no":
            return Reply(answer="reject")
    return Reply(answer="reject", feedback=typed.strip())


def _question(screen: Screen, request: PermissionRequest) -> Iterator[str]:
    what = {
        "edit": "Change a file?",
        "bash": "Run a command?",
        "external_directory": "Leave the project?",
        "doom_loop": "The same call for the third time. Go on?",
    }.get(request.permission, f"Use {request.permission}?")
    yield screen.paint(f"? {harmless(what)}", "bold", "yellow")
    yield from (f"  {line}" for line in _about(screen, request))


def _about(screen: Screen, request: PermissionRequest) -> Iterator[str]:
    match request.permission, request.metadata:
        case "bash", {"command": str(command)}:
            yield from harmless(command).splitlines()
        case "edit", {"diff": str(patch), "filediff": {"file": str(name)}}:
            yield one_line(name)
            yield from patch_lines(screen, patch, lines_max=40)
        case "doom_loop", {"input": dict() as given}:
            yield one_line(f"{', '.join(request.patterns)} {arguments(given)}")
        case _:
            yield ", ".join(map(one_line, request.patterns))


def _choices(screen: Screen, request: PermissionRequest) -> str:
    always = _shown(request.always or request.patterns)
    keys = f"y = once, a = always{f' ({always})' if always else ''}, n = no, or say what to do instead"
    return f"{screen.paint(keys, 'dim')}\n> "


def _shown(patterns: Sequence[str]) -> str:
    text = ", ".join(map(one_line, patterns))
    return "" if text == "*" or len(text) > 60 else text


def _forget_typed() -> None:
    """What was typed before the question was there is no answer to it."""
    import termios

    try:
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    except termios.error:
        return
