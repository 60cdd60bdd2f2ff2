"""The command that begins a chat on a terminal, on a store or on a server."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import OK, UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import agrees, note
from turnkeeper.cli.run_options import NEW_SESSION, Auto, SessionOptions
from turnkeeper.cli.screen import Screen, show, wrapped
from turnkeeper.cli.trust import ask_trust

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.chat.beginning import Work
    from turnkeeper.cli.chat.conversation import Conversation
    from turnkeeper.cli.chat.typing_place import TypingPlace
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.session import Session

SIMPLE: Final = ("", "dumb", "unknown")
"""What TERM says of a terminal that cannot move its cursor."""


async def chat(
    *,
    choice: SessionOptions = NEW_SESSION,
    new: Annotated[bool, Parameter(name=("--new", "-n"), help="Begin a new session, without a question.")] = False,
    model: Annotated[
        str | None, Parameter(name=("--model", "-m"), metavar="PROVIDER/MODEL", help="The model that answers.")
    ] = None,
    agent: Annotated[str | None, Parameter(metavar="NAME", help="The agent to use.")] = None,
    auto: Auto = False,
    thinking: Annotated[bool, Parameter(help="Show all reasoning of the model.")] = False,
    options: Options,
) -> int:
    """Talk to a session, prompt by prompt. `turnkeeper` alone does the same.

    It offers the newest session of the directory, and to go on with what a killed
    process left open. Answers are shown live, and calls that need permission are
    asked in place, as by `run`.

    Enter sends, and while an answer comes it steers it; Ctrl-O queues a prompt
    until the answer is complete. Alt-Enter begins a new line. Tab completes
    /commands, @files, @agents and models. Ctrl-C stops the turn, Ctrl-D or /quit
    leaves. !COMMAND runs a command. /help lists the rest.

    What was typed is kept for each project in the data directory, for the arrow
    keys; a line that begins with a space is not.

    For example:
      turnkeeper
      turnkeeper chat --continue
      turnkeeper chat --new -m anthropic/claude-sonnet-4-5
      turnkeeper chat --server http://127.0.0.1:4096
    """
    _check(choice, new=new, options=options)
    directory = choice.directory(is_near=options.is_near) if options.is_near else choice.dir
    if options.address is not None:
        async with options.client(directory) as client:
            await client.health()  # A wrong address is told before anything is typed.
            place, live = _tools(directory, options, auto=auto, thinking=thinking)
            return await _talk(client, place, live, choice, directory, options, new=new, model=model, agent=agent)
    assert directory is not None
    environ = options.trusting(choice.trust)
    await ask_trust(directory, environ)
    place, live = _tools(directory, options, auto=auto, thinking=thinking)
    async with options.run(directory, live.settings(environ)) as tk:
        return await _talk(tk, place, live, choice, directory, options, new=new, model=model, agent=agent)


def _check(choice: SessionOptions, *, new: bool, options: Options) -> None:
    if options.json:
        raise UsageError("a chat prints no JSON; `turnkeeper run --format json MESSAGE` does")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("a chat needs a terminal; `turnkeeper run MESSAGE` sends one prompt without")
    if new and (choice.session is not None or choice.continue_):
        raise UsageError("give --new, or --session, or --continue")


def _tools(directory: Path | None, options: Options, *, auto: bool, thinking: bool) -> "tuple[TypingPlace, Live]":
    """Where the user types, and what shows the answers."""
    from turnkeeper.cli.chat.history import TypedLines
    from turnkeeper.cli.live import Live
    from turnkeeper.workspace import git

    here = (directory or Path.cwd()).resolve()
    history = TypedLines.of(options.environ if options.address is None else os.environ, git.top(here) or here)
    place: TypingPlace
    if os.environ.get("TERM", "") in SIMPLE:
        from turnkeeper.cli.chat.plain_lines import PlainLines

        place = PlainLines(history)
    else:
        from turnkeeper.cli.chat.line_editor import LineEditor

        place = LineEditor(history)
    display = place.display(thinking=thinking)
    return place, Live(as_json=False, thinking=thinking, auto=auto, display=display, alone=place.asking)


async def _talk(
    tk: "Turnkeeper | Client",
    place: "TypingPlace",
    live: "Live",
    choice: SessionOptions,
    directory: Path | None,
    options: Options,
    *,
    new: bool,
    model: str | None,
    agent: str | None,
) -> int:
    from turnkeeper.cli.chat import beginning
    from turnkeeper.cli.chat.conversation import Conversation
    from turnkeeper.cli.live import works_here

    screen = Screen.of(sys.stderr)
    session = await choice.find(tk, directory if choice.dir is not None or choice.session is None else None)
    if session is None and not new:
        session = await beginning.offered(tk, directory, screen)
    work = await _left(tk, session) if session is not None else None
    talk = Conversation(tk, place, live, directory)
    talk.session, talk.agent, talk.model = session, agent, names.model(model)
    await talk.prepare()
    with _signals(talk):
        await talk.run(work)
    if talk.session is not None:
        which = "" if works_here(talk.session) else f" chat -s {talk.session.id}"
        hint = screen.paint(f"go on with: {options.program}{which}", "dim")
        show(f"{screen.paint(talk.session.id, 'cyan')}  {hint}", to=sys.stderr)
    return OK


async def _left(tk: "Turnkeeper | Client", session: "Session") -> "Work | None":
    """What goes on in a session at once, or because the user wants it to."""
    from turnkeeper.cli.chat import beginning

    found = await beginning.unfinished(tk, session)
    if found is None:
        return None
    note(wrapped(found.said))
    is_wanted = found.how == "at once" or (found.how == "ask" and agrees("Go on with it now?"))
    if found.how == "ask" and not is_wanted:
        note("It stays as it is until your next prompt.")
    return beginning.going_on(tk, session) if is_wanted else None


@contextmanager
def _signals(talk: "Conversation") -> Iterator[None]:
    """Ctrl-C where the line editor does not read it stops the turn; to be ended or hung up is to leave."""
    import asyncio  # Not above: the help page of all commands imports this module.

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, talk.interrupted)
    for one in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(one, talk.heard, "leave", "")
    try:
        yield
    finally:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(one)
