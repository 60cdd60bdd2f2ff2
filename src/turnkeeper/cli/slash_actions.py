"""Built-in commands that are no prompts, as `/undo`: carries them out in a session."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.cli.failures import OK, UsageError
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.sending import compact
from turnkeeper.cli.slash import CalledCommand, files_of

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.prompt import Prompt
    from turnkeeper.model.session import Session


async def act(
    tk: "Turnkeeper | Client",
    live: "Live",
    options: Options,
    session: "Session | None",
    action: CalledCommand,
    prompt: "Prompt",
) -> int:
    """Carry out a built-in command that is no prompt; the exit code."""
    name = action.command.name
    if name == "help":
        from turnkeeper.cli.slash_commands import show_commands

        show_commands(options, await tk.commands(Path(session.directory) if session is not None else None))
        return OK
    if (action.arguments and not action.command.hints) or action.input or files_of(prompt):
        raise UsageError(f"/{name} goes alone; leave out the other words and files")
    if session is None:
        raise UsageError(f"/{name} needs a session; add -c for the last one, or -s ID")
    match name:
        case "undo" | "redo":
            from turnkeeper.cli import undoing

            done = await undoing.move(tk, session.id, name == "redo", yes=False)
            live.display.note(undoing.outcome(done))
            return undoing.code(done)
        case "compact":
            return await live.run(
                tk, session.id, partial(compact, tk, live, session.id, prompt.model), shows_summary=True
            )
        case "export":
            from turnkeeper.cli import interop

            options.require_store("/export")
            store = local_store(tk)
            assert store is not None
            return await interop.export_one(store, options, session.id, action.arguments or None)
    from turnkeeper.cli import sharing

    if name == "unshare":
        await sharing.unshare_one(tk, session.id)
        live.display.note("The link is withdrawn.")
    else:
        link = await sharing.share_one(tk, session.id, yes=False)
        live.display.note(f"{link.url}\n{await sharing.hint(tk, link)}")
    return OK
