"""A command that the user runs in a session: on record like a call of the bash tool, though no model made it."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.limits import PROGRESS_CHARS_MAX, PROGRESS_MS
from turnkeeper.core.lowering import DELEGATED
from turnkeeper.core.transcribe import interrupted
from turnkeeper.core.turn_ends import Ending, broken_off, close_turn, open_turn
from turnkeeper.mint import Mint
from turnkeeper.model.event import MessageRecorded, PartRecorded, TurnStarted
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import RunningTime, SettledTime, ToolCompleted, ToolError, ToolRunning, ToolState
from turnkeeper.run.abandon import run_or_abandon
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.text.surrogates import clean
from turnkeeper.tools.bash import said
from turnkeeper.tools.output import Bounds
from turnkeeper.tools.tool import ToolOutput
from turnkeeper.workspace import shell
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.shell import KeptOutput, Ran

TOOL = "bash"


class ShellCommand(msgspec.Struct, frozen=True):
    """One command, and the user message it is recorded under."""

    mint: Mint
    user: UserMessage
    command: str
    place: ProjectPlace
    group: TaskGroup
    """Outlives the command's record: a command that ignores an interrupt is ended in it."""
    environ: Mapping[str, str]
    is_cut_off: Callable[[str, BaseException], bool]
    """Whether work in a session that ends with this error was stopped by the store."""
    bounds: Bounds = msgspec.field(default_factory=Bounds)

    async def run(self, writer: FencedWriter) -> None:
        """Run it to its end. The log always has its end, and what was printed until then."""
        directory, worktree, id = str(self.place.directory), str(self.place.worktree), self.mint.message_id()
        message = open_turn(self.user, directory, worktree, id=id, now=self.mint.now())
        running = self._call()
        part = self._part(message, running)
        await writer.append(
            MessageRecorded(message=self.user, parts=(self._introduction(),)),
            TurnStarted(message=message),
            PartRecorded(part=part),
            at="attempt",
        )
        crash_point("run.tool-begin")
        kept = KeptOutput()
        try:
            execute = partial(self._execute, writer, part, running, kept)
            state = await run_or_abandon(self.group, execute, name=f"command {part.call_id}")
        except BaseException as error:
            # Stopped, mostly: what it printed is the user's, and goes on record before the cancellation goes on.
            stopped = part.but(state=self._stopped(part, running, kept))
            is_cut_off = self.is_cut_off(writer.session_id, error)
            await self._end(writer, message, broken_off(error, "command", stopped, is_cut_off=is_cut_off))
            raise
        await self._end(writer, message, Ending(parts=(part.but(state=state),)))

    async def _end(self, writer: FencedWriter, message: AssistantMessage, ending: Ending) -> None:
        """Record the end. It is held first, so that it is not lost if the store takes no writes now."""
        writer.hold(*close_turn(message, ending, self.mint.now()), at="end")
        await writer.flush()

    async def _execute(self, writer: FencedWriter, part: ToolPart, running: ToolRunning, kept: KeptOutput) -> ToolState:
        async def heard(ending: str) -> None:
            progress = PartRecorded(part=part.but(state=running.but(metadata={"output": ending})))
            with suppress(StoreUnavailable):  # The command goes on, and its result says all of it again.
                await writer.append(progress, at="record")

        try:
            ran = await shell.run(
                self.command,
                self.place.directory,
                environ=self.environ,
                timeout_s=math.inf,  # The user waits, and can stop it.
                heard=heard,
                interval_s=PROGRESS_MS / 1000,
                kept=kept,
            )
        except OSError as error:
            text = f"{self.place.directory}: {error.strerror or error}"
            return ToolError(input=running.input, error=clean(text), time=self._time(running))
        return await self._completed(running, ran)

    async def _completed(self, running: ToolRunning, ran: Ran) -> ToolState:
        """Completed for every exit code: the command ran, and its output is the result."""
        metadata = {"output": ran.output[-PROGRESS_CHARS_MAX:], "exit": ran.exit_code}
        given = ToolOutput(title="", output=said(ran, math.inf), metadata=metadata, lost_bytes=ran.lost_bytes)
        output, bounded, _, path = await self.bounds.bound(given)
        return ToolCompleted(
            input=running.input,
            output=output.output,
            title=output.title,
            metadata=output.metadata,
            time=self._time(running),
            output_paths=(path,) if path is not None else None,
            full=bounded.full,
        )

    def _stopped(self, part: ToolPart, running: ToolRunning, kept: KeptOutput) -> ToolState:
        reached = running.but(metadata={"output": kept.ending(PROGRESS_CHARS_MAX)})
        return interrupted(part.but(state=reached), self.mint.now())

    def _introduction(self) -> TextPart:
        return TextPart(
            id=self.mint.part_id(),
            session_id=self.user.session_id,
            message_id=self.user.id,
            text=DELEGATED,
            synthetic=True,
        )

    def _call(self) -> ToolRunning:
        return ToolRunning(input={"command": self.command}, time=RunningTime(start=self.mint.now()))

    def _part(self, message: AssistantMessage, running: ToolRunning) -> ToolPart:
        return ToolPart(
            id=self.mint.part_id(),
            session_id=message.session_id,
            message_id=message.id,
            call_id=self.mint.ascending("call"),
            tool=TOOL,
            state=running,
        )

    def _time(self, running: ToolRunning) -> SettledTime:
        return SettledTime(start=running.time.start, end=self.mint.now())
