"""The slash commands: one table, and the lookup that joins the commands of the directory to it."""

import sys
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from turnkeeper.cli import names, undoing
from turnkeeper.cli.chat.chat import Chat, SlashCommand, said_text
from turnkeeper.cli.chat.lines import nearest
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.live import spent_words
from turnkeeper.cli.screen import Column, Screen, cells, fields, harmless, one_line, table, token_kinds
from turnkeeper.cli.sending import compact
from turnkeeper.cli.slash import CalledCommand
from turnkeeper.model.command import Command
from turnkeeper.model.message import UserMessage
from turnkeeper.model.refusal import Invalid, NotFound

ABOUT_LEAST: Final = 24
KEYS: Final = (
    ("Enter", "sends; while an answer comes, steers it"),
    ("Ctrl-O", "queues the prompt until the answer is complete"),
    ("Alt-Enter", "begins a new line; pasted lines stay lines"),
    ("Tab", "completes /commands, @files, @file#symbols, @agents, models"),
    ("Up, Ctrl-R", "what was typed before"),
    ("Ctrl-C", "stops the turn; clears what is typed"),
    ("Ctrl-D", "leaves"),
    ("!command", "runs a command; the model reads its output"),
)


async def slash_commands(chat: Chat) -> Mapping[str, SlashCommand]:
    """Every slash command, by name: the built-in ones, and those of the directory that have other names."""
    return {**{one.name: one for one in await directory_commands(chat)}, **BUILT_IN}


async def directory_commands(chat: Chat) -> list[SlashCommand]:
    """The commands of the directory that send a prompt: built-in ones, those of settings and files, and skills."""
    known = await chat.tk.commands(Path(chat.session.directory) if chat.session is not None else chat.directory)
    return [
        SlashCommand(one.name, one_line(one.description or ""), partial(send_command, one), " ".join(one.hints))
        for one in known
        if one.kind == "prompt"
    ]


async def send_command(command: Command, chat: Chat, argument: str) -> None:
    """Send a command of the directory."""
    await chat.command(CalledCommand(command, argument, ""))


async def show_help(chat: Chat, argument: str) -> None:
    """List the slash commands and the keys."""
    screen = Screen.of(sys.stdout)
    listed = [(f"/{one.name} {one.argument}".rstrip(), one.about) for one in sorted(chat.commands.values())]
    chat.note("\n".join([*explained(screen, listed), "", *explained(screen, KEYS)]))


def explained(screen: Screen, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines with names and their descriptions: beside the name, or below it on a narrow screen."""
    width = max(cells(name) for name, _ in rows)
    room = screen.width - width - 3 if screen.width is not None else None
    if room is not None and room < ABOUT_LEAST:
        return [line for name, about in rows for line in (screen.paint(name, "cyan"), f"  {about}")]
    lines: list[str] = []
    for name, about in rows:
        first, *more = textwrap.wrap(about, room) if room is not None and about else [about]
        lines.append(f"{screen.paint(name.ljust(width), 'cyan')}  {first}".rstrip())
        lines += [f"{' ' * width}  {line}" for line in more]
    return lines


async def choose_model(chat: Chat, argument: str) -> None:
    """Show the models, or choose the one that answers from the next prompt on."""
    if not argument:
        chat.note(_listed(chat.choices.models, chat.model_name))
        return
    chosen = names.model(argument)
    if argument not in chat.choices.models:
        near = nearest(argument, chat.choices.models)
        meant = f"did you mean {' or '.join(near)}?" if near else "/model lists those that can be used"
        raise Invalid(f"no model {argument!r} can be used here; {meant}")
    chat.model = chosen
    chat.note(f"{argument} answers from the next prompt on.")


async def choose_agent(chat: Chat, argument: str) -> None:
    """Show the agents, or choose the one that answers from the next prompt on."""
    if not argument:
        used = chat.agent or (chat.session.agent if chat.session is not None else None) or ""
        chat.note(_listed(chat.choices.agents, used))
        return
    if argument not in chat.choices.agents:
        known = ", ".join(chat.choices.agents)
        raise Invalid(f"no agent {argument!r} can answer here; there are: {known}")
    chat.agent = argument
    chat.note(f"The agent {argument} answers from the next prompt on.")


async def list_or_switch(chat: Chat, argument: str) -> None:
    """List the sessions of the directory, or go to one of them."""
    if argument:
        if chat.state != "idle":
            raise UsageError("another session can be shown when the answer is complete; Ctrl-C stops it")
        chat.session = await chat.tk.get(await names.session(chat.tk, argument))
        chat.agent = chat.model = None
        await chat.refresh()
        await chat.recap()
        return
    screen = Screen.of(sys.stdout)
    here = chat.session.id if chat.session is not None else None
    shown = chat.sessions
    if not shown:
        chat.note("No session works in this directory yet.")
        return
    rows = table(
        screen,
        Column("", ["*" if one.id == here else " " for one in shown], ("green",)),
        Column("SESSION", [one.slug for one in shown], ("cyan",)),
        Column("UPDATED", [screen.ago(one.time.updated) for one in shown], ("dim",)),
        Column("TITLE", [one_line(one.title) for one in shown], least=12),
    )
    chat.note(f"{rows}\n/sessions NAME goes to one of them.")


async def begin_new(chat: Chat, argument: str) -> None:
    """Begin a new session with the next prompt, or with this one."""
    chat.session = None
    await chat.refresh()
    if argument:
        await chat.say(argument)
    else:
        chat.note("The next prompt begins a new session.")


async def fork(chat: Chat, argument: str) -> None:
    """Go on in a copy of the session, whole or up to a message. A prompt that is left out is put into the box."""
    session = _session(chat, "/fork")
    message_id = await names.message(chat.tk, session, argument) if argument else None
    left_out = await chat.tk.message(session, message_id) if message_id is not None else None
    chat.session = await chat.tk.fork(session, message_id=message_id)
    await chat.refresh()
    chat.note(f"This is {chat.session.slug} now, a copy. `/sessions` leads back.")
    if left_out is not None and isinstance(left_out.info, UserMessage):
        chat.place.put_back(said_text(left_out))  # To be sent again, or otherwise.


async def undo(chat: Chat, argument: str, *, is_redo: bool) -> None:
    """Undo the last prompt, or bring back what was undone."""
    word = "/redo" if is_redo else "/undo"
    if argument:
        raise UsageError(f"{word} takes no words; it goes prompt by prompt")
    session = _session(chat, word)
    async with chat.place.alone():
        done = await undoing.move(chat.tk, session, is_redo, yes=False, confirms=chat.place.confirms)
    await chat.refresh()
    chat.note(undoing.outcome(done))


async def compact_now(chat: Chat, argument: str) -> None:
    """Replace older history by a Summary."""
    if argument:
        raise UsageError("/compact takes no words")
    session = _session(chat, "/compact")
    chat.start(partial(compact, chat.tk, chat.live, session, chat.model), shows_summary=True)


async def show_cost(chat: Chat, argument: str) -> None:
    """Show what the session has cost."""
    await chat.refresh()
    _session(chat, "/cost")
    assert chat.session is not None
    session, screen = chat.session, Screen.of(sys.stdout)
    rows = [
        ("Cost", spent_words(chat.cost, session.cost)),
        *((kind.capitalize(), f"{count:,} tokens") for kind, count in token_kinds(session.tokens).items() if count),
        ("Session", f"{screen.paint(session.id, 'cyan')}  {session.slug}"),
    ]
    chat.note(fields(screen, rows))


async def steer(chat: Chat, argument: str) -> None:
    """Give the running turn a prompt at its next step."""
    await chat.say(_words("steer", argument))


async def queue(chat: Chat, argument: str) -> None:
    """Send a prompt when the running turn is complete."""
    await chat.say(_words("queue", argument), "queue")


async def share(chat: Chat, argument: str) -> None:
    """Publish the session under a link."""
    from turnkeeper.cli import sharing

    session_id = _session(chat, "/share")
    if argument not in ("", "--yes"):
        raise UsageError("/share goes alone, or as `/share --yes` to be asked nothing")
    async with chat.place.alone():
        link = await sharing.share_one(chat.tk, session_id, yes=argument == "--yes", confirms=chat.place.confirms)
    chat.note(f"{link.url}\n{await sharing.hint(chat.tk, link)}")


async def unshare(chat: Chat, argument: str) -> None:
    """Withdraw the link to the session."""
    from turnkeeper.cli import sharing

    await sharing.unshare_one(chat.tk, _session(chat, "/unshare"))
    chat.note("The link is withdrawn.")


async def export(chat: Chat, argument: str) -> None:
    """Write the session to a file."""
    from turnkeeper.cli import interop
    from turnkeeper.cli.options import Options, local_store

    session = _session(chat, "/export")
    if argument in ("", "-"):
        raise UsageError("give the file: /export session.json")
    if (store := local_store(chat.tk)) is None:
        raise UsageError("/export needs a store, and this session is on a server; export it on the server's machine")
    async with chat.place.alone():
        await interop.export_one(store, Options(), session, argument)


async def leave(chat: Chat, argument: str) -> None:
    """Leave the chat."""
    chat.leave()


def _session(chat: Chat, word: str) -> str:
    if chat.session is None:
        raise NotFound(f"{word} needs a session, and the next prompt begins one; /sessions lists others")
    return chat.session.id


def _words(name: str, argument: str) -> str:
    if not argument:
        raise UsageError(f"give the prompt: /{name} now in French")
    return argument


def _listed(values: Mapping[str, str], used: str) -> str:
    screen = Screen.of(sys.stdout)
    return table(
        screen,
        Column("", ["*" if name == used else " " for name in values], ("green",)),
        Column("NAME", [harmless(name) for name in values], ("cyan",)),
        Column("", [one_line(about) for about in values.values()], ("dim",), least=12, is_optional=True),
    )


BUILT_IN: Final[Mapping[str, SlashCommand]] = {
    one.name: one
    for one in (
        SlashCommand("help", "this list", show_help, while_running=True),
        SlashCommand("model", "show or choose the model", choose_model, "[PROVIDER/MODEL]", "models", True),
        SlashCommand("agent", "show or choose the agent", choose_agent, "[NAME]", "agents", True),
        SlashCommand("sessions", "list sessions, or go to one", list_or_switch, "[NAME]", "sessions", True),
        SlashCommand("new", "begin a new session", begin_new, "[PROMPT]"),
        SlashCommand("fork", "go on in a copy of the session", fork, "[MESSAGE]"),
        SlashCommand("undo", "undo the last prompt and its files", partial(undo, is_redo=False)),
        SlashCommand("redo", "bring back what was undone", partial(undo, is_redo=True)),
        SlashCommand("compact", "replace older history by a summary", compact_now),
        SlashCommand("cost", "what the session has cost", show_cost, while_running=True),
        SlashCommand("steer", "send at the next step of the answer", steer, "PROMPT", while_running=True),
        SlashCommand("queue", "send when the answer is complete", queue, "PROMPT", while_running=True),
        SlashCommand("share", "publish the session under a link", share),
        SlashCommand("unshare", "withdraw the link to the session", unshare),
        SlashCommand("export", "write the session to a file", export, "FILE"),
        SlashCommand("quit", "leave", leave, while_running=True),
    )
}
