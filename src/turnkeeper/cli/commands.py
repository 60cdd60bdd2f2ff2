"""Every command by the import path of its function. Only the module of the command that runs is imported."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from cyclopts import App, Group, Parameter

from turnkeeper.cli.failures import OK, UsageError
from turnkeeper.cli.local_help import LOCAL_HELP
from turnkeeper.cli.options import Options

HELP: Final = """\
Run AI agents in sessions that survive a crash or a kill at any moment.

Where a command takes an ID, the first characters of the id or the session's
slug are enough. `tk` is short for `turnkeeper`.

Without arguments, on a terminal, it begins a chat.

For example:
  turnkeeper demo
  turnkeeper
  turnkeeper run "list the files, then read README.md"
  turnkeeper session list --all
  turnkeeper import opencode
"""


SHARED: Final = Group("Options of every command", sort_key=3)
DEFAULTS: Final = Options()


def _default(value: object) -> object:
    """The default that a help page shows: none for a flag or a list."""
    return None if value in (False, ()) else value


app = App(
    name="turnkeeper",
    help=HELP,
    help_format="plaintext",
    version_flags=(),
    default_parameter=Parameter(negative=(), show_default=_default),
    group_commands=Group("Commands", sort_key=0),
    group_arguments=Group("Arguments", sort_key=1),
    group_parameters=Group("Options", sort_key=2),
)
app["--help"].group = (SHARED,)


@app.meta.default
def start(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    version: Annotated[bool, Parameter(name=("--version", "-V"), group=SHARED, help="Print the version.")] = False,
    options: Annotated[Options, Parameter(name="*", parse=True, group=SHARED)] = DEFAULTS,
) -> object:
    """Read the shared options, which may stand before or after the command, and call the command with them."""
    if not version:
        return call(app, _with_command(words, options), options)
    from turnkeeper import __version__

    print(json.dumps({"version": __version__}) if options.json else f"turnkeeper {__version__}")
    return OK


def _with_command(words: tuple[str, ...], options: Options) -> tuple[str, ...]:
    """The words with their command. Without one it is a chat: with its options, or on a terminal; otherwise help.

    Raises UsageError for a command of sessions without `session`.
    """
    if words:
        if words[0] in SESSION and words[0] not in app:
            raise UsageError(f"there is no command {words[0]!r}; write `turnkeeper session {words[0]}`")
        is_option = words[0].startswith("-") and words[0] not in ("--", *app.help_flags)
        return ("chat", *words) if is_option else words
    return ("chat",) if sys.stdin.isatty() and sys.stdout.isatty() and not options.json else ()


def call(level: App, words: Sequence[str], options: Options = DEFAULTS) -> object:
    """Parse words and call their command. A command that takes shared options gets these."""
    command, bound, unparsed = level.parse_args(words, print_error=False, exit_on_error=False)
    if command.__name__ == "help_print":
        if options.json and not any(word in app.help_flags for word in words):
            raise UsageError(f"name a command; `{' '.join(('turnkeeper', *words))} --help` lists them")
        # The page of a group shows the first line of each command's docstring, so the commands are imported.
        group = app.parse_commands([word for word in words if word not in app.help_flags])[1][-1]
        for name in group:
            group[name]
    elif options.server and _place(command) not in SERVED:
        options.require_store(" ".join(level.parse_commands(words)[0]))
    return command(*bound.args, **bound.kwargs, **dict.fromkeys(unparsed, options))


SERVED: Final = frozenset(
    {
        "chat.command:chat",
        "run:run",
        *(f"asks:{name}" for name in ("list_permissions", "allow", "deny", "saved", "revoke")),
        *(f"asks:{name}" for name in ("list_questions", "answer", "reject")),
        *(f"listing:{name}" for name in ("list_sessions", "children")),
        *(f"reading:{name}" for name in ("show", "messages", "todo")),
        *(f"editing:{name}" for name in ("create", "fork", "archive", "restore", "rename")),
        *(f"steering:{name}" for name in ("status", "abort")),
        *(f"sharing:{name}" for name in ("redactions", "share", "unshare")),
        *(f"undoing:{name}" for name in ("undo", "redo")),
        "compact:compact",
        "deleting:delete",
        "diff:diff",
        "plugins:list_plugins",
        "tree:tree",
        "watching:watch",
    }
)
"""The commands that can use the sessions of a server."""


def _place(command: Callable[..., object]) -> str:
    """The import path of a command's function, as in the table."""
    return f"{command.__module__.removeprefix('turnkeeper.cli.')}:{command.__name__}"


def _register(group: App, commands: Mapping[str, str | App]) -> App:
    """Add commands, and groups of commands, in the order in which help lists them."""
    for place, (name, command) in enumerate(commands.items()):
        if isinstance(command, App):
            command.sort_key = place
            group.command(command)
        else:
            # An App that is imported has its own settings; that of a function is made here.
            shown: dict[str, Any] = (
                {} if command in SERVED or command.endswith("_app") else {"help_formatter": LOCAL_HELP}
            )
            group.command(f"turnkeeper.cli.{command}", name=name, sort_key=place, **shown)
    return group


def _group(name: str, help: str, commands: Mapping[str, str]) -> App:
    return _register(App(name=name, help=help, version_flags=()), commands)


SESSION: Final = {
    "list": "listing:list_sessions",
    "show": "reading:show",
    "create": "editing:create",
    "fork": "editing:fork",
    "archive": "editing:archive",
    "restore": "editing:restore",
    "rename": "editing:rename",
    "move": "editing:move",
    "delete": "deleting:delete",
    "children": "listing:children",
    "tree": "tree:tree",
    "messages": "reading:messages",
    "log": "log:log",
    "watch": "watching:watch",
    "diff": "diff:diff",
    "blame": "blame:blame",
    "todo": "reading:todo",
    "context": "context:context",
    "status": "steering:status",
    "resume": "steering:resume",
    "recover": "steering:recover",
    "abort": "steering:abort",
    "undo": "undoing:undo",
    "redo": "undoing:redo",
    "compact": "compact:compact",
    "search": "search:search",
    "recall": "recall:recall",
    "export": "interop:export",
    "import": "interop:import_files",
    "share": "sharing:share",
    "unshare": "sharing:unshare",
    "redactions": "sharing:redactions",
}

_register(
    app,
    {
        "chat": "chat.command:chat",
        "demo": "demo:demo",
        "run": "run:run",
        "serve": "serve:serve",
        "worker": "worker:worker",
        "cluster": _group("cluster", "Show the processes that share a store.", {"status": "cluster:status"}),
        "session": _group("session", "Create, list, read, change and delete sessions.", SESSION),
        "permission": _group(
            "permission",
            "List and answer the calls that wait for permission, and what was allowed for good.",
            {
                "list": "asks:list_permissions",
                "allow": "asks:allow",
                "deny": "asks:deny",
                "saved": "asks:saved",
                "revoke": "asks:revoke",
            },
        ),
        "question": _group(
            "question",
            "List and answer the questions of models.",
            {"list": "asks:list_questions", "answer": "asks:answer", "reject": "asks:reject"},
        ),
        "agent": _group(
            "agent",
            "List, show and create agents.",
            {"list": "agents:list_agents", "show": "agents:show", "create": "agents:create"},
        ),
        "command": _group(
            "command",
            "List and show the commands that `run` sends as /NAME.",
            {"list": "slash_commands:list_commands", "show": "slash_commands:show"},
        ),
        "skill": _group("skill", "List and show skills.", {"list": "skills:list_skills", "show": "skills:show"}),
        "mcp": _group(
            "mcp",
            "List, add and remove MCP servers, log in to one, find out what is wrong with one, and be one.",
            {
                "list": "mcp:list_servers",
                "add": "mcp_settings:add",
                "remove": "mcp_settings:remove",
                "auth": "mcp_login:auth",
                "logout": "mcp_login:logout",
                "debug": "mcp:debug",
                "serve": "mcp_serve:serve",
            },
        ),
        "plugin": _group(
            "plugin", "List plugins, and begin a new one.", {"list": "plugins:list_plugins", "new": "plugins:new"}
        ),
        "models": "models:models_app",
        "auth": _group(
            "auth",
            "Store, list and delete the API keys of providers.",
            {"login": "auth:login", "list": "auth:list_keys", "logout": "auth:logout"},
        ),
        "config": _group(
            "config",
            "Show, explain, check and edit settings.",
            {
                "show": "config:show",
                "explain": "config:explain",
                "check": "config:check",
                "edit": "config_edit:edit",
                "schema": "config:schema",
                "fetch": "config:fetch",
            },
        ),
        "trust": "trust:trust",
        "snapshot": _group(
            "snapshot",
            "Show what the snapshots of files take, and remove old ones.",
            {"du": "snapshot:du", "gc": "snapshot:gc"},
        ),
        "stats": "stats:stats",
        "completion": "completion:completion",
        "export": "interop:export",
        "import": "interop:import_app",
        "doctor": "doctor:doctor",
        "db": _group("db", "Find the store.", {"path": "doctor:path"}),
        "store": _group("store", "Copy a store to another one.", {"copy": "store_copy:copy"}),
    },
)
