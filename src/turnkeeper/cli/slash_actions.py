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
            return await _move(tk, live, session.id, name)
        case "compact":
            return await live.run(
                tk, session.id, partial(compact, tk, live, session.id, prompt.model), shows_summary=True
            )
        case "export":
            return await _export(tk, options, session.id, action.arguments)
        case "unshare":
            return await _unshare(tk, live, session.id)
    return await _share(tk, live, session.id)


async def _move(tk: "Turnkeeper | Client", live: "Live", session_id: str, name: str) -> int:
    from turnkeeper.cli import undoing

    done = await undoing.move(tk, session_id, name == "redo", yes=False)
    live.display.note(undoing.outcome(done))
    return undoing.code(done)


async def _share(tk: "Turnkeeper | Client", live: "Live", session_id: str) -> int:
    from turnkeeper.cli import sharing

    link = await sharing.share_one(tk, session_id, yes=False)
    live.display.note(f"{link.url}\n{await sharing.hint(tk, link)}")
    return OK


async def _unshare(tk: "Turnkeeper | Client", live: "Live", session_id: str) -> int:
    from turnkeeper.cli import sharing

    await sharing.unshare_one(tk, session_id)
    live.display.note("The link is withdrawn.")
    return OK


async def _export(tk: "Turnkeeper | Client", options: Options, session_id: str, output: str) -> int:
    from turnkeeper.cli import interop

    if (store := local_store(tk)) is None:
        options.require_store("/export")
        raise AssertionError("a server has no store here")
    return await interop.export_one(store, options, session_id, output or None)
