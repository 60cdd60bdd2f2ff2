"""Every command: its name, the function that does it, and one line about it. A new command is a line here.

Functions are named, not imported: starting costs the command that was asked for and no other.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from turnkeeper.cli.words import Simple, simple

if TYPE_CHECKING:
    from cyclopts import App

PROGRAM: Final = "turnkeeper"


class Command(NamedTuple):
    """One command. ``target`` is ``module:function`` below ``turnkeeper.cli``; a group has commands instead."""

    name: str
    summary: str
    target: str = ""
    commands: tuple["Command", ...] = ()
    simple: Simple = MappingProxyType({})
    """Options that are read without cyclopts where there are no others. What it would make of them is the same."""


SESSION: Final = (
    Command("list", "List sessions, newest activity first.", "listing:list_sessions"),
    Command("show", "Show what a session says of itself.", "reading:show"),
    Command("create", "Create a session.", "editing:create"),
    Command("fork", "Copy a session's history into a new session.", "editing:fork"),
    Command("archive", "Take a session off the list; it keeps everything.", "editing:archive"),
    Command("restore", "Put an archived session back on the list.", "editing:restore"),
    Command("rename", "Give a session a title.", "editing:rename"),
    Command("move", "Let a session work in another directory from now on.", "editing:move"),
    Command("delete", "Remove a session, its children and all that belongs to them.", "editing:delete"),
    Command("children", "List the Child Sessions of a session.", "listing:children"),
    Command("messages", "Show a session's history as a transcript.", "reading:messages"),
    Command("todo", "Show a session's task list.", "reading:todo"),
    Command("context", "Show what the model was told, and what its provider could reuse.", "context:context"),
    Command("status", "Show what sessions are doing.", "steering:status"),
    Command("resume", "Run a session on where it was stopped or left.", "steering:resume"),
    Command("recover", "Look after every session that a dead process left.", "steering:recover"),
    Command("abort", "Close what a process that died left open.", "steering:abort"),
    Command("compact", "Let a summary take the place of older history.", "compact:compact"),
    Command("search", "Find where words were said.", "listing:search"),
    Command("recall", "Give back what a model is no longer shown.", "recall:recall"),
    Command("export", "Write one session, or all, as JSON.", "interop:export"),
    Command("import", "Bring in sessions from exported files.", "interop:import_files"),
)

ROOT: Final = Command(
    PROGRAM,
    "Turnkeeper keeps the sessions of AI agents in a log that survives being killed at any moment.",
    commands=(
        Command("run", "Send a prompt and show what comes of it.", "run:run"),
        Command(
            "serve",
            "Serve sessions over HTTP, to opencode's own clients and others.",
            "serve:serve",
            simple={"--port": int, "--hostname": str},
        ),
        Command("session", "Create, list, read, change and remove sessions.", commands=SESSION),
        Command("models", "List the models that can be used, and where their keys come from.", "models:models"),
        Command(
            "auth",
            "Keep, list and forget the keys of providers.",
            commands=(
                Command("login", "Keep a provider's key.", "auth:login"),
                Command("list", "Show which providers have a key, and from where.", "auth:list_keys"),
                Command("logout", "Forget a provider's key.", "auth:logout"),
            ),
        ),
        Command("stats", "Show what was spent, by day, model and session.", "stats:stats"),
        Command("export", "The same as `session export`.", "interop:export"),
        Command(
            "import",
            "Bring in sessions from exported files or from opencode.",
            "interop:import_files",
            (Command("opencode", "Bring in the history that opencode has kept.", "interop:import_opencode"),),
        ),
        Command("doctor", "Check the store, and rebuild what can be derived.", "doctor:doctor"),
        Command(
            "db",
            "Find the store.",
            commands=(Command("path", "Print where the store is.", "place:path"),),
        ),
    ),
)


@cache
def build() -> "App":
    """The commands as a cyclopts application. Help and version are ours: its own would load rich to print them."""
    from cyclopts import Parameter

    from turnkeeper.cli.options import Options

    Parameter(name="*")(Options)  # Its fields are options of every command, under their own names.
    return _application(ROOT)


def quick(words: Sequence[str]) -> Callable[[], object] | None:
    """A command ready to be called, if its words are simple; else they are for ``build`` to read."""
    command = next((one for one in ROOT.commands if [one.name] == list(words[:1]) and one.simple), None)
    if command is None or (said := simple(words[1:], command.simple)) is None:
        return None
    return partial(_function(command), **said)


def _function(command: Command) -> Callable[..., object]:
    module, _, function = command.target.partition(":")
    found: Callable[..., object] = getattr(import_module(f"turnkeeper.cli.{module}"), function)
    return found


def _application(group: Command) -> "App":
    from cyclopts import App, Parameter

    plain = Parameter(negative=())  # No --no-json beside each --json.
    app = App(name=group.name, help_flags=(), version_flags=(), default_parameter=plain)
    if group.target:
        app.default(_function(group))
    for command in group.commands:
        if command.commands:
            app.command(_application(command))
        else:
            app.command(f"turnkeeper.cli.{command.target}", name=command.name, default_parameter=plain)
    return app
