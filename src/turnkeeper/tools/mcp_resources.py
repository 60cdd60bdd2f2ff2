"""The tools by which models list and read the resources of MCP servers. They are there if a server has some."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta

from turnkeeper.core.limits import MCP_TOOLS_MAX
from turnkeeper.core.mcp import McpFile, resource_pieces
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import AnyTool, Attachment, Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace.mcp_connection import McpFailure
from turnkeeper.workspace.mcp_server import McpServer

READ = "read"
"""The permission of these tools."""


class ListArguments(Value):
    """The server."""

    server: Annotated[str | None, Meta(description="The name of a server. Default: all of them.")] = None


class ReadArguments(Value):
    """The server and the URI of the resource."""

    server: Annotated[str, Meta(description="The name of the server.")]
    uri: Annotated[str, Meta(description="The address of the resource, as the server lists it.")]


def resource_tools(servers: Sequence[McpServer]) -> tuple[AnyTool, ...]:
    """The tools for the resources of these servers."""
    known = {server.name: server for server in servers}
    return (
        Tool(
            name="list_mcp_resources",
            description=text("list_mcp_resources"),
            parameters=ListArguments,
            execute=partial(_list, known, False),
            permission=READ,
            read_only=True,
        ),
        Tool(
            name="list_mcp_resource_templates",
            description=text("list_mcp_resource_templates"),
            parameters=ListArguments,
            execute=partial(_list, known, True),
            permission=READ,
            read_only=True,
        ),
        Tool(
            name="read_mcp_resource",
            description=text("read_mcp_resource"),
            parameters=ReadArguments,
            execute=partial(_read, known),
            permission=READ,
            read_only=True,
        ),
    )


async def _list(
    servers: Mapping[str, McpServer], is_template: bool, arguments: ListArguments, context: ToolContext
) -> ToolOutput:
    asked = [_named(servers, arguments.server)] if arguments.server is not None else list(servers.values())
    patterns = [f"mcp:{server.name}:*" for server in asked]
    await context.ask(READ, patterns, always=patterns, metadata={"server": arguments.server})
    lines = [line for server in asked for line in _lines(server, is_template)]
    kind = "resource templates" if is_template else "resources"
    return ToolOutput(title=f"{len(lines)} {kind}", output="\n".join(lines[:MCP_TOOLS_MAX]) or f"There are no {kind}.")


def _lines(server: McpServer, is_template: bool) -> list[str]:
    if is_template:
        found = [(one.uri_template, one.name, one.mime_type, one.description) for one in server.offers.templates]
    else:
        found = [(one.uri, one.name, one.mime_type, one.description) for one in server.offers.resources]
    return [f"{server.name}: {uri}: {', '.join(filter(None, about))}" for uri, *about in found]


async def _read(servers: Mapping[str, McpServer], arguments: ReadArguments, context: ToolContext) -> ToolOutput:
    server, uri = _named(servers, arguments.server), arguments.uri
    await context.ask(
        READ,
        [f"mcp:{server.name}:{uri}"],
        always=[f"mcp:{server.name}:*"],
        metadata={"server": server.name, "uri": uri},
    )
    try:
        pieces = resource_pieces(await server.read(uri), "application/octet-stream", None)
    except McpFailure as failure:
        raise ToolFailure(str(failure)) from failure
    files = [piece.file for piece in pieces if piece.file is not None]
    return ToolOutput(
        title=uri[:200],
        output="\n\n".join(piece.text for piece in pieces) or "(the resource is empty)",
        attachments=attached(files),
        metadata={"server": server.name},
    )


def attached(files: Iterable[McpFile]) -> tuple[Attachment, ...]:
    """The files of a server's answer as those of an output."""
    return tuple(Attachment(mime=one.mime, url=one.url, filename=one.filename) for one in files)


def _named(servers: Mapping[str, McpServer], name: str) -> McpServer:
    if name not in servers:
        raise ToolFailure(f"There is no server {name!r:.80} with resources. These have some: {', '.join(servers)}")
    return servers[name]
