"""One request to an MCP server: it ends with an answer, at its time limit, or when the connection breaks."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import anyio

from turnkeeper.core.limits import MCP_CALL_MAX_S
from turnkeeper.workspace.mcp_connection import Connection, McpFailure, is_lost, is_misfit, is_unknown, words

if TYPE_CHECKING:
    from mcp.client import Client

T = TypeVar("T")

Extend = Callable[[], None]
"""Called when a request has made progress: its deadline is then extended."""


class McpUnknown(McpFailure):
    """The server no longer knows the connection, and has not processed the request: it can be sent again."""


async def asked(
    name: str, connection: Connection, limit_s: float, ask: Callable[["Client", Extend], Awaitable[T]]
) -> T:
    """The answer to a request. Raises McpFailure. Bounded in time."""
    client, outcome = connection.client, list[T | McpFailure]()
    assert client is not None, "it was reached"
    begun = anyio.current_time()
    last = begun + max(MCP_CALL_MAX_S, limit_s)

    async def call() -> None:
        try:
            with anyio.fail_after(limit_s) as limit:

                def extend() -> None:
                    limit.deadline = min(anyio.current_time() + limit_s, last)

                outcome.append(await ask(client, extend))
        except Exception as error:
            # Errors of several packages come through the client. The model reads what went wrong.
            outcome.append(_failure(name, connection, error, anyio.current_time() - begun))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await connection.broken.wait()
        tasks.cancel_scope.cancel()
    if not outcome:
        raise _lost(name, connection)
    found = outcome[0]
    if isinstance(found, McpFailure):
        raise found
    return found


def _failure(name: str, connection: Connection, error: Exception, took_s: float) -> McpFailure:
    """The failure of a call. A connection that is or may be lost is marked."""
    if isinstance(error, TimeoutError):
        connection.changed.set()  # The offers are then read again; if that fails too, the connection breaks.
        return McpFailure(f"The MCP server {name} did not answer within {took_s:.1f} s; the call was cancelled.")
    if is_unknown(error, connection.http_status):
        connection.breaks("it no longer knows the connection")
        return McpUnknown(f"The MCP server {name} no longer knows this connection: {words(error)}")
    if is_lost(error):
        connection.breaks(words(error))
        return _lost(name, connection)
    if is_misfit(error):
        return McpFailure(f"The MCP server {name} carried out the call, and its answer cannot be used: {words(error)}")
    return McpFailure(f"The MCP server {name} refused the call: {words(error)}")


def _lost(name: str, connection: Connection) -> McpFailure:
    return McpFailure(
        f"The MCP server {name} was lost in mid-call: {connection.reason}. Whether the call had an effect is "
        "not known. It is connected again when it is next called."
    )
