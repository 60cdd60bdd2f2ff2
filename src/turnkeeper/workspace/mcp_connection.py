"""A connection to an MCP server: its state, and the notifications of changed offers."""

import logging
import math
from typing import TYPE_CHECKING, Final

import anyio

from turnkeeper.core.mcp import printable
from turnkeeper.workspace.mcp_lists import ListCheck

if TYPE_CHECKING:
    from mcp.client import Client, IncomingMessage

log = logging.getLogger(__name__)

MISSING: Final = "MCP servers need the package mcp: pip install 'turnkeeper[mcp]'"


class McpFailure(Exception):
    """A call failed. The text is the reason."""


class Connection:
    """One connection, from when it is made until it breaks."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.since = math.inf
        self.broken = anyio.Event()
        self.reason = ""
        self.http_status: int | None = None
        """The status of the last answer over HTTP."""
        self.wants_login = False
        """Whether the server requires a login of the user."""
        self.changed = anyio.Event()
        """Set when the offers of the server may have changed."""
        self.learned = anyio.Event()
        """Set unless the server has reported a change and the new offers are not read yet."""
        self.learned.set()
        self.lists = ListCheck()

    def breaks(self, reason: str) -> None:
        """Mark the connection as broken: no further call can succeed."""
        self.reason = self.reason or reason
        self.broken.set()
        self.learned.set()

    def reports_change(self) -> None:
        """Record that the server has announced a change of its offers."""
        self.changed.set()
        if self.learned.is_set() and not self.broken.is_set():
            self.learned = anyio.Event()


def is_lost(error: Exception) -> bool:
    """Whether an error of a call means that the connection is lost."""
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
    """Whether a server over HTTP no longer accepts the session or the login. The call was then not processed."""
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
    # Callers get every failure. The package would log it as well, with the traceback and the sent values.
    for name in ("mcp.client", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


async def take_note(connection: Connection, message: "IncomingMessage") -> None:
    """Handle a notification of changed offers: servers of older protocols send them unasked."""
    if "ListChanged" in type(message).__name__:
        connection.reports_change()
    await anyio.lowlevel.checkpoint()


async def listen(connection: Connection, client: "Client") -> None:
    """Subscribe to changes of offers: servers of newer protocols send them only to subscribers."""
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
    """The message of an error; of an exception group, that of the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(printable(str(error)).split())[:500] or type(error).__name__
