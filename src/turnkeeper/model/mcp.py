"""MCP: the tools, prompts and resources of a server, and the state of its connection, by the names of clients."""

from typing import Literal, TypeAlias

from turnkeeper.model.value import JsonObject, Value

McpKind: TypeAlias = Literal["tool", "prompt", "resource", "template"]


class McpTool(Value):
    """A tool of a server, as the server describes it."""

    name: str
    description: str = ""
    schema: JsonObject = {}
    read_only: bool = False
    """Whether the server says that the tool changes nothing."""


class McpPromptArgument(Value):
    """An argument of a prompt."""

    name: str
    required: bool = False


class McpPrompt(Value):
    """A prompt of a server: a text that it makes of arguments."""

    name: str
    description: str = ""
    arguments: tuple[McpPromptArgument, ...] = ()


class McpResource(Value):
    """A file of a server."""

    name: str
    uri: str
    description: str | None = None
    mime_type: str | None = None


class McpTemplate(Value):
    """A URI template for files of a server."""

    name: str
    uri_template: str
    description: str | None = None
    mime_type: str | None = None


class McpLeftOut(Value):
    """An item of a server's lists that is invalid, and so not offered."""

    kind: McpKind
    name: str
    reason: str


class McpOffers(Value):
    """The tools, prompts, resources and instructions that a server offers."""

    tools: tuple[McpTool, ...] = ()
    """In the order of their names."""
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpTemplate, ...] = ()
    instructions: str | None = None
    """A text of the server for models."""
    left_out: tuple[McpLeftOut, ...] = ()


class McpInstructions(Value):
    """The text of a server for models."""

    server: str
    text: str


class McpConnected(Value, tag_field="status", tag="connected"):
    """The server is connected and takes calls."""

    left_out: tuple[McpLeftOut, ...] = ()


class McpDisabled(Value, tag_field="status", tag="disabled"):
    """The server is switched off by the settings or the user."""


class McpFailed(Value, tag_field="status", tag="failed"):
    """The server could not be started or reached, or the connection broke."""

    error: str


class McpNeedsAuth(Value, tag_field="status", tag="needs_auth"):
    """The server requires a login."""


class McpNeedsRegistration(Value, tag_field="status", tag="needs_client_registration"):
    """The server requires a login by a client that is registered by hand."""

    error: str


McpStatus: TypeAlias = McpConnected | McpDisabled | McpFailed | McpNeedsAuth | McpNeedsRegistration
