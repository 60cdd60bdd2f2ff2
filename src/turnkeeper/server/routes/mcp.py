"""MCP servers: how each does, switched off and on, added until the server ends, their resources, and logins."""

from typing import Literal, TypeVar

from turnkeeper.model.config import McpConfig
from turnkeeper.model.mcp import McpStatus
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.errors import Missing
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.workspace.mcp_server import McpServer

NAME_MAX = 64
B = TypeVar("B")


class ResourceEntry(Value):
    """A resource as clients receive it. ``client`` is the name of its server."""

    name: str
    uri: str
    description: str | None = None
    mime_type: str | None = None
    client: str


class AddBody(Value):
    """A server and its name."""

    name: str
    config: McpConfig


class LoginPage(Value):
    """The page where a user agrees; empty if the server asks for no login."""

    authorization_url: str
    oauth_state: str


class CodeBody(Value):
    """The code that the browser came back with."""

    code: str


class LoggedOut(Value):
    """The login is forgotten."""

    success: Literal[True]


async def status(call: PlainRequest) -> dict[str, McpStatus]:
    """The MCP servers of a directory and how the connection to each is. They are started if they are not yet."""
    return await _statuses(call)


async def add(call: HttpRequest[None, AddBody]) -> dict[str, McpStatus]:
    """Use a server that no settings name, until this program ends."""
    name, config = call.body.name, call.body.config
    if not name.strip() or not name.isprintable() or len(name) > NAME_MAX:
        raise Invalid(f"{name!r:.80} cannot name a server; use up to {NAME_MAX} letters, digits, '_' and '-'")
    if (config.command is None) == (config.url is None):
        raise Invalid("a server has either a `command` or a `url`")
    place = await call.place()
    call.directories.mcp.all.add(place.directory, name, config)
    return await _statuses(call)


async def connect(call: PlainRequest) -> bool:
    """Use an MCP server again, until the server ends."""
    await (await _server(call)).switch(is_on=True)
    return True


async def disconnect(call: PlainRequest) -> bool:
    """Use an MCP server no longer, until the server ends or it is connected."""
    await (await _server(call)).switch(is_on=False)
    return True


async def resources(call: PlainRequest) -> dict[str, ResourceEntry]:
    """The resources of the MCP servers of a directory, by the names that users call them by."""
    found = await call.directories.mcp.resources(await call.place())
    return {
        key: ResourceEntry(
            name=resource.name,
            uri=resource.uri,
            description=resource.description,
            mime_type=resource.mime_type,
            client=server.name,
        )
        for key, (server, resource) in found.items()
    }


async def start_login(call: PlainRequest) -> LoginPage:
    """Begin a login by OAuth: a browser on the machine of this server goes to the page, and comes back to it."""
    attempt = call.directories.mcp.all.log_in(await _server(call))
    await attempt.shown.wait()
    if attempt.page:
        return LoginPage(authorization_url=attempt.page, oauth_state=attempt.state)
    await attempt.done()
    return LoginPage(authorization_url="", oauth_state="")


async def finish_login(call: HttpRequest[None, CodeBody]) -> McpStatus:
    """Finish a login with the code that the browser was given."""
    server = await _server(call)
    attempt = call.directories.mcp.all.attempt(server)
    if attempt is None:
        raise Conflict(f"no login at {server.name!r} is under way; begin one first")
    attempt.give(call.body.code)
    await attempt.done()
    return server.status


async def authenticate(call: PlainRequest) -> McpStatus:
    """Begin a login, or join the one under way, and wait until the user has agreed. No browser is opened."""
    server = await _server(call)
    logins = call.directories.mcp.all
    attempt = logins.attempt(server) or logins.log_in(server)
    await attempt.done()
    return server.status


async def log_out(call: PlainRequest) -> LoggedOut:
    """Forget the login at an MCP server."""
    await call.directories.mcp.all.log_out(await _server(call))
    return LoggedOut(success=True)


async def _statuses(call: HttpRequest[None, B]) -> dict[str, McpStatus]:
    servers = await call.directories.mcp.servers(await call.place())
    return {one.name: one.status for one in servers}


async def _server(call: HttpRequest[None, B]) -> McpServer:
    name = call.params["name"]
    try:
        return await call.directories.mcp.server(await call.place(), name)
    except NotFound as error:
        raise Missing("McpServer", name) from error


ROUTES = (
    route("GET", "/mcp", "mcp.status", status),
    route("POST", "/mcp", "mcp.add", add),
    route("GET", "/experimental/resource", "experimental.resource.list", resources),
    route("POST", "/mcp/{name}/connect", "mcp.connect", connect, NotFound),
    route("POST", "/mcp/{name}/disconnect", "mcp.disconnect", disconnect, NotFound),
    route("POST", "/mcp/{name}/auth", "mcp.auth.start", start_login, NotFound),
    route("POST", "/mcp/{name}/auth/callback", "mcp.auth.callback", finish_login, NotFound, Conflict),
    route("POST", "/mcp/{name}/auth/authenticate", "mcp.auth.authenticate", authenticate, NotFound),
    route("DELETE", "/mcp/{name}/auth", "mcp.auth.remove", log_out, NotFound),
)
