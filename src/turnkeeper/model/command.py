"""Command: the definition behind ``/name``, and one use of it with arguments."""

from typing import Final, Literal, TypeAlias

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.prompt import FileInput
from turnkeeper.model.value import Value

BUILT_IN: Final = "built-in"
"""The source of a command that no file defines."""

CommandSource: TypeAlias = Literal["command", "mcp", "skill"]
CommandKind: TypeAlias = Literal["prompt", "action"]


class Command(Value):
    """A command of a directory: a template that becomes a prompt, or an action on the session."""

    name: str
    kind: CommandKind = "prompt"
    """An action, such as ``undo``, has no template: each face of the program carries it out by its own means."""
    description: str | None = None
    template: str = ""
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    subtask: bool | None = None
    """Whether a Child Session runs it. None: if its agent is a subagent."""
    source: CommandSource = "command"
    where: str = BUILT_IN
    """The file, variable or program that defines it."""
    is_own: bool = False
    """Whether it comes from the user's own configuration directory, or from the program."""
    hints: tuple[str, ...] = ()
    """The placeholders of its template."""


class CommandCall(Value):
    """One use of a command."""

    command: str
    arguments: str = ""
    input: str = ""
    """Further text, which stands at the end of the prompt as it is: nothing in it is replaced, run or attached."""
    message_id: str | None = None
    agent: str | None = None
    model: ModelChoice | None = None
    variant: str | None = None
    parts: tuple[FileInput, ...] = ()
