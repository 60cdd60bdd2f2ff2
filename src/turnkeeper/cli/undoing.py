"""Commands that undo and redo what a session did to its history and to files."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import OK, REFUSED
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import Confirms, answer, asked, remark
from turnkeeper.cli.progress import progress
from turnkeeper.cli.screen import Screen, one_line, plural, shortened, show
from turnkeeper.model.refusal import Forbidden
from turnkeeper.text.escapes import escaped

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from turnkeeper.api import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.restore import FileRestore, Reverted

DryRun = Annotated[bool, Parameter(help="Only list what would become of each file.")]
Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask for confirmation.")]

LINES_SHOWN: Final = 50
"""How many files a terminal lists."""
PROMPT_SHOWN: Final = 60

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

    With --json the answer is {"session", "messageID", "files", "problem",
    "isPlan"}. The exit code is 1 if a file stays as it is that should have been
    put back. If it could not be written, say `session undo` again.

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
    async with options.client() if options.address is not None else _store(options) as tk:
        session_id = await names.session(tk, id)
        message_id = await names.message(tk, session_id, message) if message is not None else None
        if dry_run:
            done = await _moved(tk, session_id, message_id, is_redo=is_redo, dry_run=True)
        else:
            done = await move(tk, session_id, is_redo, message_id=message_id, yes=yes, is_quiet=options.json)
    answer(options, done, lambda screen: "\n".join(_cut(screen, _lines(screen, done.files))) if done.is_plan else "")
    remark(options, outcome(done))
    return code(done)


def _store(options: Options) -> "AbstractAsyncContextManager[Turnkeeper]":
    from turnkeeper.run.runtime import Settings

    return options.run(Path.cwd(), Settings(environ=options.environ))


async def move(
    tk: "Turnkeeper | Client",
    session_id: str,
    is_redo: bool,
    *,
    message_id: str | None = None,
    yes: bool,
    is_quiet: bool = False,
    confirms: Confirms | None = None,
) -> "Reverted":
    """List what will become of files, ask, and undo or redo. ``confirms`` asks, by default on the terminal."""
    if yes and is_quiet:
        return await _moved(tk, session_id, message_id, is_redo=is_redo, dry_run=False)
    planned = await _moved(tk, session_id, message_id, is_redo=is_redo, dry_run=True)
    verb = "redo" if is_redo else "undo"
    screen = Screen.of(sys.stderr)
    lines = _cut(screen, _lines(screen, planned.files))
    if yes:
        _list(lines)  # The outcome, which follows at once, tells of a problem.
    else:
        lines += [planned.problem] if planned.problem else []
        otherwise = f"turnkeeper session {verb} {session_id} --yes"
        ask = confirms or partial(asked, no_terminal=f"there is no terminal to ask on; `{otherwise}` does not ask")
        if not await ask(lines, await _question(tk, screen, planned, is_redo=is_redo)):
            raise Forbidden("nothing was changed")
    done = await _moved(tk, session_id, message_id, is_redo=is_redo, dry_run=False)
    known = {one.file for one in planned.conflicts}
    if late := tuple(one for one in done.conflicts if one.file not in known):
        _list(_cut(screen, _lines(screen, late)))
        show(f"`turnkeeper session {verb} {session_id}` tries again when the cause is gone.", to=sys.stderr)
    return done


async def _question(tk: "Turnkeeper | Client", screen: Screen, planned: "Reverted", *, is_redo: bool) -> str:
    """Which prompt is meant, as a question."""
    pending = planned.session.revert
    message_id = (pending.message_id if pending is not None else None) if is_redo else planned.message_id
    named = f" {await _said(tk, screen, planned.session.id, message_id)}" if message_id is not None else ""
    return f"{'Redo' if is_redo else 'Undo'}{named}?"


async def _said(tk: "Turnkeeper | Client", screen: Screen, session_id: str, message_id: str) -> str:
    """A prompt by its first words."""
    from turnkeeper.model.parts import TextPart

    parts = (await tk.message(session_id, message_id)).parts
    text = one_line(" ".join(one.text for one in parts if isinstance(one, TextPart) and not one.synthetic))
    return f'"{shortened(text, PROMPT_SHOWN)}"' if text else message_id


def _list(lines: list[str]) -> None:
    for line in lines:
        show(line, to=sys.stderr)


def _cut(screen: Screen, lines: list[str]) -> list[str]:
    """The lines; on a terminal as many as can be read."""
    more = len(lines) - LINES_SHOWN
    if screen.width is None or more <= 0:
        return lines
    return [*lines[:LINES_SHOWN], f"... and {more:,} more; --dry-run --json lists all"]


async def _moved(
    tk: "Turnkeeper | Client", session_id: str, message_id: str | None, *, is_redo: bool, dry_run: bool
) -> "Reverted":
    if (store := local_store(tk)) is None:
        if is_redo:
            return await tk.redo(session_id, dry_run=dry_run)
        return await tk.undo(session_id, message_id=message_id, dry_run=dry_run)
    with progress("Redoing" if is_redo else "Undoing") as told:
        if is_redo:
            return await store.redo(session_id, dry_run=dry_run, progress=told)
        return await store.undo(session_id, message_id=message_id, dry_run=dry_run, progress=told)


def _lines(screen: Screen, files: "tuple[FileRestore, ...]") -> list[str]:
    """A line for each file that changes, or that should and stays: these first where not all fit."""
    lines = []
    is_long = screen.width is not None and len(files) > LINES_SHOWN
    for one in sorted(files, key=lambda one: one.kind != "conflict") if is_long else files:
        if one.kind in MARKS:
            mark, colour, words = MARKS[one.kind]
            why = f": {one.reason}" if one.reason else ""
            lines.append(f"{screen.paint(mark, colour)} {escaped(one.file)}  {screen.paint(words + why, 'dim')}")
    return lines


def outcome(done: "Reverted") -> str:
    """The result of an undo, as a sentence."""
    changed = sum(one.writes for one in done.files)
    what = f"{plural(changed, 'file')} {'would change' if done.is_plan else 'changed'}"
    count = len(done.conflicts)
    stays = "stays as it is" if count == 1 else "stay as they are"
    left = [f"{plural(count, 'file')} {stays}"] if count else []
    rest = "; ".join([what, *left, *([done.problem] if done.problem else [])])
    if done.is_plan:
        return f"Nothing was done yet. {rest}."
    if done.session.revert is None:
        return f"Nothing is undone any more. {rest}."
    return f"{rest}. Redo brings back what is undone, until the next prompt."


def code(done: "Reverted") -> int:
    """The exit code."""
    return REFUSED if done.conflicts or done.problem else OK
