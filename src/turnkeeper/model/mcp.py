"""MCP: what a server offers, and how the connection to it is. The states have the names that clients know."""

from typing import TypeAlias

from turnkeeper.model.value import JsonObject, Value


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
    """Files of a server whose addresses have places to fill in."""

    name: str
    uri_template: str
    description: str | None = None
    mime_type: str | None = None


class McpOffers(Value):
    """What a server offers."""

    tools: tuple[McpTool, ...] = ()
    """In the order of their names."""
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpTemplate, ...] = ()
    instructions: str | None = None
    """What a model should know of it."""


class McpInstructions(Value):
    """What a server says that a model should know."""

    server: str
    text: str


class McpConnected(Value, tag_field="status", tag="connected"):
    """Calls can be made."""


class McpDisabled(Value, tag_field="status", tag="disabled"):
    """The settings or the user say that it is not used."""


class McpFailed(Value, tag_field="status", tag="failed"):
    """It could not be started or reached, or the connection broke."""

    error: str


class McpNeedsAuth(Value, tag_field="status", tag="needs_auth"):
    """It wants to know who calls."""


class McpNeedsRegistration(Value, tag_field="status", tag="needs_client_registration"):
    """A login needs a client that is registered by hand."""

    error: str


McpStatus: TypeAlias = McpConnected | McpDisabled | McpFailed | McpNeedsAuth | McpNeedsRegistration
