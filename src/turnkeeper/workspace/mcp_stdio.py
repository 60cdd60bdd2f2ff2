"""MCP over the input and output of a program: one JSON message on each line, with limits for their size and number.

The package ``mcp`` has such a transport, too. This one ends the program with this process, however it ends; keeps the
end of the program's error output; and limits the size of a message.
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
"""Grace period between the request to end and a kill."""

Heard: TypeAlias = "MemoryObjectSendStream[SessionMessage | Exception]"


class ErrorTail:
    """Buffer with the end of a program's error output."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, piece: bytes) -> None:
        """Append a piece."""
        self._kept = (self._kept + piece)[-MCP_ERRORS_BYTES:]

    @property
    def text(self) -> str:
        """The kept output, without control characters."""
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
    """The message streams of a program. ``ended`` gets the reason of their end. Raises OSError on a failed start."""
    program = shutil.which(command[0], path=environ.get("PATH")) if command else None
    if program is None:
        raise FileNotFoundError(f"there is no program {command[0] if command else ''!r}")
    async with (
        _errors(tail) as errors,
        _started([program, *command[1:]], directory, environ, errors) as process,
        anyio.create_task_group() as tasks,
    ):
        # The streams are made after the start, so that a failed start leaves none of them open.
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
    """A pipe for the error output, which is read continuously: a program blocks on a full pipe."""
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
    """Pass on the messages of the program, until it ends or exceeds a limit."""
    reason = ""
    async with heard:  # Closed last: callers that wait get the reason, and not only the end of the stream.
        try:
            await _pass_on(process, heard, tail)
        except _Flood as flood:
            reason = str(flood)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # This side has closed the streams.
        if not reason:
            with anyio.move_on_after(GRACE_S):
                await process.wait()
            reason = f"it ended with exit code {process.exit_code}" if process.exit_code is not None else "it hung up"
        ended(reason)
        await anyio.lowlevel.checkpoint()


class _Flood(Exception):
    """The program exceeds the limit for the size or number of messages."""


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
                tail.add(whole[:MCP_ERRORS_BYTES] + b"\n")  # Some programs log here; the line is shown as an error.
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
