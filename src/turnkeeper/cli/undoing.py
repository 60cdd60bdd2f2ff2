"""Commands that undo and redo what a session did to its history and to files."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import OK, REFUSED
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer, confirm, note
from turnkeeper.cli.screen import Screen, one_line, plural, show
from turnkeeper.model.refusal import Invalid

if TYPE_CHECKING:
    from turnkeeper.api import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.message_with_parts import MessageWithParts
    from turnkeeper.model.restore import FileRestore
    from turnkeeper.sessions.revert import Reverted

DryRun = Annotated[bool, Parameter(help="Only list what would become of each file.")]
Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask for confirmation.")]

MARKS: Final = {
    "restore": ("~", "yellow", "is put back"),
    "merged": ("~", "yellow", "is put back, and keeps what others changed"),
    "create": ("+", "green", "comes back"),
    "delete": ("-", "red", "is deleted"),
    "conflict": ("!", "red", "stays as it is"),
}


async def undo(
    id: names.SessionName,
    /,
    *,
    message: Annotated[
        str | None, Parameter(metavar="ID", help="Undo from this message on; by default the last prompt.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    options: Options,
) -> int:
    """Undo the last prompt: its answers leave the history, and files are put back.

    What will become of each file is listed first, and asked on a terminal. What
    others changed in a file since is kept; where that is not possible the file
    stays as it is and is named. Undo again to go back one more prompt; `session
    redo` goes forth. The next prompt makes it final.

    With --json the answer is {"session", "files", "problem", "isPlan"}. The exit
    code is 1 if a file stays as it is that should have been put back.

    For example:
      turnkeeper session undo calm-otter --dry-run
      turnkeeper session undo calm-otter --yes
      turnkeeper session undo calm-otter --message msg_1e0ae3b0a001
    """
    return await _command(options, id, message, is_redo=False, dry_run=dry_run, yes=yes)


async def redo(id: names.SessionName, /, *, dry_run: DryRun = False, yes: Yes = False, options: Options) -> int:
    """Bring back the first prompt that was undone, with its answers and files.

    Files are listed and asked for like those of `session undo`, and have the same
    content as before if nobody else has changed them.

    For example:
      turnkeeper session redo calm-otter
    """
    return await _command(options, id, None, is_redo=True, dry_run=dry_run, yes=yes)


async def _command(options: Options, id: str, message: str | None, *, is_redo: bool, dry_run: bool, yes: bool) -> int:
    from turnkeeper.run.runtime import Settings

    if options.address is not None:
        if dry_run:
            options.require_store("--dry-run")
        async with options.client() as client:
            session_id = await names.session(client, id)
            message_id = await names.message(client, session_id, message) if message is not None else None
            done = await move(client, session_id, is_redo, message_id=message_id, yes=yes)
    else:
        async with options.run(Path.cwd(), Settings(environ=options.environ)) as tk:
            session_id = await names.session(tk, id)
            message_id = await names.message(tk, session_id, message) if message is not None else None
            if dry_run:
                done = await _moved(tk, session_id, message_id, is_redo=is_redo, dry_run=True)
            else:
                done = await move(tk, session_id, is_redo, message_id=message_id, yes=yes, is_quiet=options.json)
    answer(options, done, lambda screen: "\n".join(_lines(screen, done.files)) if done.is_plan else "")
    if not options.json:
        note(outcome(done))
    return code(done)


async def move(
    tk: "Turnkeeper | Client",
    session_id: str,
    is_redo: bool,
    *,
    message_id: str | None = None,
    yes: bool,
    is_quiet: bool = False,
) -> "Reverted":
    """List what will become of files, ask, and undo or redo. A server does not say what would become of them."""
    store = local_store(tk)
    if store is not None and not (yes and is_quiet):
        planned = await _moved(store, session_id, message_id, is_redo=is_redo, dry_run=True)
        screen = Screen.of(sys.stderr)
        for line in (*_lines(screen, planned.files), *([planned.problem] if planned.problem else [])):
            show(line, to=sys.stderr)
    if not yes:
        verb = "redo" if is_redo else "undo"
        confirm(
            "Redo?" if is_redo else "Undo?",
            no_terminal=f"there is no terminal to ask on; `turnkeeper session {verb} {session_id} --yes` does not ask",
            refused="nothing was changed",
        )
    if store is not None:
        return await _moved(store, session_id, message_id, is_redo=is_redo, dry_run=False)
    return await _moved_on_server(tk, session_id, message_id, is_redo=is_redo)


async def _moved(
    tk: "Turnkeeper", session_id: str, message_id: str | None, *, is_redo: bool, dry_run: bool
) -> "Reverted":
    if is_redo:
        return await tk.redo(session_id, dry_run=dry_run)
    return await tk.undo(session_id, message_id=message_id, dry_run=dry_run)


async def _moved_on_server(
    client: "Turnkeeper | Client", session_id: str, message_id: str | None, *, is_redo: bool
) -> "Reverted":
    from turnkeeper.sessions.revert import NOTHING_TO_REDO, NOTHING_TO_UNDO, Reverted, prompt_after, prompt_before

    pending = (await client.get(session_id)).revert
    if not is_redo:
        target = message_id or await prompt_before(_newest_first(client, session_id), pending)
        if target is None:
            raise Invalid(NOTHING_TO_UNDO)
    elif pending is None:
        raise Invalid(NOTHING_TO_REDO)
    else:
        target = await prompt_after(_newest_first(client, session_id), pending)
    done = await (client.unrevert(session_id) if target is None else client.revert(session_id, target))
    return done if isinstance(done, Reverted) else Reverted(session=done)


async def _newest_first(client: "Turnkeeper | Client", session_id: str) -> "AsyncIterator[MessageWithParts]":
    before = None
    while True:
        page = await client.messages(session_id, limit=200, before=before)
        for message in reversed(page.items):
            yield message
        if (before := page.older) is None:
            return


def _lines(screen: Screen, files: "tuple[FileRestore, ...]") -> list[str]:
    """A line for each file that changes, or that should and stays."""
    lines = []
    for one in files:
        if one.kind in MARKS:
            mark, colour, words = MARKS[one.kind]
            why = f": {one.reason}" if one.reason else ""
            lines.append(f"{screen.paint(mark, colour)} {one_line(one.file)}  {screen.paint(words + why, 'dim')}")
    return lines


def outcome(done: "Reverted") -> str:
    """What was done, in a sentence."""
    changed = sum(one.writes for one in done.files)
    what = f"{plural(changed, 'file')} {'would change' if done.is_plan else 'changed'}"
    left = [f"{one_line(one.file)} stays as it is: {one.reason}" for one in done.conflicts]
    rest = "; ".join([what, *left, *([done.problem] if done.problem else [])])
    if done.is_plan:
        return f"Nothing was done yet. {rest}."
    state = "A revert is pending" if done.session.revert is not None else "Nothing is undone any more"
    return f"{state}. {rest}."


def code(done: "Reverted") -> int:
    """The exit code."""
    return REFUSED if done.conflicts or done.problem else OK
