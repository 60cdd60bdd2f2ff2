"""Shell: runs a command line with live output, and terminates it at a timeout or a cancellation."""

import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import msgspec

from turnkeeper.core.limits import DRAIN_S, KILL_GRACE_S, OUTPUT_KEPT_MAX, PROGRESS_CHARS_MAX, PROGRESS_INTERVAL_S
from turnkeeper.core.sandbox import Confinement
from turnkeeper.workspace.children import RunningProcess, started
from turnkeeper.workspace.guarded import Guarded

KNOWN: Final = frozenset({"bash", "zsh", "sh", "dash", "ksh", "ash"})
"""Shells with a syntax that models write. Another shell of the user is not used."""

Heard: TypeAlias = Callable[[str], Awaitable[None]]
Left: TypeAlias = Callable[[Guarded], None]
"""Receives the background processes of a finished command."""


class Ran(msgspec.Struct, frozen=True):
    """The result of a command. ``exit_code`` is None after a timeout, and negative for a signal."""

    output: str
    exit_code: int | None
    is_held: bool = False
    """Whether a background process still runs and has the output open."""
    lost_bytes: int = 0
    """Number of bytes dropped from the middle of the output."""


class KeptOutput:
    """A buffer with a maximum size that keeps the beginning and the end of an output."""

    def __init__(self, bytes_max: int = OUTPUT_KEPT_MAX) -> None:
        self._half = bytes_max // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.lost_bytes = 0
        """Number of bytes dropped from the middle."""

    def add(self, piece: bytes) -> None:
        """Append a piece of output."""
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        # Cut only at twice the size, so that the cost of cutting does not depend on the size of the pieces.
        if len(self._tail) > 2 * self._half:
            self._cut()

    def __len__(self) -> int:
        """The number of bytes in the buffer."""
        return len(self._head) + len(self._tail)

    def text(self) -> str:
        """The kept output, with a line in place of the dropped middle."""
        if len(self._tail) > self._half:
            self._cut()
        if not self.lost_bytes:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (half.decode("utf-8", "replace") for half in (self._head, self._tail))
        return f"{head}\n[... {self.lost_bytes} bytes were not kept ...]\n{tail}"

    def ending(self, characters: int) -> str:
        """The last characters of the output."""
        kept = self._tail if len(self._tail) >= characters * 4 else self._head + self._tail
        return kept[-characters * 4 :].decode("utf-8", "replace")[-characters:]

    def _cut(self) -> None:
        over = len(self._tail) - self._half
        del self._tail[:over]
        self.lost_bytes += over


async def run(
    command: str,
    directory: Path,
    *,
    environ: Mapping[str, str],
    timeout_s: float,
    heard: Heard | None = None,
    interval_s: float = PROGRESS_INTERVAL_S,
    grace_s: float = KILL_GRACE_S,
    kept: KeptOutput | None = None,
    confined: Confinement | None = None,
    is_of_model: bool = False,
    left: Left = Guarded.release,
) -> Ran:
    """Run a command to its end. A timeout or a cancellation ends it with everything that it started.

    ``heard`` gets the end of the output so far, not more often than every ``interval_s``. A caller
    that needs the output after a cancellation passes ``kept``. ``confined`` is the confinement. Background processes go
    on for good, unless ``left`` takes them.
    """
    arguments, given = arguments_of(command, environ)
    kept = KeptOutput() if kept is None else kept
    async with started(
        arguments, directory, given, grace_s=grace_s, confined=confined, is_of_model=is_of_model
    ) as running:
        closed, has_ended = anyio.Event(), False
        try:
            with anyio.move_on_after(timeout_s) as time:
                async with anyio.create_task_group() as reading:
                    reading.start_soon(_hear, running, kept, closed, heard, interval_s)
                    await running.wait()
                    with anyio.move_on_after(DRAIN_S):
                        await closed.wait()
                    reading.cancel_scope.cancel()
            has_ended = running.exit_code is not None and not time.cancelled_caught
        finally:
            if not has_ended:
                await running.end()
            elif (rest := running.leave()) is not None:
                left(rest)
            # A slow report may have kept the reader from the end; the output itself says whether it is open.
            rest_of_output, is_open = running.read_rest()
            kept.add(rest_of_output)
        text, exit_code = kept.text(), running.exit_code if has_ended else None
        return Ran(text, exit_code, is_held=has_ended and is_open, lost_bytes=kept.lost_bytes)


def arguments_of(command: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment of the shell that runs a command without a terminal."""
    return [choose(environ), "-c", command], {**environ, "TERM": "dumb"}


def choose(environ: Mapping[str, str]) -> str:
    """The user's shell if it is in KNOWN, else bash, else sh."""
    preferred = environ.get("SHELL", "")
    path = environ.get("PATH")
    if Path(preferred).name in KNOWN and (found := shutil.which(preferred, path=path)):
        return found
    return shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh"


async def _hear(
    running: RunningProcess, kept: KeptOutput, closed: anyio.Event, heard: Heard | None, interval_s: float
) -> None:
    """Read the output to its end, and report new output to ``heard`` at most once every ``interval_s``."""
    told_at = anyio.current_time() - interval_s
    has_news = False
    while True:
        piece: bytes | None = None
        with anyio.move_on_after(max(told_at + interval_s - anyio.current_time(), 0) if has_news else None):
            piece = await running.read()
        if piece == b"":
            break
        if piece is not None:
            kept.add(piece)
            has_news = heard is not None
        if has_news and heard is not None and anyio.current_time() >= told_at + interval_s:
            await heard(kept.ending(PROGRESS_CHARS_MAX))
            told_at, has_news = anyio.current_time(), False
    closed.set()
