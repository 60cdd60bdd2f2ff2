"""The MCP servers of a runtime: one connection for each server and its settings, shared by those who use the same."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from turnkeeper.model.config import Config
from turnkeeper.model.value import encode
from turnkeeper.workspace.mcp_server import McpPlace, McpServer
from turnkeeper.workspace.settings_cache import DIRECTORIES_MAX

_Key: TypeAlias = tuple[str, bytes]


class McpServers:
    """Starts servers when a directory that has them is first used. They end with the task group."""

    def __init__(self, group: TaskGroup | None, *, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        """``group`` is where servers run; without one none is started."""
        self._group, self._sleep = group, sleep
        self._running: dict[_Key, McpServer] = {}
        self._used: dict[Path, list[_Key]] = {}

    def of(self, directory: Path, config: Config, environ: Mapping[str, str]) -> tuple[McpServer, ...]:
        """The servers of a directory, in the order of their names. Those that nobody has any more are ended."""
        if self._group is None or not (config.mcp or self._used):
            return ()
        found: dict[_Key, McpServer] = {}
        for name, given in sorted(config.mcp.items()):
            if given.command is None and given.url is None:
                continue  # Only switched off or on, and defined nowhere.
            place = McpPlace(directory, environ, config.experimental.mcp_timeout)
            where = [str(directory), sorted(environ.items())] if given.url is None else []
            key = name, encode([given, config.experimental.mcp_timeout, where])
            found[key] = self._running.get(key) or self._new(key, McpServer(name, given, place, sleep=self._sleep))
        self._used.pop(directory, None)
        self._used[directory] = list(found)
        while len(self._used) > DIRECTORIES_MAX:
            del self._used[next(iter(self._used))]
        self._end_unused()
        return tuple(found.values())

    async def ready(self, directory: Path, config: Config, environ: Mapping[str, str]) -> tuple[McpServer, ...]:
        """The servers of a directory, once each is connected, or its first attempt is over."""
        servers = self.of(directory, config, environ)
        async with anyio.create_task_group() as waiting:
            for server in servers:
                if server.is_on:
                    server.want()
                    waiting.start_soon(server.wait_first)
        return servers

    def _new(self, key: _Key, server: McpServer) -> McpServer:
        assert self._group is not None, "the caller looked"
        self._running[key] = server
        self._group.start_soon(server.serve)
        return server

    def _end_unused(self) -> None:
        used = {key for keys in self._used.values() for key in keys}
        for key in [one for one in self._running if one not in used]:
            self._running.pop(key).close()
