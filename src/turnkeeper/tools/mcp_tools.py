"""The tools of MCP servers as tools that models may call, under the names that opencode gives them."""

from collections.abc import Container, Sequence
from functools import partial

from turnkeeper.core.mcp import output, tool_names
from turnkeeper.model.mcp import McpInstructions, McpTool
from turnkeeper.tools.mcp_resources import attached, resource_tools
from turnkeeper.tools.tool import AnyInput, AnyTool, Tool, ToolContext, ToolFailure, ToolOutput
from turnkeeper.workspace.mcp_connection import McpFailure
from turnkeeper.workspace.mcp_server import McpServer


class McpTools:
    """Makes tools from the offers of servers. Unchanged offers give the same objects, which need not be compared."""

    def __init__(self) -> None:
        self._made: dict[McpServer, tuple[tuple[McpTool, ...], tuple[AnyTool, ...]]] = {}
        self._of_resources: tuple[tuple[McpServer, ...], tuple[AnyTool, ...]] = ((), ())

    def of(self, servers: Sequence[McpServer]) -> tuple[AnyTool, ...]:
        """The tools of these servers. A server that is switched off has none."""
        made: list[AnyTool] = []
        for server in servers:
            offered = server.tools if server.is_on else ()
            known = self._made.get(server)
            if known is None or known[0] is not offered:
                known = self._made[server] = offered, _tools(server, offered)
            made += known[1]
        return (*made, *self._resources(servers))

    def _resources(self, servers: Sequence[McpServer]) -> tuple[AnyTool, ...]:
        """The tools for resources, if one of the servers has some."""
        having = tuple(one for one in servers if one.is_on and (one.offers.resources or one.offers.templates))
        if having != self._of_resources[0]:
            self._of_resources = having, resource_tools(having) if having else ()
        return self._of_resources[1]

    def forget_closed(self) -> None:
        """Forget the tools of servers that are no longer used."""
        for server in [one for one in self._made if one.is_closed]:
            del self._made[server]
        if any(one.is_closed for one in self._of_resources[0]):
            self._of_resources = (), ()


def instructions(servers: Sequence[McpServer], visible: Container[str]) -> tuple[McpInstructions, ...]:
    """The instructions of the servers in use, without servers whose tools the model cannot see."""
    return tuple(
        McpInstructions(server=server.name, text=server.offers.instructions)
        for server in servers
        if server.is_on and server.offers.instructions
        # A server without tools has prompts or resources, which the user names.
        if not server.tools
        or any(name in visible for name in tool_names(server.name, [one.name for one in server.tools]))
    )


def _tools(server: McpServer, offered: Sequence[McpTool]) -> tuple[AnyTool, ...]:
    by_name = {tool.name: tool for tool in offered}
    names = tool_names(server.name, by_name)
    return tuple(_tool(server, name, by_name[own]) for name, own in names.items())


def _tool(server: McpServer, name: str, offered: McpTool) -> AnyTool:
    return Tool(
        name=name,
        description=offered.description or f"The tool {offered.name} of the MCP server {server.name}.",
        parameters=AnyInput,
        execute=partial(_execute, server, name, offered),
        permission=name,
        # What a server elsewhere does, it does not do to files here.
        read_only=offered.read_only or server.config.url is not None,
        schema=offered.schema,
    )


async def _execute(server: McpServer, name: str, offered: McpTool, input: AnyInput, context: ToolContext) -> ToolOutput:
    await context.ask(name, ["*"], always=["*"], metadata=input.given)

    async def tell(words: str) -> None:
        await context.progress(title=words)

    try:
        result = output(await server.call(offered.name, input.given, tell))
    except McpFailure as failure:
        raise ToolFailure(str(failure)) from failure
    if result.is_error:
        raise ToolFailure(result.text)
    files, metadata = attached(result.files), {"server": server.name}
    return ToolOutput(title=offered.name, output=result.text, attachments=files, metadata=metadata)
