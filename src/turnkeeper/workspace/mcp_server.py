"""An MCP server: the connection to it, what it offers, and calls of its tools.

A server is started at its first use. A broken connection is made again at the next use, but not at once after a
failure. The last offers are kept meanwhile, so that a model's list of tools does not change with each failure.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar

import anyio
from anyio import to_thread

from turnkeeper.core.limits import MCP_CALL_S, MCP_CHANGE_S, MCP_RELEARN_S, MCP_START_S
from turnkeeper.core.mcp import backoff_s
from turnkeeper.model.config import McpConfig
from turnkeeper.model.mcp import (
    McpConnected,
    McpDisabled,
    McpFailed,
    McpNeedsAuth,
    McpOffers,
    McpStatus,
    McpTool,
)
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.model.version import __version__
from turnkeeper.workspace.mcp_call import Extend, McpUnknown, asked
from turnkeeper.workspace.mcp_connection import Connection, McpFailure, import_package, listen, take_note, words
from turnkeeper.workspace.mcp_http import http
from turnkeeper.workspace.mcp_logins import McpLogins
from turnkeeper.workspace.mcp_oauth import Asking, provider, settings_of
from turnkeeper.workspace.mcp_offers import learn, renewed
from turnkeeper.workspace.mcp_stdio import ErrorTail, stdio

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Client
    from mcp.client._transport import TransportStreams
    from pydantic import BaseModel

log = logging.getLogger(__name__)

STABLE_S: Final = 60.0
"""Time after which a connection counts as stable: the next failure counts as the first."""
NEEDS_AUTH: Final = frozenset({401, 403})

Tell = Callable[[str], Awaitable[None]]
"""Receives the progress of a call as text."""

T = TypeVar("T")


class McpPlace(NamedTuple):
    """The directory and environment of a server, the default timeout of its calls, and the stored logins."""

    directory: Path
    environ: Mapping[str, str]
    call_ms: int | None = None
    logins: McpLogins | None = None


class McpServer:
    """A server by its name and settings."""

    def __init__(
        self,
        name: str,
        config: McpConfig,
        place: McpPlace,
        *,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        start_s: float = MCP_START_S,
    ) -> None:
        """``start_s`` is the timeout of the start, unless the settings have one."""
        self.name, self.config, self._place, self._sleep = name, config, place, sleep
        self.offers = McpOffers()
        """The last offers of the server."""
        self.tools_hash = ""
        """Hash of the list of tools; empty until there is one."""
        self.errors = ErrorTail()
        """The end of the program's error output."""
        self.is_on = config.enabled is not False
        """Whether the server is enabled, by its settings or the user."""
        self.is_closed = False
        self._rests_until = -math.inf
        self._start_s = config.timeout / 1000 if config.timeout is not None else start_s
        given_ms = config.timeout or place.call_ms
        self._call_s = given_ms / 1000 if given_ms is not None else MCP_CALL_S
        self._status: McpStatus = McpFailed(error="it has not been started")
        self._connection: Connection | None = None
        self._failures, self._told = 0, ""
        self._wanted, self._tried, self._first = anyio.Event(), anyio.Event(), anyio.Event()
        self._rested, self._scope = anyio.Event(), anyio.CancelScope()
        self.want()

    @property
    def status(self) -> McpStatus:
        """The current state of the connection."""
        if not self.is_on:
            return McpDisabled()
        return McpConnected(left_out=self.offers.left_out) if isinstance(self._status, McpConnected) else self._status

    @property
    def _silence(self) -> str:
        return f"it did not answer within {self._start_s:g} s"

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools of the last offers, sorted by name; the same object until they change."""
        return self.offers.tools

    def says(self, status: McpStatus) -> None:
        """Set the status that a login attempt found, unless the server is connected."""
        if not isinstance(self._status, McpConnected):
            self._status = status

    # --- The connection ----------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Keep the connection, and make it again when it is wanted after it broke. Never raises an error."""
        with self._scope:
            while True:
                await self._until_wanted()
                self._wanted = anyio.Event()
                if not await self._connect():
                    self._has_tried()  # A successful connection has already set the event.
                await self._rest(backoff_s(self._failures))

    async def _until_wanted(self) -> None:
        await self._wanted.wait()
        while not self.is_on:  # The server may have been switched off meanwhile.
            self._wanted = anyio.Event()
            await self._wanted.wait()

    async def _rest(self, rest_s: float) -> None:
        """Wait before the next attempt, unless the user wants the server at once."""
        self._rests_until, self._rested = anyio.current_time() + rest_s, anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def sleep() -> None:
                await self._sleep(rest_s)
                self._rested.set()

            tasks.start_soon(sleep)
            await self._rested.wait()
            tasks.cancel_scope.cancel()

    def want(self) -> None:
        """Request a connection, which is made soon if the server is enabled."""
        if self.is_on:
            self._wanted.set()

    async def switch(self, *, is_on: bool) -> None:
        """Enable or disable it, over its settings; wait for the connection."""
        self.is_on = is_on
        if is_on:
            self.want()
            self._rested.set()
            if not isinstance(self._status, McpConnected):
                await self.wait_tried()
            return
        if self._connection is not None:
            self._connection.breaks("it was disconnected")

    async def renew(self) -> None:
        """Connect anew, with the login that there is now; wait for the connection."""
        if self._connection is not None:
            self._connection.breaks("its login has changed")
        if self.is_on:
            self.want()
            self._rested.set()
            await self.wait_tried()

    def close(self) -> None:
        """End the server for good."""
        self.is_closed, self.is_on = True, False
        self._scope.cancel()

    async def wait_first(self) -> None:
        """Wait until the first attempt to connect is over. All callers share one wait."""
        if not self._first.is_set():
            await to_thread.run_sync(import_package)  # As in _connect, or this would be over before the attempt is.
            with anyio.move_on_after(self._start_s) as waiting:
                await self._first.wait()
            if waiting.cancelled_caught:  # The attempt is at its end, too, and may take a while to stop the program.
                self.says(McpFailed(error=self._silence))
            self._first.set()

    async def wait_offers(self) -> None:
        """Wait until the first attempt to connect is over, and a moment for a reported change to be learned."""
        await self.wait_first()
        connection = self._connection
        if connection is not None and not connection.learned.is_set():
            with anyio.move_on_after(MCP_CHANGE_S):
                await connection.learned.wait()

    async def wait_tried(self) -> None:
        """Wait until the server is connected, the attempt has failed, or the start timeout is over."""
        with anyio.move_on_after(self._start_s):
            await self._tried.wait()

    async def _connect(self) -> bool:
        """Connect, and keep the connection until it breaks; returns whether it was made."""
        connection = self._connection = Connection()
        try:
            await to_thread.run_sync(import_package)  # Slow, and not part of the start time.
            with anyio.CancelScope(deadline=anyio.current_time() + self._start_s) as starting:
                async with self._opened(connection) as client:
                    await self._learn(connection, client)
                    starting.deadline = math.inf
                    self._connected(connection, client)
                    await self._keep(connection, client)
            if connection.client is None:
                connection.breaks(self._silence)
        except Exception as error:
            # A failure of a program that is not ours must not end the sessions of this process.
            log.debug("the MCP server %s failed", self.name, exc_info=True)
            connection.breaks(words(error))
        finally:
            connection.breaks("it was stopped")
        self._failed(connection)
        return connection.client is not None

    def _connected(self, connection: Connection, client: "Client") -> None:
        connection.client, connection.since, self._status = client, anyio.current_time(), McpConnected()
        self._told = ""
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
        if connection.client is None and (connection.wants_login or connection.http_status in NEEDS_AUTH):
            self._status = McpNeedsAuth()
            self._tell(f"the MCP server {self.name} wants a login: `turnkeeper mcp auth`")
            return
        self._status = McpFailed(error=connection.reason)
        self._tell(f"the MCP server {self.name} failed: {connection.reason}")

    def _tell(self, words: str) -> None:
        """Log a failure, once for the same one in a row: each turn tries again."""
        if words != self._told:
            log.warning("%s", words)
        self._told = words

    @asynccontextmanager
    async def _opened(self, connection: Connection) -> AsyncIterator["Client"]:
        from mcp.client import Client
        from mcp_types import Implementation

        client = Client(
            connection.lists.around(self._transport(connection)),
            message_handler=partial(take_note, connection),
            client_info=Implementation(name="turnkeeper", version=__version__),
            cache=None,
        )
        async with client:
            connection.lists.version = client.protocol_version
            yield client

    def _transport(self, connection: Connection) -> "AbstractAsyncContextManager[TransportStreams]":
        if self.config.url is not None:
            return http(self.config.url, self.config.headers, self._start_s, connection, self._auth(connection))
        environ = {**self._place.environ, **self.config.environment}
        directory = self._place.directory / (self.config.cwd or "")
        return stdio(self.config.command or (), directory, environ, self.errors, connection.breaks)

    async def _keep(self, connection: Connection, client: "Client") -> None:
        """Follow changes of the offers until the connection breaks."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, connection, client)
            tasks.start_soon(self._learn_again, connection, client)
            await connection.broken.wait()
            tasks.cancel_scope.cancel()

    def _auth(self, connection: Connection) -> "httpx2.Auth | None":
        """The authentication that adds a token to requests; None without a stored login."""
        logins = self._place.logins
        if logins is None or self.config.url is None or settings_of(self.config) is None:
            return None
        login = logins.read(self.config.url)
        if login is None or login.tokens is None:
            return None

        async def refuse(page: str = "") -> NoReturn:
            connection.wants_login = True
            raise McpFailure("it wants a login")

        registered = login.client.get("redirect_uris")
        address = str(registered[0]) if isinstance(registered, list) and registered else "http://127.0.0.1/"
        return provider(self.config, logins, Asking(address, refuse, refuse))

    async def _learn_again(self, connection: Connection, client: "Client") -> None:
        while True:
            await connection.changed.wait()
            connection.changed = anyio.Event()
            try:
                with anyio.fail_after(self._start_s):
                    await self._learn(connection, client)
            except Exception as error:
                # Errors of several packages come through the client. The connection counts as broken then.
                connection.breaks(f"it no longer says what it offers: {words(error)}")
            if not connection.changed.is_set():
                connection.learned.set()
            await self._sleep(MCP_RELEARN_S)

    async def _learn(self, connection: Connection, client: "Client") -> None:
        before = self.offers
        self.offers = renewed(before, await learn(client, self._start_s / 2, connection.lists))
        if self.offers.left_out != before.left_out:
            for one in self.offers.left_out:
                log.warning("the MCP server %s: the %s %r is left out (%s)", self.name, one.kind, one.name, one.reason)
        if self.offers.tools is not before.tools:
            self.tools_hash = sha256(encode(self.offers.tools)).hexdigest()[:8]

    # --- Requests ----------------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: JsonObject, tell: Tell | None = None) -> JsonObject:
        """The result of a call of a tool, as the protocol has it. Raises McpFailure. Bounded in time."""

        async def ask(client: "Client", extend: Extend) -> JsonObject:
            progress = partial(_progressed, tell, extend)
            return _wire(await client.call_tool(tool, dict(arguments), progress_callback=progress))

        return await self._asked(ask)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> JsonObject:
        """The text of a prompt with these arguments, as the protocol has it. Raises McpFailure. Bounded in time."""

        async def ask(client: "Client", extend: Extend) -> JsonObject:
            return _wire(await client.get_prompt(name, dict(arguments)))

        return await self._asked(ask)

    async def read(self, uri: str) -> JsonObject:
        """The content of a resource, as the protocol has it. Raises McpFailure. Bounded in time."""

        async def ask(client: "Client", extend: Extend) -> JsonObject:
            return _wire(await client.read_resource(uri))

        return await self._asked(ask)

    async def _asked(self, ask: Callable[["Client", Extend], Awaitable[T]]) -> T:
        """The answer to a request, which is sent again if the server did not process it."""
        try:
            return await asked(self.name, await self._reached(), self._call_s, ask)
        except McpUnknown:
            return await asked(self.name, await self._reached(), self._call_s, ask)

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
            why = (
                status.error
                if isinstance(status, McpFailed)
                else f"it wants a login; `turnkeeper mcp auth {self.name}`"
            )
            raise McpFailure(f"The MCP server {self.name} cannot be reached: {why}. It is tried again later.")
        return connection


def _wire(result: "BaseModel") -> JsonObject:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def _progressed(
    tell: Tell | None, extend: Extend, progress: float, total: float | None, message: str | None
) -> None:
    extend()
    if tell is not None:
        await tell(message or (f"{progress:g} of {total:g}" if total else f"{progress:g}"))
