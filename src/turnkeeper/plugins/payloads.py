"""Payloads of hooks: a frozen input for each hook, and an output that the hook changes in place."""

from typing import Literal

import msgspec

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.message import ModelChoice, UserMessage
from turnkeeper.model.parts import AgentPart, CompactionPart, FilePart, SubtaskPart, TextPart
from turnkeeper.model.permission import PermissionRequest
from turnkeeper.model.prompt import PartInput
from turnkeeper.model.request import ModelMessage
from turnkeeper.model.value import JsonObject, Value

UserPart = TextPart | FilePart | AgentPart | SubtaskPart | CompactionPart
"""The parts of a message of the user."""


class Nothing(Value):
    """The input of a hook that is told nothing."""


class Output(msgspec.Struct, kw_only=True):
    """Base class of outputs."""


class EventInput(Value):
    """Something happened to a session: ``type`` and ``properties`` are those of the API event."""

    id: str
    type: str
    session_id: str
    properties: JsonObject


class ChatMessageInput(Value):
    """A prompt that is about to be recorded."""

    session_id: str
    message_id: str
    agent: str
    model: ModelChoice


class ChatMessageOutput(Output):
    """The message and its parts as they will be recorded."""

    message: UserMessage
    parts: list[UserPart]


class RequestInput(Value):
    """A request that is about to be sent. ``purpose`` is what it is for."""

    session_id: str
    model: ModelInfo
    agent: str
    purpose: Literal["turn", "compaction", "title"] = "turn"
    message: UserMessage | None = None
    """The prompt that is answered; None for a request that answers none."""


class ParamsOutput(Output):
    """The parameters of a request. ``options`` are those of the wire protocol."""

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    options: dict[str, object] = msgspec.field(default_factory=dict)


class HeadersOutput(Output):
    """HTTP headers that are sent with a request."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)


class SystemOutput(Output):
    """The system texts of a request, one for each block."""

    system: list[str]


class MessagesOutput(Output):
    """The messages of a request as the model is sent them. The recorded history stays as it is."""

    messages: list[ModelMessage]


class CompactingInput(Value):
    """A Summary is about to be written."""

    session_id: str


class CompactingOutput(Output):
    """Further ``context`` for the writer, or a ``prompt`` in the place of ours."""

    context: list[str] = msgspec.field(default_factory=list)
    prompt: str | None = None


class AutocontinueInput(Value):
    """An automatic compaction is done. ``overflow``: a request was too large for the model."""

    session_id: str
    agent: str
    model: ModelChoice
    overflow: bool = False


class AutocontinueOutput(Output):
    """Whether the model goes on by itself."""

    enabled: bool = True


class TextCompleteInput(Value):
    """The model has ended a text."""

    session_id: str
    message_id: str
    part_id: str


class TextCompleteOutput(Output):
    """The text as it is recorded."""

    text: str


class SmallModelInput(Value):
    """A small model is chosen, for titles."""

    provider_id: str


class SmallModelOutput(Output):
    """``provider/model``; None leaves the choice as it is."""

    model: str | None = None


class ToolDefinitionInput(Value):
    """The name of a tool that a model is told of."""

    tool_id: str


class ToolDefinitionOutput(Output):
    """How the tool is described, and the JSON Schema of its arguments."""

    description: str
    parameters: dict[str, object]


class ToolBeforeInput(Value):
    """A call of a tool that is about to run."""

    tool: str
    session_id: str
    call_id: str


class ToolBeforeOutput(Output):
    """The arguments that the tool is run with."""

    args: dict[str, object]


class ToolAfterInput(Value):
    """A call of a tool that has succeeded."""

    tool: str
    session_id: str
    call_id: str
    args: JsonObject


class AttachedFile(Output):
    """A file that goes with the output of a tool. ``url`` is a ``data:`` address."""

    mime: str
    url: str
    filename: str | None = None


class ToolAfterOutput(Output):
    """What the tool gave: a line for people, the text for the model, and what clients show."""

    title: str
    output: str
    metadata: dict[str, object] = msgspec.field(default_factory=dict)
    attachments: list[AttachedFile] = msgspec.field(default_factory=list)


class ShellEnvInput(Value):
    """A shell command is about to be run; ``call_id`` is None for a command of the user."""

    cwd: str
    session_id: str | None = None
    call_id: str | None = None


class ShellEnvOutput(Output):
    """Variables that are added to the environment of the command."""

    env: dict[str, str] = msgspec.field(default_factory=dict)


class CommandBeforeInput(Value):
    """A command (``/name``) that is about to become a prompt."""

    command: str
    session_id: str
    arguments: str


class CommandBeforeOutput(Output):
    """The parts of the prompt."""

    parts: list[PartInput]


class PermissionAskInput(Value):
    """A request that the rules neither allow nor deny, so that the user would be asked."""

    request: PermissionRequest


class PermissionAskOutput(Output):
    """``allow`` and ``deny`` answer in the place of the user."""

    status: Literal["ask", "allow", "deny"] = "ask"
