"""An MCP server: the connection to it, what it offers, and calls of its tools.

It is started when it is first wanted. If the connection breaks, it is made again when it is next wanted, but not at
once after a failure. What it offered stays known meanwhile: a model's list of tools does not change with each hiccup.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from anyio import to_thread

from turnkeeper.core.limits import MCP_CALL_MAX_S, MCP_CALL_S, MCP_PAGES_MAX, MCP_START_S, MCP_TOOLS_MAX
from turnkeeper.core.mcp import backoff_s
from turnkeeper.model.config import McpConfig
from turnkeeper.model.mcp import McpConnected, McpDisabled, McpFailed, McpNeedsAuth, McpStatus, McpTool
from turnkeeper.model.value import JsonObject
from turnkeeper.model.version import __version__
from turnkeeper.workspace.mcp_connection import (
    Connection,
    McpFailure,
    http,
    import_package,
    is_lost,
    listen,
    take_note,
    words,
)
from turnkeeper.workspace.mcp_stdio import ErrorTail, stdio

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.client._transport import TransportStreams

log = logging.getLogger(__name__)

STABLE_S: Final = 60.0
"""A connection that lasted so long was a good one: the next failure counts as the first."""
NEEDS_AUTH: Final = frozenset({401, 403})

Tell = Callable[[str], Awaitable[None]]
"""Told how a call is doing."""


class McpPlace(NamedTuple):
    """Where a server is run, and the limit of its calls if it has none of its own."""

    directory: Path
    environ: Mapping[str, str]
    call_ms: int | None = None


class McpServer:
    """A server by its name and settings."""

    def __init__(
        self, name: str, config: McpConfig, place: McpPlace, *, sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        self.name, self.config, self._place, self._sleep = name, config, place, sleep
        self.tools: tuple[McpTool, ...] = ()
        """What it offered last, in the order of names; the same object as long as nothing changes."""
        self.instructions: str | None = None
        self.errors = ErrorTail()
        """What a program wrote last to its error output."""
        self.is_on = config.enabled is not False
        """Whether it is used. Its settings and the user say so."""
        self.is_closed = False
        self._rests_until = -math.inf
        self._start_s = config.timeout / 1000 if config.timeout is not None else MCP_START_S
        given_ms = config.timeout or place.call_ms
        self._call_s = given_ms / 1000 if given_ms is not None else MCP_CALL_S
        self._status: McpStatus = McpFailed(error="it has not been started")
        self._connection: Connection | None = None
        self._failures = 0
        self._wanted, self._tried, self._first = anyio.Event(), anyio.Event(), anyio.Event()
        self._rested, self._scope = anyio.Event(), anyio.CancelScope()
        self.want()

    @property
    def status(self) -> McpStatus:
        """How the connection is now."""
        return self._status if self.is_on else McpDisabled()

    # --- The connection ----------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Keep the connection, and make it again when it is wanted after it broke. Never raises an error."""
        with self._scope:
            while True:
                await self._until_wanted()
                self._wanted = anyio.Event()
                if not await self._connect():
                    self._has_tried()  # If there was a connection, its success was told.
                await self._rest(backoff_s(self._failures))

    async def _until_wanted(self) -> None:
        await self._wanted.wait()
        while not self.is_on:  # It was wanted, and then switched off.
            self._wanted = anyio.Event()
            await self._wanted.wait()

    async def _rest(self, rest_s: float) -> None:
        """Leave the server alone for a while, unless the user wants it at once."""
        self._rests_until, self._rested = anyio.current_time() + rest_s, anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def sleep() -> None:
                await self._sleep(rest_s)
                self._rested.set()

            tasks.start_soon(sleep)
            await self._rested.wait()
            tasks.cancel_scope.cancel()

    def want(self) -> None:
        """See to it that there is a connection soon, if it is used at all."""
        if self.is_on:
            self._wanted.set()

    async def switch(self, *, is_on: bool) -> None:
        """Use it or use it no longer, whatever its settings say; wait for the connection."""
        self.is_on = is_on
        if is_on:
            self.want()
            self._rested.set()
            if not isinstance(self._status, McpConnected):
                await self.wait_tried()
            return
        if self._connection is not None:
            self._connection.breaks("it was disconnected")

    def close(self) -> None:
        """End it for good."""
        self.is_closed, self.is_on = True, False
        self._scope.cancel()

    async def wait_first(self) -> None:
        """Wait until the first attempt to connect is over. That is waited for once, whoever waits."""
        if not self._first.is_set():
            with anyio.move_on_after(self._start_s):
                await self._first.wait()
            self._first.set()

    async def wait_tried(self) -> None:
        """Wait until it is connected, or the attempt has failed, or its time is up."""
        with anyio.move_on_after(self._start_s):
            await self._tried.wait()

    async def _connect(self) -> bool:
        """Make a connection and keep it until it breaks; whether it was made."""
        connection = self._connection = Connection()
        try:
            await to_thread.run_sync(import_package)  # It takes a good part of a second, which is not the server's.
            with anyio.CancelScope(deadline=anyio.current_time() + self._start_s) as starting:
                async with self._opened(connection) as client:
                    await self._learn(client)
                    starting.deadline = math.inf
                    self._connected(connection, client)
                    await self._keep(connection, client)
            if connection.client is None:
                connection.breaks(f"it did not answer within {self._start_s:g} s")
        except Exception as error:
            # Whatever a program of somebody else's does, the sessions of this process go on.
            log.debug("the MCP server %s failed", self.name, exc_info=True)
            connection.breaks(words(error))
        finally:
            connection.breaks("it was stopped")
        self._failed(connection)
        return connection.client is not None

    def _connected(self, connection: Connection, client: "Client") -> None:
        connection.client, connection.since, self._status = client, anyio.current_time(), McpConnected()
        self._has_tried()

    def _has_tried(self) -> None:
        self._first.set()
        self._tried.set()
        self._tried = anyio.Event()

    def _failed(self, connection: Connection) -> None:
        if not self.is_on:
            self._status, self._failures = McpFailed(error=connection.reason), 0
            return
        was_useful = connection.client is not None and anyio.current_time() - connection.since > STABLE_S
        self._failures = 1 if was_useful else self._failures + 1
        if connection.client is None and connection.http_status in NEEDS_AUTH:
            self._status = McpNeedsAuth()
        else:
            self._status = McpFailed(error=connection.reason)
        log.warning("the MCP server %s failed: %s", self.name, connection.reason)

    @asynccontextmanager
    async def _opened(self, connection: Connection) -> AsyncIterator["Client"]:
        from mcp.client import Client
        from mcp_types import Implementation

        client = Client(
            self._transport(connection),
            message_handler=partial(take_note, connection),
            client_info=Implementation(name="turnkeeper", version=__version__),
            cache=None,
        )
        async with client:
            yield client

    def _transport(self, connection: Connection) -> "AbstractAsyncContextManager[TransportStreams]":
        if self.config.url is not None:
            return http(self.config.url, self.config.headers, self._start_s, connection)
        environ = {**self._place.environ, **self.config.environment}
        directory = self._place.directory / (self.config.cwd or "")
        return stdio(self.config.command or (), directory, environ, self.errors, connection.breaks)

    async def _keep(self, connection: Connection, client: "Client") -> None:
        """Learn of changes until the connection breaks."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, connection, client)
            tasks.start_soon(self._learn_again, connection, client)
            await connection.broken.wait()
            tasks.cancel_scope.cancel()

    async def _learn_again(self, connection: Connection, client: "Client") -> None:
        while True:
            await connection.changed.wait()
            connection.changed = anyio.Event()
            try:
                with anyio.fail_after(self._start_s):
                    await self._learn(client)
            except Exception as error:
                connection.breaks(f"it no longer says what it offers: {words(error)}")

    async def _learn(self, client: "Client") -> None:
        self.instructions = client.instructions
        found: dict[str, McpTool] = {}
        cursor: str | None = None
        for _ in range(MCP_PAGES_MAX if client.server_capabilities.tools is not None else 0):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                hints = tool.annotations
                found[tool.name] = McpTool(
                    name=tool.name,
                    description=tool.description or "",
                    schema=tool.input_schema,
                    read_only=hints is not None and hints.read_only_hint is True,
                )
            cursor = page.next_cursor
            if cursor is None or len(found) > MCP_TOOLS_MAX:
                break
        tools = tuple(found[name] for name in sorted(found)[:MCP_TOOLS_MAX])
        if tools != self.tools:
            self.tools = tools

    # --- Calls -------------------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: JsonObject, tell: Tell | None = None) -> JsonObject:
        """The result of a call, as the protocol has it. Raises McpFailure. Bounded in time."""
        connection = await self._reached()
        client, outcome = connection.client, list[JsonObject | McpFailure]()
        assert client is not None, "it was reached"
        begun = anyio.current_time()
        last = begun + max(MCP_CALL_MAX_S, self._call_s)

        async def call() -> None:
            try:
                with anyio.fail_after(self._call_s) as limit:
                    progress = partial(_progressed, tell, lambda: _extend(limit, self._call_s, last))
                    result = await client.call_tool(tool, dict(arguments), progress_callback=progress)
                outcome.append(result.model_dump(mode="json", by_alias=True, exclude_none=True))
            except Exception as error:
                outcome.append(self._failure(connection, error, anyio.current_time() - begun))
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await connection.broken.wait()
            tasks.cancel_scope.cancel()
        if not outcome:
            raise self._lost(connection)
        if isinstance(outcome[0], McpFailure):
            raise outcome[0]
        return outcome[0]

    async def _reached(self) -> Connection:
        """The connection; one is made if there is none. Raises McpFailure."""
        if not self.is_on:
            raise McpFailure(f"The MCP server {self.name} is switched off.")
        connection = self._connection
        if connection is None or connection.client is None or connection.broken.is_set():
            self.want()
            if self._rests_until - anyio.current_time() < self._start_s:
                await self.wait_tried()
            connection = self._connection
        if connection is None or connection.client is None or connection.broken.is_set():
            status = self.status
            why = status.error if isinstance(status, McpFailed) else "it wants a login"
            raise McpFailure(f"The MCP server {self.name} cannot be reached: {why}. It is tried again later.")
        return connection

    def _failure(self, connection: Connection, error: Exception, took_s: float) -> McpFailure:
        """What the model is told. A server that may be lost is looked after."""
        if isinstance(error, TimeoutError):
            connection.changed.set()  # It is asked for its tools; if that is in vain, too, it is lost.
            return McpFailure(
                f"The MCP server {self.name} did not answer within {took_s:.1f} s; the call was cancelled."
            )
        if is_lost(error):
            connection.breaks(words(error))
            return self._lost(connection)
        return McpFailure(f"The MCP server {self.name} refused the call: {words(error)}")

    def _lost(self, connection: Connection) -> McpFailure:
        return McpFailure(
            f"The MCP server {self.name} was lost in mid-call: {connection.reason}. Whether the call had an effect is "
            "not known. It is connected again when it is next called."
        )


def _extend(limit: anyio.CancelScope, by_s: float, last: float) -> None:
    limit.deadline = min(anyio.current_time() + by_s, last)


async def _progressed(
    tell: Tell | None, extend: Callable[[], None], progress: float, total: float | None, message: str | None
) -> None:
    extend()
    if tell is not None:
        await tell(message or (f"{progress:g} of {total:g}" if total else f"{progress:g}"))
