"""MCP over the input and output of a program: one JSON message on each line, with bounds that a flood runs into.

The package ``mcp`` has such a transport, too. This one ends the program with this process, however it ends; keeps what
the program wrote to its error output last; and does not collect a message without end.
"""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from turnkeeper.core.limits import MCP_ERRORS_BYTES, MCP_MESSAGE_BYTES_MAX
from turnkeeper.core.mcp import MessageBudget
from turnkeeper.workspace.children import RunningProcess, started

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

GRACE_S: Final = 1.0
"""How long a program has between the request to end and the end."""

Heard: TypeAlias = "MemoryObjectSendStream[SessionMessage | Exception]"


class ErrorTail:
    """What a program wrote last to its error output."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, piece: bytes) -> None:
        """Keep a piece."""
        self._kept = (self._kept + piece)[-MCP_ERRORS_BYTES:]

    @property
    def text(self) -> str:
        """What is kept, without what no terminal should be given."""
        said = self._kept.decode("utf-8", "replace")
        return "".join(one for one in said if one.isprintable() or one in "\n\t").strip()


@asynccontextmanager
async def stdio(
    command: Sequence[str],
    directory: Path,
    environ: Mapping[str, str],
    tail: ErrorTail,
    ended: Callable[[str], None],
) -> AsyncIterator["TransportStreams"]:
    """The streams of a program. ``ended`` is told why they end. Raises OSError if it cannot be started."""
    program = shutil.which(command[0], path=environ.get("PATH")) if command else None
    if program is None:
        raise FileNotFoundError(f"there is no program {command[0] if command else ''!r}")
    async with (
        _errors(tail) as errors,
        _started([program, *command[1:]], directory, environ, errors) as process,
        anyio.create_task_group() as tasks,
    ):
        # Made only now, so that a program that cannot be started leaves none of them open.
        heard, hearing = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        saying, said = anyio.create_memory_object_stream["SessionMessage"](0)
        tasks.start_soon(_hear, process, heard, tail, ended)
        tasks.start_soon(_say, process, said)
        try:
            yield hearing, saying
        finally:
            for stream in (heard, hearing, saying, said):
                stream.close()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _started(
    command: Sequence[str], directory: Path, environ: Mapping[str, str], errors: int
) -> AsyncIterator[RunningProcess]:
    with ExitStack() as ours:
        ours.callback(os.close, errors)
        async with started(command, directory, environ, grace_s=GRACE_S, has_input=True, errors_to=errors) as process:
            ours.close()  # The program has a copy; ours would keep the pipe open.
            yield process


@asynccontextmanager
async def _errors(tail: ErrorTail) -> AsyncIterator[int]:
    """A pipe for the error output, which is read all the while: a program that fills it would wait."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    async def read() -> None:
        while True:
            try:
                piece = os.read(reading, 65536)
            except BlockingIOError:
                await anyio.wait_readable(reading)
                continue
            if not piece:
                return
            tail.add(piece)
            await anyio.lowlevel.checkpoint()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            try:
                yield writing
            finally:
                tasks.cancel_scope.cancel()
    finally:
        os.close(reading)


async def _hear(process: RunningProcess, heard: Heard, tail: ErrorTail, ended: Callable[[str], None]) -> None:
    """Pass on what the program says, until it ends or says too much."""
    reason = ""
    async with heard:  # Closed last: callers that wait get the reason, and not only the end of the stream.
        try:
            await _pass_on(process, heard, tail)
        except _Flood as flood:
            reason = str(flood)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # We have hung up.
        if not reason:
            with anyio.move_on_after(GRACE_S):
                await process.wait()
            reason = f"it ended with exit code {process.exit_code}" if process.exit_code is not None else "it hung up"
        ended(reason)
        await anyio.lowlevel.checkpoint()


class _Flood(Exception):
    """The program says more than anybody could want to hear."""


async def _pass_on(process: RunningProcess, heard: Heard, tail: ErrorTail) -> None:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    pieces: list[bytes] = []
    size, budget = 0, MessageBudget()
    while piece := await process.read():
        *lines, rest = piece.split(b"\n")
        for line in lines:
            whole = b"".join((*pieces, line))
            pieces, size = [], 0
            if (reason := budget.exceeded(1, anyio.current_time())) is not None:
                raise _Flood(reason)
            try:
                message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
            except ValueError:
                tail.add(whole[:MCP_ERRORS_BYTES] + b"\n")  # Programs log to the wrong stream; it is worth showing.
                continue
            await heard.send(SessionMessage(message))
        pieces.append(rest)
        size += len(rest)
        if size > MCP_MESSAGE_BYTES_MAX:
            raise _Flood(f"it sent a message of more than {MCP_MESSAGE_BYTES_MAX // 2**20} MiB")


async def _say(process: RunningProcess, said: "MemoryObjectReceiveStream[SessionMessage]") -> None:
    with suppress(BrokenPipeError):  # The reader notices that the program has ended.
        async for one in said:
            await process.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
