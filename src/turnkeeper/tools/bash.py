"""bash: a shell command, with its output and its exit code."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import anyio
import msgspec
from anyio import to_thread
from msgspec import Meta

from turnkeeper.core import flags
from turnkeeper.core.limits import (
    COMMAND_BYTES_MAX,
    COMMAND_TIMEOUT_MAX_S,
    COMMAND_TIMEOUT_S,
    KILL_GRACE_S,
    PROGRESS_CHARS_MAX,
)
from turnkeeper.core.sandbox import EXTERNAL, Confinement, directory_of, refusal_note, temporary_of
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.text import wildcard
from turnkeeper.text.shell_rules import CommandAsk, command_ask
from turnkeeper.tools.reach import ShellPlaces, located, outside, shell_places
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.tools.wanted import Wanted, ask_all
from turnkeeper.workspace import shell
from turnkeeper.workspace.guarded import Guarded
from turnkeeper.workspace.launcher import LAUNCHER
from turnkeeper.workspace.shell import KeptOutput, Ran


class BashArguments(Value):
    """The command, its directory and its timeout."""

    command: Annotated[str, Meta(description="The command line.")]
    timeout: (
        Annotated[
            int,
            Meta(description=f"Milliseconds after which it is stopped. Default: {COMMAND_TIMEOUT_S * 1000:.0f}.", ge=1),
        ]
        | None
    ) = None
    workdir: Annotated[str | None, Meta(description="Where to run it. Default: the session's directory.")] = None
    description: Annotated[str | None, Meta(description="What it does, in a few words, for the user.")] = None
    background: Annotated[
        bool,
        Meta(description="Return at once and let it run on as a job; `jobs` reads and ends it. Default: false."),
    ] = False
    outside: Annotated[
        bool,
        Meta(description="Run it outside the sandbox, if the sandbox refused it; the user is asked. Default: false."),
    ] = False


async def execute(arguments: BashArguments, context: ToolContext) -> ToolOutput:
    """Run the command once it is allowed."""
    if not arguments.command.strip():
        raise ToolFailure("The command is empty.")
    if len(os.fsencode(arguments.command)) > COMMAND_BYTES_MAX:
        raise ToolFailure(f"The command is longer than {COMMAND_BYTES_MAX} bytes. Write it to a file and run that.")
    directory = located(arguments.workdir or ".", context)
    granted = GrantedDirectories(context)
    confined = await to_thread.run_sync(context.confine)
    # Paths are checked as the shell will expand them.
    if not arguments.outside:
        context = msgspec.structs.replace(context, environ={**context.environ, **temporary_of(confined)})
    if confined is not None and confined.is_by_rule and arguments.outside:
        raise ToolFailure("The rules of this agent deny every change, so no command runs outside the sandbox.")
    wanted = await _wanted(arguments, directory, context, is_confined=confined is not None)
    await ask_all(wanted, context, granted.ask)
    if confined is not None:
        confined = None if arguments.outside else confined.also(map(os.path.realpath, granted.directories))
    if not directory.is_dir():
        raise ToolFailure(f"{str(directory)!r} is not a directory, so nothing can run there.")
    description = arguments.description or ""
    if arguments.background:
        return await _in_background(arguments, directory, confined, context)

    async def heard(ending: str) -> None:
        await context.progress(title=arguments.command, metadata={"output": ending, "description": description})

    default_ms = flags.BASH_TIMEOUT.number(context.environ) or COMMAND_TIMEOUT_S * 1000
    timeout_s = min((arguments.timeout or default_ms) / 1000, COMMAND_TIMEOUT_MAX_S)
    kept = KeptOutput()
    try:
        ran = await shell.run(
            arguments.command,
            directory,
            environ=context.environ,
            timeout_s=timeout_s,
            heard=heard,
            kept=kept,
            confined=confined,
            is_of_model=True,
            left=partial(_left, context),
        )
    except anyio.get_cancelled_exc_class():
        # Reports come at intervals: the last one may lack what was printed since.
        with anyio.CancelScope(shield=True):
            await heard(kept.ending(PROGRESS_CHARS_MAX))
        raise
    metadata = {"output": ran.output[-PROGRESS_CHARS_MAX:], "exit": ran.exit_code, "description": description}
    note = refusal_note(confined, ran.output, ran.exit_code) if confined is not None else None
    if note is not None:
        metadata["sandbox"] = note
    output = "\n".join([said(ran, timeout_s), *([note] if note else [])])
    return ToolOutput(title=arguments.command, output=output, metadata=metadata, lost_bytes=ran.lost_bytes)


async def needed(arguments: BashArguments, context: ToolContext) -> list[Wanted]:
    """The permissions that a command needs if it is run in the sandbox."""
    confined = await to_thread.run_sync(context.confine)
    context = msgspec.structs.replace(context, environ={**context.environ, **temporary_of(confined)})
    return await _wanted(arguments, located(arguments.workdir or ".", context), context, is_confined=True)


def _left(context: ToolContext, rest: Guarded) -> None:
    if context.jobs is None:
        rest.end(KILL_GRACE_S)
    else:
        context.jobs.keep(context.session_id, rest)


async def _in_background(
    arguments: BashArguments, directory: Path, confined: Confinement | None, context: ToolContext
) -> ToolOutput:
    if context.jobs is None:
        raise ToolFailure("There are no background jobs here; run the command without `background`.")
    job = await context.jobs.start(context.session_id, arguments.command, directory, context.environ, confined)
    log = f" Its output is also in {job.file}." if job.file is not None else ""
    return ToolOutput(
        title=arguments.command,
        output=f'Started as {job.id}; `jobs` with action "read" shows its output, with action "end" ends it.{log} '
        "It is ended with the session.",
        metadata={"job": job.id, "output": "", "exit": None, "description": arguments.description or ""},
    )


class GrantedDirectories:
    """Forwards asks, and records the directories outside the project that the user allowed when asked."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self.directories: list[str] = []

    async def ask(
        self, permission: str, patterns: Sequence[str], *, always: Sequence[str], metadata: JsonObject
    ) -> None:
        """Ask for permission. Directories that rules allow are not recorded: the rules may be a project's."""
        is_asked = not self._context.may(permission, patterns)
        await self._context.ask(permission, patterns, always=always, metadata=metadata)
        if permission == EXTERNAL and is_asked:
            home = str(Path.home())
            self.directories += [place for one in patterns if (place := directory_of(one, home)) is not None]


async def _wanted(
    arguments: BashArguments, directory: Path, context: ToolContext, *, is_confined: bool
) -> list[Wanted]:
    """The permissions for directories outside the project, for written files, for the commands, and for no sandbox."""
    command = arguments.command
    asked, places = await to_thread.run_sync(_examined, command, directory, context)
    metadata: dict[str, object] = {
        "command": command,
        "directories": [str(place) for place in places.outside],
        "patterns": list(asked.patterns),
    }
    wanted = outside(places.outside, metadata, unknown=[*asked.computed, *places.unknown])
    if places.edited:
        wanted.append(Wanted("edit", places.edited, ["*"], metadata))
    if asked.patterns:
        wanted.append(Wanted("bash", asked.patterns, asked.always, metadata))
    if arguments.outside and is_confined:
        # Each command by itself: a rule or an approval of "make *" must not let "make; curl x" out.
        commands = asked.patterns or (command,)
        always = [wildcard.literal(one) for one in commands]
        wanted.append(Wanted("sandbox", commands, always, {"command": command, "outside": True}))
    return wanted


def _examined(command: str, directory: Path, context: ToolContext) -> tuple[CommandAsk, ShellPlaces]:
    asked = command_ask(command, context.environ)
    return asked, shell_places(asked, directory, context)


def said(ran: Ran, timeout_s: float) -> str:
    """The result of a command as the model reads it."""
    notes = []
    if ran.exit_code is None:
        notes.append(f"[stopped after {timeout_s:g} s, with everything it started; a longer timeout may help]")
    elif ran.exit_code < 0:
        notes.append(f"[ended by {_signal_name(-ran.exit_code)}]")
    elif ran.exit_code > 0:
        notes.append(f"[exit code {ran.exit_code}]")
    if ran.is_held:
        notes.append("[something it started is still running; its further output is lost]")
    output = ran.output.rstrip("\n") if ran.output.strip() else "(no output)"
    return "\n".join([output, *notes])


def _signal_name(number: int) -> str:
    # Of the real-time signals only the first and the last have a name.
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


BASH: Final = Tool(
    name="bash",
    description=text("bash"),
    parameters=BashArguments,
    execute=execute,
    permission="bash",
    prepare=LAUNCHER.prepare,
)
