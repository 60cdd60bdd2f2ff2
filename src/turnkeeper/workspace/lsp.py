"""Language servers: started when a file of theirs is first read or named, and asked for errors and symbols.

A server that is missing costs nothing. One that does not answer is waited for once, for a bounded time that has mostly
passed when the model sends its edit of the file that it read. Servers are confined like a model's commands.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.core.limits import DIAGNOSTICS_S, DIAGNOSTICS_START_S
from turnkeeper.core.sandbox import Confinement
from turnkeeper.text.symbols import Symbol
from turnkeeper.workspace.after_edit import Confine, Diagnostic
from turnkeeper.workspace.language_server import LanguageServer
from turnkeeper.workspace.lsp_commands import ServerCommand

log = logging.getLogger(__name__)

SERVERS_MAX: Final = 8
"""Maximum number of running servers; files of further servers are not checked."""

_Key: TypeAlias = tuple[ServerCommand, Path, object]
"""A server, its root directory, and the refusals of its confinement."""


class LanguageServers:
    """The servers of this process, each for one root directory. They end with the task group.

    Sessions share a server only if the kernel refuses them the same, for errors can quote files that the server reads.
    """

    def __init__(
        self,
        group: TaskGroup | None,
        *,
        timeout_s: float = DIAGNOSTICS_S,
        start_s: float = DIAGNOSTICS_START_S,
    ) -> None:
        """``timeout_s`` is the timeout of a request, ``start_s`` the timeout of the start of a server."""
        self._group, self._timeout_s, self._start_s = group, timeout_s, start_s
        self._running: dict[_Key, LanguageServer] = {}

    async def prepare(
        self,
        servers: Sequence[ServerCommand],
        root: Path,
        environ: Mapping[str, str],
        path: Path,
        text: str,
        confine: Confine,
    ) -> None:
        """Send a text that was read to the servers of its file, without waiting for them."""
        for server in await self._of(servers, root, environ, path, confine):
            if self._group is not None:
                self._group.start_soon(server.prepare, path, text, self._timeout_s)

    async def diagnose(
        self,
        servers: Sequence[ServerCommand],
        root: Path,
        environ: Mapping[str, str],
        path: Path,
        before: str | None,
        after: str,
        confine: Confine,
    ) -> tuple[Diagnostic, ...]:
        """The errors of a file that its servers did not report for the old text. Never fails; bounded in time."""
        found: list[Diagnostic] = []

        async def ask(server: LanguageServer) -> None:
            found.extend(await server.new_errors(path, before, after, self._timeout_s))

        async with anyio.create_task_group() as asking:
            for server in await self._of(servers, root, environ, path, confine):
                asking.start_soon(ask, server)
        return tuple(sorted(found, key=lambda one: (one.line, one.character)))

    async def symbols(
        self,
        servers: Sequence[ServerCommand],
        root: Path,
        environ: Mapping[str, str],
        path: Path,
        text: str,
        confine: Confine,
    ) -> tuple[Symbol, ...]:
        """The symbols of a file from the first server that returns some. Never fails; bounded in time."""
        for server in await self._of(servers, root, environ, path, confine):
            if found := await server.symbols(path, text, self._timeout_s):
                return found
        return ()

    async def _of(
        self,
        servers: Sequence[ServerCommand],
        root: Path,
        environ: Mapping[str, str],
        path: Path,
        confine: Confine,
    ) -> "list[LanguageServer]":
        """The servers to ask about a file, started if they are not running."""
        wanted = [command for command in servers if command.serves(path)]
        if not wanted or self._group is None:
            return []
        try:
            confined = await to_thread.run_sync(confine)
        except OSError as error:
            log.warning("no language server is started: %s", error)
            return []
        group = self._group
        found = (self._server(group, command, root, environ, confined) for command in wanted)
        return [server for server in found if server is not None]

    def _server(
        self,
        group: TaskGroup,
        command: ServerCommand,
        root: Path,
        environ: Mapping[str, str],
        confined: Confinement | None,
    ) -> "LanguageServer | None":
        key = command, root, confined.refused if confined is not None else None
        known = self._running.get(key)
        if known is None and len(self._running) < SERVERS_MAX:
            known = self._running[key] = LanguageServer(command, root, environ, confined, start_s=self._start_s)
            group.start_soon(known.serve)
        return known if known is not None and known.is_useful else None
