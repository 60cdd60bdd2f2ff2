"""Commands that change sessions: create, fork, archive, restore, rename, move, delete."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.answer import answer
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.screen import Screen, one_line, plural
from turnkeeper.cli.session_name import SessionName
from turnkeeper.model.refusal import Forbidden

if TYPE_CHECKING:
    from turnkeeper.model.session import Session, SessionModel
    from turnkeeper.model.value import JsonObject

Title = Annotated[str | None, Parameter(metavar="TEXT", help="What it is about.", allow_leading_hyphen=True)]


async def create(
    *,
    title: Title = None,
    directory: Annotated[Path | None, Parameter(metavar="DIR", help="Where it works; by default here.")] = None,
    parent: Annotated[str | None, Parameter(metavar="ID", help="Make it a Child Session of this one.")] = None,
    agent: Annotated[str | None, Parameter(metavar="NAME", help="The agent it uses.")] = None,
    model: Annotated[str | None, Parameter(metavar="PROVIDER/MODEL", help="The model it uses.")] = None,
    metadata: Annotated[str | None, Parameter(metavar="JSON", help="An object to keep with it.")] = None,
    id: Annotated[str | None, Parameter(metavar="ID", help="Its id. If it exists, it stays as it is.")] = None,
    options: Options = EVERYWHERE,
) -> None:
    """Create a session.

    Without a title it is named after the moment. The answer is the new session.

    Examples:
      turnkeeper session create --title "Wind over the bay"
      turnkeeper session create --parent calm-otter --directory ~/code/weather
      id=$(turnkeeper session create --json | jq -r .id)
    """
    async with options.sessions() as tk:
        session = await tk.create(
            title=title,
            directory=names.directory(directory, is_near=options.is_near) if directory is not None else None,
            parent_id=await names.session(tk, parent) if parent is not None else None,
            agent=agent,
            model=_model(model) if model is not None else None,
            metadata=_metadata(metadata) if metadata is not None else None,
            id=id,
        )
    answer(options, session, lambda screen: _said(screen, "Created", session))


async def fork(
    id: SessionName,
    /,
    *,
    message: Annotated[str | None, Parameter(metavar="ID", help="Copy what came before this message.")] = None,
    directory: Annotated[Path | None, Parameter(metavar="DIR", help="Where the fork works.")] = None,
    options: Options = EVERYWHERE,
) -> None:
    """Copy a session's history, whole or up to (without) a message, into a new session.

    Examples:
      turnkeeper session fork calm-otter
      turnkeeper session fork ses_e1f51c506ffe --message msg_1e0ae3b0a001
    """
    if directory is not None:
        options.only_here("fork --directory")
    async with options.sessions() as tk:
        session_id = await names.session(tk, id)
        session = await tk.fork(
            session_id,
            message_id=await names.message(tk, session_id, message) if message is not None else None,
            directory=names.directory(directory) if directory is not None else None,
        )
    answer(options, session, lambda screen: _said(screen, "Forked", session))


async def archive(id: SessionName, /, *, options: Options = EVERYWHERE) -> None:
    """Take a session off the list; it keeps everything.

    Examples:
      turnkeeper session archive calm-otter
    """
    async with options.sessions() as tk:
        session = await tk.archive(await names.session(tk, id))
    answer(options, session, lambda screen: _said(screen, "Archived", session))


async def restore(id: SessionName, /, *, options: Options = EVERYWHERE) -> None:
    """Put an archived session back on the list.

    Examples:
      turnkeeper session restore calm-otter
    """
    async with options.sessions() as tk:
        session = await tk.restore(await names.session(tk, id))
    answer(options, session, lambda screen: _said(screen, "Restored", session))


async def rename(
    id: SessionName,
    title: Annotated[str, Parameter(metavar="TITLE", help="The new title.", allow_leading_hyphen=True)],
    /,
    *,
    options: Options = EVERYWHERE,
) -> None:
    """Give a session a title.

    Examples:
      turnkeeper session rename calm-otter "Wind and tide"
    """
    async with options.sessions() as tk:
        session = await tk.rename(await names.session(tk, id), title)
    answer(options, session, lambda screen: _said(screen, "Renamed", session))


async def move(
    id: SessionName,
    directory: Annotated[Path, Parameter(metavar="DIR", help="Where it works from now on.")],
    /,
    *,
    options: Options = EVERYWHERE,
) -> None:
    """Let a session work in another directory from now on; its project follows.

    Examples:
      turnkeeper session move calm-otter ~/code/weather
    """
    there = names.directory(directory)
    async with options.open() as tk:
        session = await tk.move(await names.session(tk, id), there)
    answer(options, session, lambda screen: f"{_said(screen, 'Moved', session)}  {screen.path(session.directory)}")


async def delete(
    id: SessionName,
    /,
    *,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask.")] = False,
    options: Options = EVERYWHERE,
) -> None:
    """Remove a session, its children and all that belongs to them. There is no way back.

    Asks first. Where nobody can be asked it refuses, unless --yes is given. With --json the answer is the list
    of removed sessions, children first. To hide a session and keep it, archive it.

    Examples:
      turnkeeper session delete calm-otter
      turnkeeper session delete ses_e1f51c506ffe --yes --json
    """
    async with options.sessions() as tk:
        session_id = await names.session(tk, id)
        if not yes:
            _ask(await tk.get(session_id), len(await tk.children(session_id, recursive=True)))
        removed = await tk.remove(session_id)
    answer(options, removed, lambda screen: "\n".join(_said(screen, "Removed", one) for one in removed))


def _ask(session: "Session", children: int) -> None:
    """Raise Forbidden unless a person says yes."""
    if not sys.stdin.isatty():
        raise Forbidden("there is no terminal to ask on, so nothing was removed; add --yes to remove it")
    also = f" and {plural(children, 'child', 'children')}" if children else ""
    reply = _line(f"Remove {session.id} ({one_line(session.title)}){also} for ever? [y/N] ")
    if reply.strip().casefold() not in ("y", "yes"):
        raise Forbidden("nothing was removed")


def _line(question: str) -> str:
    """What a person types. Ctrl-C ends the waiting: the event loop's own handler would first wait for the line."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # On standard error: what is written to standard output may go to a program.
        print(question, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)


def _said(screen: Screen, verb: str, session: "Session") -> str:
    return f"{verb} {screen.paint(session.id, 'cyan')}  {one_line(session.title)}"


def _model(text: str) -> "SessionModel":
    from turnkeeper.model.session import SessionModel

    provider, _, name = text.partition("/")
    if not provider or not name:
        raise UsageError(f"{text!r} names no model; write PROVIDER/MODEL, as in anthropic/claude-sonnet-4")
    return SessionModel(id=name, provider_id=provider)


def _metadata(text: str) -> "JsonObject":
    import msgspec  # Unlike the standard library's reader it refuses NaN, and survives any depth.

    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise UsageError(f"--metadata is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("--metadata must be a JSON object, as in '{\"ticket\": 7}'")
    return value
