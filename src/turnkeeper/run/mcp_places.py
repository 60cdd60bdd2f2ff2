"""MCP servers of places: what each offers there, and requests to them by the names that users and clients use."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from turnkeeper.core.commands import argument_words
from turnkeeper.core.mcp import McpOutput, offer_names, prompt_output, resource_names, sanitised
from turnkeeper.model.command import Command
from turnkeeper.model.config import Config
from turnkeeper.model.mcp import McpPrompt, McpResource
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import JsonObject
from turnkeeper.workspace.mcp_connection import McpFailure
from turnkeeper.workspace.mcp_server import McpServer
from turnkeeper.workspace.mcp_servers import McpServers
from turnkeeper.workspace.project import ProjectPlace

Setting: TypeAlias = Callable[[ProjectPlace], tuple[Config, Mapping[str, str]]]
"""The configuration of a place, and what programs are run with there."""


class Offered(NamedTuple):
    """A resource and the server that has it."""

    server: McpServer
    resource: McpResource


class McpPlaces:
    """The servers of places. They are started when a place is first asked for them."""

    def __init__(self, servers: McpServers, setting: Setting) -> None:
        self.all, self._setting = servers, setting

    async def servers(self, place: ProjectPlace) -> tuple[McpServer, ...]:
        """The servers of a place, once they are connected or have failed. Raises Invalid."""
        config, environ = self._setting(place)
        return await self.all.ready(place.directory, config, environ)

    async def server(self, place: ProjectPlace, name: str) -> McpServer:
        """A server by its name. Raises NotFound."""
        known = await self.servers(place)
        found = next((one for one in known if one.name == name), None)
        if found is None:
            names = ", ".join(one.name for one in known) or "(none)"
            raise NotFound(f"there is no MCP server {name!r} here; the servers are: {names}")
        return found

    async def commands(self, place: ProjectPlace) -> list[Command]:
        """The prompts of the servers of a place, as commands."""
        return served_commands(await self.servers(place))

    async def resources(self, place: ProjectPlace) -> dict[str, Offered]:
        """The resources of the servers of a place, by the names that users call them by."""
        found: dict[str, Offered] = {}
        for server in await self.servers(place):
            if server.is_on:
                named = resource_names(server.name, server.offers.resources)
                found |= {key: Offered(server, resource) for key, resource in named.items()}
        return found

    async def mentioned(self, place: ProjectPlace, name: str) -> Offered | None:
        """The resource that a user names as ``server:name`` or ``server:address``; None if there is none."""
        server, sign, uri = name.partition(":")
        if not sign or not uri or not self._has(place, server):
            return None
        known = await self.resources(place)
        if name in known:
            return known[name]
        here = (one for one in known.values() if _is_called(one.server.name, server) and one.resource.uri == uri)
        return next(here, None)

    def _has(self, place: ProjectPlace, server: str) -> bool:
        """Whether a place has a server, without starting it."""
        config, _ = self._setting(place)
        return any(_is_called(name, server) for name in (*config.mcp, *self.all.added(place.directory)))

    async def read(self, place: ProjectPlace, server: str, uri: str) -> JsonObject:
        """The content of a resource. Raises McpFailure, also for an unknown server."""
        try:
            return await (await self.server(place, server)).read(uri)
        except NotFound as refusal:
            raise McpFailure(f"no server named {server!r} is connected") from refusal

    async def prompt(self, place: ProjectPlace, command: str, arguments: str) -> McpOutput:
        """The text of a prompt with these arguments. Raises NotFound and Invalid."""
        for server in await self.servers(place):
            by_name = {one.name: one for one in server.offers.prompts}
            if (own := offer_names(server.name, by_name).get(command)) is not None:
                return await _prompted(server, by_name[own], arguments)
        raise NotFound(f"no MCP server offers the prompt {command!r} any more")


def _is_called(name: str, said: str) -> bool:
    return said in (name, sanitised(name))


def served_commands(servers: Sequence[McpServer]) -> list[Command]:
    """The prompts of servers, as commands."""
    found = []
    for server in servers:
        by_name = {one.name: one for one in server.offers.prompts if server.is_on}
        for key, name in offer_names(server.name, by_name).items():
            prompt = by_name[name]
            hints = tuple(f"${number + 1}" for number in range(len(prompt.arguments)))
            found.append(
                Command(
                    name=key,
                    template=" ".join(hints),
                    description=prompt.description or None,
                    source="mcp",
                    where=f"MCP server {server.name}",
                    hints=hints,
                )
            )
    return found


async def _prompted(server: McpServer, prompt: McpPrompt, arguments: str) -> McpOutput:
    words = argument_words(arguments, len(prompt.arguments))
    missing = [one.name for one, word in zip(prompt.arguments, words, strict=True) if one.required and not word]
    if missing:
        raise Invalid(f"the prompt {prompt.name!r} needs {', '.join(missing)}; give its arguments behind its name")
    given = {one.name: word for one, word in zip(prompt.arguments, words, strict=True) if word}
    try:
        output = prompt_output(await server.prompt(prompt.name, given))
    except McpFailure as failure:
        raise Invalid(str(failure)) from failure
    if not prompt.arguments and arguments.strip():
        return output._replace(text=f"{output.text}\n\n{arguments}")
    return output
