"""The commands about MCP servers: which there are, how they do, and what is wrong with one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.failures import OK, REFUSED
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items
from turnkeeper.cli.plugged import catalog_of, settings_here
from turnkeeper.cli.screen import Column, Screen, fields, harmless, one_line, rows_of, table
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import JsonObject

if TYPE_CHECKING:
    from turnkeeper.model.config import Config, McpConfig
    from turnkeeper.workspace.mcp_server import McpServer


async def list_servers(*, options: Options) -> None:
    r"""List the MCP servers of the working directory: start each, and say how it does.

    Servers are named in the setting `mcp`. Each is started or reached as a turn
    would, for as long as its `timeout` says, and ended again. A server of a project
    that you do not trust is not started, and not listed.

    With --json the answer is {"items": [{"name", "type", "status", "error",
    "tools", "prompts", "resources", "left_out", "enabled"}]}; "tools" are the
    names that a model calls, "prompts" those of commands, and "resources" those
    of mentions. "left_out" has what the server offers and cannot be used, each
    with "kind", "name" and "reason".

    For example:
      turnkeeper mcp list
      turnkeeper mcp list --json | jq -r '.items[] | "\(.name) \(.status)"'
    """
    async with tried_servers(options) as servers:
        rows = [_row(one) for one in servers]
        answer_items(options, rows, lambda screen: _table(screen, rows))


async def debug(
    name: Annotated[str, Parameter(metavar="NAME", help="The name of the server.")], /, *, options: Options
) -> int:
    """Start an MCP server, and show its tools and the end of its error output.

    With --json the answer is that of `mcp list` for the server, with
    "descriptions", "instructions" and "errors", which is what it wrote last to
    its error output. The exit code is 1 if it is not connected.

    For example:
      turnkeeper mcp debug notes
    """
    async with tried_servers(options, only=name) as servers:
        [server] = servers
        row = _row(server)
        value = {
            **row,
            "descriptions": {tool.name: tool.description for tool in server.tools},
            "instructions": server.offers.instructions,
            "errors": server.errors.text,
        }
        answer(options, value, lambda screen: _described(screen, server, row))
    return OK if row["status"] == "connected" else REFUSED


@asynccontextmanager
async def tried_servers(options: Options, only: str | None = None) -> "AsyncIterator[tuple[McpServer, ...]]":
    """The servers of the working directory, or the one that is meant, tried once. They end with the block."""
    import logging

    import anyio

    from turnkeeper.core.command_environ import command_environ
    from turnkeeper.workspace.mcp_logins import McpLogins
    from turnkeeper.workspace.mcp_servers import McpServers

    logging.getLogger("turnkeeper.workspace.mcp_server").setLevel(logging.ERROR)  # What failed is in the answer.
    place, loaded = await settings_here(options.environ)
    config = loaded.config
    meant = configured_server(config, only) if only is not None else None
    if meant is not None and meant.command is None and meant.url is None:
        raise Invalid(f"the MCP server {only!r} has neither a `command` nor a `url`; see `turnkeeper config show mcp`")
    wanted = config.but(mcp={name: one for name, one in config.mcp.items() if only in (None, name)})
    keys = catalog_of(config, options.environ).key_variables
    environ = command_environ(options.environ, config.command_environment, keys)
    async with anyio.create_task_group() as group:
        servers = await McpServers(group, logins=McpLogins.of(options.environ)).ready(place.directory, wanted, environ)
        yield servers
        group.cancel_scope.cancel()


def configured_server(config: "Config", name: str) -> "McpConfig":
    """The settings of a server. Raises NotFound, with the names there are."""
    if name not in config.mcp:
        known = ", ".join(sorted(config.mcp)) or "(none)"
        raise NotFound(f"there is no MCP server {name!r} here; the servers are: {known}")
    return config.mcp[name]


def _row(server: "McpServer") -> JsonObject:
    import msgspec

    from turnkeeper.core.mcp import offer_names, resource_names, tool_names

    status: dict[str, object] = msgspec.to_builtins(server.status)
    return {
        "name": server.name,
        "type": "remote" if server.config.url is not None else "local",
        "status": status["status"],
        "error": status.get("error"),
        "tools": sorted(tool_names(server.name, [tool.name for tool in server.tools])),
        "prompts": sorted(offer_names(server.name, [one.name for one in server.offers.prompts])),
        "resources": sorted(resource_names(server.name, server.offers.resources)),
        "left_out": [msgspec.to_builtins(one) for one in server.offers.left_out],
        "enabled": server.is_on,
    }


def _table(screen: Screen, rows: list[JsonObject]) -> str:
    if not rows:
        return "There are no MCP servers here. They are named in the setting `mcp`; see docs/guides/mcp.md."
    return table(
        screen,
        Column("SERVER", [harmless(str(row["name"])) for row in rows], ("cyan",)),
        Column("TYPE", [str(row["type"]) for row in rows]),
        Column("STATUS", [str(row["status"]) for row in rows]),
        Column("TOOLS OR ERROR", [_told(row) for row in rows], least=16),
    )


def _told(row: JsonObject) -> str:
    if row["status"] == "needs_auth":
        return f"turnkeeper mcp auth {one_line(str(row['name']))}"
    unusable = len(_names(row["left_out"]))
    rest = f" ({unusable} left out; see `turnkeeper mcp debug`)" if unusable else ""
    return one_line(str(row["error"] or ", ".join(map(str, _names(row["tools"]))) + rest))


def _names(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _described(screen: Screen, server: "McpServer", row: JsonObject) -> str:
    head = fields(
        screen,
        [
            ("Server", screen.paint(harmless(server.name), "bold")),
            ("Type", str(row["type"])),
            ("Status", str(row["status"])),
            ("Error", one_line(str(row["error"] or ""))),
            *rows_of("Tools", (one_line(f"{tool.name}: {tool.description}") for tool in server.tools)),
            *rows_of("Prompts", (f"/{name}" for name in _names(row["prompts"]))),
            *rows_of("Resources", (f"@{name}" for name in _names(row["resources"]))),
            *rows_of("Left out", (one_line(f"{one.kind} {one.name}: {one.reason}") for one in server.offers.left_out)),
            ("Says", one_line(server.offers.instructions or "")),
        ],
    )
    errors = "\n".join(map(harmless, server.errors.text.splitlines()))
    return "\n\n".join(filter(None, [head, f"Its error output ended with:\n{errors}" if errors else ""]))
