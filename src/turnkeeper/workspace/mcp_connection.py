"""A connection to an MCP server: what is known of it while it lasts, and news that it brings."""

import logging
import math
from typing import TYPE_CHECKING, Final

import anyio

from turnkeeper.core.mcp import printable

if TYPE_CHECKING:
    from mcp.client import Client, IncomingMessage

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
        """That of the last answer over HTTP."""
        self.wants_login = False
        """Whether a user has to agree before calls can be made."""
        self.changed = anyio.Event()
        """Set when the server may offer other things than before."""
        self.learned = anyio.Event()
        """Set unless the server has reported a change that is not learned yet."""
        self.learned.set()

    def breaks(self, reason: str) -> None:
        """Take note that no call will come through any more."""
        self.reason = self.reason or reason
        self.broken.set()
        self.learned.set()

    def reports_change(self) -> None:
        """Take note that the server says that it offers other things than before."""
        self.changed.set()
        if self.learned.is_set() and not self.broken.is_set():
            self.learned = anyio.Event()


def is_lost(error: Exception) -> bool:
    """Whether an error of a call means that no further call will come through."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    if isinstance(error, MCPError):
        return error.code == CONNECTION_CLOSED
    return not is_misfit(error)


def is_misfit(error: Exception) -> bool:
    """Whether a call was answered with what the package does not take, as output that its schema does not allow."""
    from pydantic import ValidationError

    return isinstance(error, RuntimeError | ValidationError)


def is_unknown(error: Exception, http_status: int | None) -> bool:
    """Whether a server over HTTP no longer knows the connection, or who calls. It has not looked at the call then."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_REQUEST

    if not isinstance(error, MCPError):
        return False
    return http_status == 401 or (http_status == 404 and error.code == INVALID_REQUEST)


def import_package() -> None:
    """Import the package, which takes a good part of a second. Raises McpFailure if it is not installed."""
    try:
        import mcp.client  # noqa: F401 # Once imported it is at hand.
    except ImportError as error:
        raise McpFailure(MISSING) from error
    # What fails is told to those who asked. The package would log it, too, with its stack and with what was sent.
    for name in ("mcp.client", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


async def take_note(connection: Connection, message: "IncomingMessage") -> None:
    """Servers of older protocols tell of changes unasked."""
    if "ListChanged" in type(message).__name__:
        connection.reports_change()
    await anyio.lowlevel.checkpoint()


async def listen(connection: Connection, client: "Client") -> None:
    """Servers of newer protocols tell of changes those who subscribe."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return
    able = client.server_capabilities
    tools, prompts, resources = (
        one is not None and one.list_changed is True for one in (able.tools, able.prompts, able.resources)
    )
    if not (tools or prompts or resources):
        return
    try:
        async with client.listen(
            tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
        ) as changes:
            connection.changed.set()  # Changes before the subscription were not reported.
            async for _ in changes:
                connection.reports_change()
    except Exception as error:
        # Errors of several packages come through the client. Without changes the first lists stay in use.
        log.debug("no news from the MCP server: %s", words(error))


def words(error: BaseException) -> str:
    """What an error says; of several the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(printable(str(error)).split())[:500] or type(error).__name__
