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


class McpConnected(Value, tag_field="status", tag="connected"):
    """Calls can be made."""


class McpDisabled(Value, tag_field="status", tag="disabled"):
    """The settings or the user say that it is not used."""


class McpFailed(Value, tag_field="status", tag="failed"):
    """It could not be started or reached, or the connection broke."""

    error: str


class McpNeedsAuth(Value, tag_field="status", tag="needs_auth"):
    """It wants to know who calls."""


McpStatus: TypeAlias = McpConnected | McpDisabled | McpFailed | McpNeedsAuth
