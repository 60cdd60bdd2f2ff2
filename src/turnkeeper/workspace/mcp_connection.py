"""A connection to an MCP server: what is known of it while it lasts, news that it brings, and the way over HTTP."""

import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

if TYPE_CHECKING:
    from mcp.client import Client, IncomingMessage
    from mcp.client._transport import TransportStreams

log = logging.getLogger(__name__)

MISSING: Final = "MCP servers need the package mcp: pip install 'turnkeeper[mcp]'"


class McpFailure(Exception):
    """A call came to nothing. The text says why."""


class Connection:
    """One connection, from when it is made until it breaks."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.since = math.inf
        self.broken = anyio.Event()
        self.reason = ""
        self.http_status: int | None = None
        self.changed = anyio.Event()
        """Set when the server may offer other tools than before."""

    def breaks(self, reason: str) -> None:
        """Take note that no call will come through any more."""
        self.reason = self.reason or reason
        self.broken.set()


def is_lost(error: Exception) -> bool:
    """Whether an error of a call means that no further call will come through."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    return not isinstance(error, MCPError) or error.code == CONNECTION_CLOSED


def import_package() -> None:
    """Import the package, which takes a good part of a second. Raises McpFailure if it is not installed."""
    try:
        import mcp.client  # noqa: F401 # Once imported it is at hand.
    except ImportError as error:
        raise McpFailure(MISSING) from error


async def take_note(connection: Connection, message: "IncomingMessage") -> None:
    """Servers of older protocols tell of changes unasked."""
    if "ToolListChanged" in type(message).__name__:
        connection.changed.set()
    await anyio.lowlevel.checkpoint()


async def listen(connection: Connection, client: "Client") -> None:
    """Servers of newer protocols tell of changes those who subscribe."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    offered = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or offered is None or not offered.list_changed:
        return
    try:
        async with client.listen(tools_list_changed=True) as changes:
            connection.changed.set()  # What changed before the subscription is told nobody.
            async for _ in changes:
                connection.changed.set()
    except Exception as error:
        log.debug("no news from the MCP server: %s", words(error))


@asynccontextmanager
async def http(
    url: str, headers: Mapping[str, str], connect_s: float, connection: Connection
) -> AsyncIterator["TransportStreams"]:
    """The streams of an address."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def note(response: Any) -> None:  # The type of a response is that of the package, which is not imported.
        connection.http_status = response.status_code

    limits = httpx2.Timeout(connect_s, read=None)  # How long an answer may take is said by each call.
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=limits, event_hooks={"response": [note]}) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


def words(error: BaseException) -> str:
    """What an error says; of several the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error).strip()[:500] or type(error).__name__
