"""bash: a shell command, with its output and its exit code."""

import signal
from pathlib import Path
from typing import Annotated, Final

import anyio
from anyio import to_thread
from msgspec import Meta

from turnkeeper.core.limits import COMMAND_TIMEOUT_MAX_S, COMMAND_TIMEOUT_S, PROGRESS_CHARS_MAX
from turnkeeper.model.value import Value
from turnkeeper.text.shell_rules import command_ask
from turnkeeper.tools.reach import ask_outside, located, shell_places
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import shell
from turnkeeper.workspace.shell import KeptOutput, Ran


class BashArguments(Value):
    """What to run, where, and for how long at most."""

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


async def execute(arguments: BashArguments, context: ToolContext) -> ToolOutput:
    """Run the command once it is allowed."""
    if not arguments.command.strip():
        raise ToolFailure("The command is empty.")
    directory = located(arguments.workdir or ".", context)
    await _ask(arguments, directory, context)
    if not directory.is_dir():
        raise ToolFailure(f"{str(directory)!r} is not a directory, so nothing can run there.")
    description = arguments.description or ""

    async def heard(ending: str) -> None:
        await context.progress(title=arguments.command, metadata={"output": ending, "description": description})

    timeout_s = min((arguments.timeout or COMMAND_TIMEOUT_S * 1000) / 1000, COMMAND_TIMEOUT_MAX_S)
    kept = KeptOutput()
    try:
        ran = await shell.run(
            arguments.command, directory, environ=context.environ, timeout_s=timeout_s, heard=heard, kept=kept
        )
    except anyio.get_cancelled_exc_class():
        # Reports come at intervals: the last one may lack what was printed since.
        with anyio.CancelScope(shield=True):
            await heard(kept.ending(PROGRESS_CHARS_MAX))
        raise
    metadata = {"output": ran.output[-PROGRESS_CHARS_MAX:], "exit": ran.exit_code, "description": description}
    return ToolOutput(
        title=arguments.command, output=said(ran, timeout_s), metadata=metadata, lost_bytes=ran.lost_bytes
    )


async def _ask(arguments: BashArguments, directory: Path, context: ToolContext) -> None:
    """Ask for what lies outside, then for the files that are written, then for the commands."""
    asked = command_ask(arguments.command, context.environ)
    places = await to_thread.run_sync(shell_places, asked, directory, context)
    metadata: dict[str, object] = {
        "command": arguments.command,
        "directories": [str(place) for place in places.outside],
        "patterns": list(asked.patterns),
    }
    await ask_outside(places.outside, context, metadata, unknown=asked.computed)
    if places.edited:
        await context.ask("edit", places.edited, always=["*"], metadata=metadata)
    if asked.patterns:
        await context.ask("bash", asked.patterns, always=asked.always, metadata=metadata)


def said(ran: Ran, timeout_s: float) -> str:
    """What came of a command, as the model reads it."""
    notes = []
    if ran.exit_code is None:
        notes.append(f"[stopped after {timeout_s:g} s, with everything it started; a longer timeout may help]")
    elif ran.exit_code < 0:
        notes.append(f"[ended by {signal.Signals(-ran.exit_code).name}]")
    elif ran.exit_code > 0:
        notes.append(f"[exit code {ran.exit_code}]")
    if ran.is_held:
        notes.append("[something it started is still running; its further output is lost]")
    output = ran.output.rstrip("\n") if ran.output.strip() else "(no output)"
    return "\n".join([output, *notes])


BASH: Final = Tool(
    name="bash",
    description=text("bash"),
    parameters=BashArguments,
    execute=execute,
    permission="bash",
)
