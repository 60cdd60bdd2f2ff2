"""The settings of MCP servers. The texts below the fields are their documentation, as in Config."""

from typing import Annotated, Literal

import msgspec

from turnkeeper.model.provider_config import Setting


class McpOAuthConfig(Setting):
    """How to log in to a remote server by OAuth."""

    client_id: str | None = msgspec.field(default=None, name="clientId")
    """The id of a client that is registered there. Default: one is registered. Example: `"my-client"`"""
    client_secret: str | None = msgspec.field(default=None, name="clientSecret")
    """Its secret. Example: `"{env:CLIENT_SECRET}"`"""
    scope: str | None = None
    """What is asked for. Default: what the server proposes. Example: `"tools:read"`"""
    callback_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = msgspec.field(
        default=None, name="callbackPort"
    )
    """The port of this machine that the browser comes back to. Default: any that is free. Example: `19876`"""
    redirect_uri: str | None = msgspec.field(default=None, name="redirectUri")
    """The address that the browser comes back to, if it is not that port. Example:
    `"https://example.com/callback"`
    """


class McpConfig(Setting):
    """A server of tools: a program that is started (``command``), or an address (``url``)."""

    type: Literal["local", "remote"] | None = None
    """`local`: a program; `remote`: an address. Default: by whether `command` or `url` is set."""
    command: tuple[str, ...] | None = None
    """The program and its arguments; it speaks MCP over its input and output. Example: `["npx", "-y", "my-server"]`"""
    cwd: str | None = None
    """Where it is run, from the directory of the session. Default: there. Example: `"tools"`"""
    environment: dict[str, str] = {}
    """Variables it is run with, besides those that the model's commands see. Default: none. Example:
    `{"TOKEN": "{env:TOKEN}"}`
    """
    url: str | None = None
    """The address of a server that speaks streamable HTTP. Example: `"https://mcp.example.com/mcp"`"""
    headers: dict[str, str] = {}
    """Headers of each request to it. Default: none. Example: `{"Authorization": "Bearer {env:TOKEN}"}`"""
    oauth: bool | McpOAuthConfig | None = None
    """How to log in to it; `false`: not by OAuth. Default: as the server says. Example: `{"clientId": "my-client"}`"""
    enabled: bool | None = None
    """`false`: not used. Default: `true`."""
    timeout: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    """Milliseconds until it must have started and named its tools, and of a call without news of progress. Default:
    5000, and 60000 for a call. Example: `10000`
    """
