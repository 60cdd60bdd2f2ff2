"""Hooks: the table of all places where a plugin is called, each with the types of its input and output."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from turnkeeper.model.value import Value
from turnkeeper.plugins import output_checks as checks
from turnkeeper.plugins import payloads as p

I = TypeVar("I", bound=Value)  # noqa: E741 # The input; ``O`` is the output.
O = TypeVar("O", bound=p.Output)  # noqa: E741


class Hook(msgspec.Struct, Generic[I, O], frozen=True):
    """A place where plugins are called with an input and an output that they change."""

    name: str
    input: type[I]
    output: type[O]
    when: str
    """The time of the call, and the effect of a change."""
    check: Callable[[O], None] = checks.nothing
    """Check of an output whose types are right: raises Invalid if it cannot be used."""


class Registering(msgspec.Struct, frozen=True):
    """A hook that is no function of input and output: it is read or called when the plugin is loaded or leaves."""

    name: str
    takes: str
    when: str


CHAT_MESSAGE: Final = Hook(
    "chat.message",
    p.ChatMessageInput,
    p.ChatMessageOutput,
    "A prompt is resolved; recorded as changed.",
    checks.message,
)
CHAT_PARAMS: Final = Hook(
    "chat.params", p.RequestInput, p.ParamsOutput, "Before each request to a model.", checks.params
)
CHAT_HEADERS: Final = Hook(
    "chat.headers", p.RequestInput, p.HeadersOutput, "Before each request to a model.", checks.headers
)
SYSTEM: Final = Hook(
    "experimental.chat.system.transform", p.RequestInput, p.SystemOutput, "Before each request; changes only it."
)
MESSAGES: Final = Hook(
    "experimental.chat.messages.transform", p.RequestInput, p.MessagesOutput, "Before each request; changes only it."
)
COMPACTING: Final = Hook(
    "experimental.session.compacting", p.CompactingInput, p.CompactingOutput, "Before a Summary is written."
)
AUTOCONTINUE: Final = Hook(
    "experimental.compaction.autocontinue",
    p.AutocontinueInput,
    p.AutocontinueOutput,
    "After a compaction, before the model is told to go on.",
)
TEXT_COMPLETE: Final = Hook(
    "experimental.text.complete", p.TextCompleteInput, p.TextCompleteOutput, "A text ends; recorded as changed."
)
SMALL_MODEL: Final = Hook(
    "experimental.provider.small_model",
    p.SmallModelInput,
    p.SmallModelOutput,
    "A model for titles is chosen.",
    checks.small_model,
)
TOOL_DEFINITION: Final = Hook(
    "tool.definition", p.ToolDefinitionInput, p.ToolDefinitionOutput, "For each tool of each request of a turn."
)
TOOL_BEFORE: Final = Hook(
    "tool.execute.before",
    p.ToolBeforeInput,
    p.ToolBeforeOutput,
    "Before a call runs and asks; the result's metadata says what was changed.",
)
TOOL_AFTER: Final = Hook(
    "tool.execute.after", p.ToolAfterInput, p.ToolAfterOutput, "After a call succeeded; recorded as changed."
)
SHELL_ENV: Final = Hook(
    "shell.env", p.ShellEnvInput, p.ShellEnvOutput, "Before a command of the bash tool or of the user is run."
)
COMMAND_BEFORE: Final = Hook(
    "command.execute.before",
    p.CommandBeforeInput,
    p.CommandBeforeOutput,
    "Before a command becomes a prompt.",
    checks.command,
)
PERMISSION_ASK: Final = Hook(
    "permission.ask", p.PermissionAskInput, p.PermissionAskOutput, "The rules say that the user is asked."
)

HOOKS: Final[tuple[Hook[Value, p.Output], ...]] = (  # type: ignore[assignment] # Each has its own types.
    CHAT_MESSAGE,
    CHAT_PARAMS,
    CHAT_HEADERS,
    SYSTEM,
    MESSAGES,
    COMPACTING,
    AUTOCONTINUE,
    TEXT_COMPLETE,
    SMALL_MODEL,
    TOOL_DEFINITION,
    TOOL_BEFORE,
    TOOL_AFTER,
    SHELL_ENV,
    COMMAND_BEFORE,
    PERMISSION_ASK,
)
"""The hooks that change an output."""

EVENT: Final = "event"
CONFIG: Final = "config"
DISPOSE: Final = "dispose"
TOOL: Final = "tool"
PROVIDER: Final = "provider"
AUTH: Final = "auth"

REGISTERING: Final = (
    Registering(EVENT, "function(EventInput)", "After each event of a session of the directory, in the background."),
    Registering(
        CONFIG, "function(settings)", "After settings were read; changes the dict of merged settings in place."
    ),
    Registering(DISPOSE, "function()", "The plugin is removed or reloaded, or the program ends."),
    Registering(TOOL, "object: name -> function or Tool", "The plugin is loaded."),
    Registering(PROVIDER, "object: id -> settings as in `provider`", "The plugin is loaded."),
    Registering(AUTH, "object: provider id -> API key, or function() that gives it", "The plugin is loaded."),
)
"""The other hooks."""

NAMES: Final = frozenset([*(one.name for one in HOOKS), *(one.name for one in REGISTERING)])


def name_of(given: str) -> str | None:
    """The hook that a name means, also with underscores in the place of dots; None if there is none."""
    return _SPELLINGS.get(given)


_SPELLINGS: Final = {spelling: name for name in NAMES for spelling in (name, name.replace(".", "_"))}
