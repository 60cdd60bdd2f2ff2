"""The command that begins a chat on a terminal, on a store or on a server."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import OK, UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import agrees, note
from turnkeeper.cli.run_options import NEW_SESSION, AgentName, Auto, Model, SessionOptions, Thinking
from turnkeeper.cli.screen import Screen, show, wrapped
from turnkeeper.cli.trust import ask_trust

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.chat.beginning import Work
    from turnkeeper.cli.chat.conversation import Conversation
    from turnkeeper.cli.chat.modes import Mode
    from turnkeeper.cli.chat.typing_place import TypingPlace
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.session import Session


async def chat(
    *,
    choice: SessionOptions = NEW_SESSION,
    new: Annotated[bool, Parameter(name=("--new", "-n"), help="Begin a new session, without a question.")] = False,
    model: Model = None,
    agent: AgentName = None,
    auto: Auto = False,
    thinking: Thinking = False,
    plain: Annotated[bool, Parameter(help="Print lines that stay, instead of using the full screen.")] = False,
    native_mouse: Annotated[bool, Parameter(help="Leave the mouse to the terminal on the full screen.")] = False,
    options: Options,
) -> int:
    """Talk to a session, prompt by prompt. `turnkeeper` alone does the same.

    With `turnkeeper[tui]` installed it takes the full screen; F1 shows the keys.
    Without it, with --plain, with ACCESSIBLE or TURNKEEPER_PLAIN set, and on a
    small terminal it prints lines that stay.

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
    how = _Manner(auto=auto, thinking=thinking, plain=plain, mouse=not native_mouse)
    begin = _Beginning(choice, new=new, model=model, agent=agent)
    if options.address is not None:
        async with options.client(directory) as client:
            await client.health()  # A wrong address is told before anything is typed.
            return await _talk(client, _tools(directory, options, how), directory, options, begin)
    assert directory is not None
    environ = options.trusting(choice.trust)
    await ask_trust(directory, environ)
    tools = _tools(directory, options, how)
    async with options.run(directory, tools.live.settings(environ)) as tk:
        return await _talk(tk, tools, directory, options, begin)


@dataclass(frozen=True, kw_only=True)
class _Manner:
    """Display options of a chat."""

    auto: bool
    thinking: bool
    plain: bool
    mouse: bool


@dataclass(frozen=True)
class _Beginning:
    """Options for the first session of a chat, with its model and agent."""

    choice: SessionOptions
    new: bool
    model: str | None
    agent: str | None


def _check(choice: SessionOptions, *, new: bool, options: Options) -> None:
    if options.json:
        raise UsageError("a chat prints no JSON; `turnkeeper run --format json MESSAGE` does")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("a chat needs a terminal; `turnkeeper run MESSAGE` sends one prompt without")
    if new and (choice.session is not None or choice.continue_):
        raise UsageError("give --new, or --session, or --continue")


class _Tools(NamedTuple):
    """The typing place, the display of answers, and the terminal mode of both."""

    place: "TypingPlace"
    live: "Live"
    mode: "Mode"


def _tools(directory: Path | None, options: Options, how: _Manner) -> _Tools:
    """Choose the terminal mode, and make the typing place and the display for it."""
    from turnkeeper.cli.chat.history import TypedLines
    from turnkeeper.cli.chat.modes import mode
    from turnkeeper.cli.live import Live
    from turnkeeper.workspace import files, git

    here = files.real(directory or Path.cwd())
    environ = options.environ if options.address is None else os.environ
    history = TypedLines.of(environ, git.top(here) or here)
    size = shutil.get_terminal_size()
    has_textual = find_spec("textual") is not None
    chosen = mode(os.environ, size.columns, size.lines, is_plain=how.plain, has_textual=has_textual)
    if chosen == "screen":
        from turnkeeper.cli.chat.tui.app import FullScreen

        screen = FullScreen(history, environ, mouse=how.mouse)
        shown = screen.display(thinking=how.thinking)
        live = Live(as_json=False, thinking=how.thinking, auto=how.auto, display=shown, questioner=screen.asks)
        return _Tools(screen, live, chosen)
    place: TypingPlace
    if chosen == "lines":
        from turnkeeper.cli.chat.plain_lines import PlainLines

        place = PlainLines(history)
    else:
        from turnkeeper.cli.chat.line_editor import LineEditor

        place = LineEditor(history)
    display = place.display(thinking=how.thinking)
    live = Live(as_json=False, thinking=how.thinking, auto=how.auto, display=display, alone=place.asking)
    return _Tools(place, live, chosen)


async def _talk(
    tk: "Turnkeeper | Client", tools: _Tools, directory: Path | None, options: Options, begin: _Beginning
) -> int:
    from turnkeeper.cli.live import works_here

    choice, screen = begin.choice, Screen.of(sys.stderr)
    session = await choice.find(tk, directory if choice.dir is not None or choice.session is None else None)
    talk, work = await _conversation(tk, tools, directory, session, is_new=begin.new)
    talk.agent, talk.model = begin.agent, names.model(begin.model)
    await talk.prepare()
    with _signals(talk):
        await talk.run(work)
    if talk.session is not None:
        which = "" if works_here(talk.session) else f" chat -s {talk.session.id}"
        hint = screen.paint(f"go on with: {options.program}{which}", "dim")
        show(f"{screen.paint(talk.session.id, 'cyan')}  {hint}", to=sys.stderr)
    return OK


async def _conversation(
    tk: "Turnkeeper | Client", tools: _Tools, directory: Path | None, session: "Session | None", *, is_new: bool
) -> "tuple[Conversation, Work | None]":
    """The conversation, and unfinished work to continue. Except on the full screen, the user is asked here."""
    from turnkeeper.cli.chat import beginning
    from turnkeeper.cli.chat.conversation import Conversation

    if tools.mode == "screen":
        from turnkeeper.cli.chat.tui.app import FullScreen
        from turnkeeper.cli.chat.tui.conversation import ScreenConversation

        assert isinstance(tools.place, FullScreen)
        whole = ScreenConversation(tk, tools.place, tools.live, directory, tools.place.transcript)
        whole.session = session
        whole.offers = session is None and not is_new and bool((await tk.list(directory=directory, limit=1)).items)
        return whole, None
    if session is None and not is_new:
        session = await beginning.offered(tk, directory, Screen.of(sys.stderr))
    work = await _left(tk, session) if session is not None else None
    talk = Conversation(tk, tools.place, tools.live, directory)
    talk.session = session
    return talk, work


async def _left(tk: "Turnkeeper | Client", session: "Session") -> "Work | None":
    """The unfinished work of a session, if it continues at once or the user agrees; else None."""
    from turnkeeper.cli.chat import beginning

    found = await beginning.unfinished(tk, session)
    if found is None:
        return None
    note(wrapped(found.said))
    if found.how == "ask" and not agrees("Go on with it now?"):
        note("It stays as it is until your next prompt.")
        return None
    return await beginning.going_on(tk, session)


@contextmanager
def _signals(talk: "Conversation") -> Iterator[None]:
    """Signal handlers: SIGINT stops the turn, SIGTERM and SIGHUP leave the chat."""
    import asyncio  # Imported here: the help page of all commands imports this module.

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, talk.interrupted)
    for one in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(one, talk.end)
    try:
        yield
    finally:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(one)
