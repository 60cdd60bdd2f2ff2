"""The MCP servers of a runtime: one connection for each server and its settings, shared by directories."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from turnkeeper.model.config import Config, McpConfig
from turnkeeper.model.mcp import McpNeedsRegistration
from turnkeeper.model.value import encode
from turnkeeper.workspace.mcp_login import LoginAttempt, NotRegistered
from turnkeeper.workspace.mcp_logins import McpLogins
from turnkeeper.workspace.mcp_server import McpPlace, McpServer
from turnkeeper.workspace.settings_cache import DIRECTORIES_MAX

_Key: TypeAlias = tuple[str, bytes]


class McpServers:
    """Starts servers when a directory that has them is first used. They end with the task group."""

    def __init__(
        self,
        group: TaskGroup | None,
        *,
        logins: McpLogins | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """``group`` is the task group of the servers; without one no server is started."""
        self._group, self._logins, self._sleep = group, logins, sleep
        self._running: dict[_Key, McpServer] = {}
        self._used: dict[Path, list[_Key]] = {}
        self._added: dict[Path, dict[str, McpConfig]] = {}
        self._attempts: dict[McpServer, tuple[LoginAttempt, anyio.CancelScope]] = {}

    def of(self, directory: Path, config: Config, environ: Mapping[str, str]) -> tuple[McpServer, ...]:
        """The servers of a directory, sorted by name. Servers that no directory uses any more are ended."""
        if self._group is None or not (config.mcp or self._used or self._added):
            return ()
        found: dict[_Key, McpServer] = {}
        for name, given in sorted({**config.mcp, **self.added(directory)}.items()):
            if given.command is None and given.url is None:
                continue  # Only switched off or on, and defined nowhere.
            place = McpPlace(directory, environ, config.experimental.mcp_timeout, self._logins)
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
        """Wait until each server of a directory is connected or has failed; the servers with their offers."""
        servers = self.of(directory, config, environ)
        async with anyio.create_task_group() as waiting:
            for server in servers:
                if server.is_on:
                    server.want()
                    waiting.start_soon(server.wait_offers)
        return servers

    def add(self, directory: Path, name: str, config: McpConfig) -> None:
        """Add a server without settings to a directory, until this runtime ends."""
        self._added.setdefault(directory, {})[name] = config

    def added(self, directory: Path) -> Mapping[str, McpConfig]:
        """The servers that were added in a directory."""
        return self._added.get(directory, {})

    def log_in(self, server: McpServer) -> LoginAttempt:
        """Begin a login at a server; an earlier attempt is cancelled. Raises NotOffered."""
        assert self._group is not None, "servers run in it"
        assert self._logins is not None, "a runtime has them"
        attempt = LoginAttempt(server.name, server.config, self._logins)
        if (before := self._attempts.pop(server, None)) is not None:
            before[1].cancel()
        scope = anyio.CancelScope()
        self._attempts[server] = attempt, scope
        self._group.start_soon(self._log_in, server, attempt, scope)
        return attempt

    def attempt(self, server: McpServer) -> LoginAttempt | None:
        """The login attempt in progress, if there is one."""
        found = self._attempts.get(server)
        return found[0] if found is not None else None

    async def log_out(self, server: McpServer) -> None:
        """Remove the stored login at a server."""
        if self._logins is not None and server.config.url is not None:
            self._logins.remove(server.config.url)
            await server.renew()

    async def _log_in(self, server: McpServer, attempt: LoginAttempt, scope: anyio.CancelScope) -> None:
        with scope:
            await attempt.run(lambda: server.renew())
        if self._attempts.get(server, (None,))[0] is attempt:
            del self._attempts[server]
        if isinstance(attempt.failure, NotRegistered):
            server.says(McpNeedsRegistration(error=str(attempt.failure)))

    def _new(self, key: _Key, server: McpServer) -> McpServer:
        assert self._group is not None, "the caller looked"
        self._running[key] = server
        self._group.start_soon(server.serve)
        return server

    def _end_unused(self) -> None:
        used = {key for keys in self._used.values() for key in keys}
        for key in [one for one in self._running if one not in used]:
            self._running.pop(key).close()
