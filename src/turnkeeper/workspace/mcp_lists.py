"""Lists of an MCP server, without the items that the package ``mcp`` refuses.

The package refuses a page of a list as a whole if one item is invalid. So each answer to a request for a list is
checked between the transport and the client: invalid items are taken out, and named with the reason.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final

from turnkeeper.core.limits import MCP_NAME_CHARS_MAX, MCP_TOOLS_MAX
from turnkeeper.core.mcp import printable
from turnkeeper.model.mcp import McpKind, McpLeftOut
from turnkeeper.model.value import JsonObject

if TYPE_CHECKING:
    from contextvars import Context

    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

LISTS: Final[Mapping[str, tuple[str, McpKind]]] = {
    "tools/list": ("tools", "tool"),
    "prompts/list": ("prompts", "prompt"),
    "resources/list": ("resources", "resource"),
    "resources/templates/list": ("resourceTemplates", "template"),
}
"""The requests for lists, each with the field of its answer and the kind of an item."""


class ListCheck:
    """Takes invalid items out of the lists of one connection, and remembers them."""

    def __init__(self) -> None:
        self.version = ""
        """The version of the protocol; empty until it is negotiated, which is before the first list."""
        self._left_out: dict[McpLeftOut, None] = {}
        self._asked: dict[int | str, str] = {}

    @asynccontextmanager
    async def around(
        self, transport: "AbstractAsyncContextManager[TransportStreams]"
    ) -> AsyncIterator["TransportStreams"]:
        """The message streams of a transport, with the answers checked."""
        async with transport as (reading, writing):
            yield _Reading(reading, self), _Writing(writing, self)

    def taken(self) -> tuple[McpLeftOut, ...]:
        """What was left out since the last call, in the order of kinds and names."""
        found, self._left_out = self._left_out, {}
        return tuple(sorted(found, key=lambda one: (one.kind, one.name, one.reason)))

    def note(self, sent: "SessionMessage") -> None:
        """Remember a request for a list."""
        from mcp_types import JSONRPCRequest

        if isinstance(sent.message, JSONRPCRequest) and sent.message.method in LISTS:
            self._asked[sent.message.id] = sent.message.method

    def checked(self, received: "SessionMessage | Exception") -> "SessionMessage | Exception":
        """The message; an answer to a request for a list without its invalid items."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(received, Exception) or not isinstance(received.message, JSONRPCResponse | JSONRPCError):
            return received
        method = self._asked.pop(received.message.id, None) if received.message.id is not None else None
        if method is None or isinstance(received.message, JSONRPCError):
            return received
        valid = self._valid(method, received.message.result)
        return replace(received, message=received.message.model_copy(update={"result": valid}))

    def _valid(self, method: str, result: JsonObject) -> JsonObject:
        field, kind = LISTS[method]
        items = result.get(field)
        if not isinstance(items, list) or self._error(method, result) is None:
            return result
        if self._error(method, {**result, field: []}) is not None:
            return result  # It is not the items that are invalid; the package says what it is.
        kept: list[object] = []
        for item in items:
            error = self._error(method, {**result, field: [item]})
            if error is None:
                kept.append(item)
            elif len(self._left_out) < MCP_TOOLS_MAX:
                self._left_out[McpLeftOut(kind=kind, name=_name(item), reason=_reason(error))] = None
        return {**result, field: kept}

    def _error(self, method: str, result: JsonObject) -> "ValidationError | None":
        from mcp_types.methods import parse_server_result
        from pydantic import ValidationError

        try:
            parse_server_result(method, self.version, result)
        except ValidationError as error:
            return error
        return None


class _Reading:
    """A stream of messages from a server, with invalid items of lists removed."""

    def __init__(self, stream: "ReadStream[SessionMessage | Exception]", check: ListCheck) -> None:
        self._stream, self._check = stream, check

    @property
    def last_context(self) -> "Context | None":
        """The context of the sender of the last message, which the package asks for."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> "SessionMessage | Exception":
        return self._check.checked(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> "_Reading":
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        return self._check.checked(await self._stream.__anext__())

    async def __aenter__(self) -> "_Reading":
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class _Writing:
    """A stream of messages to a server, which notes the requests for lists."""

    def __init__(self, stream: "WriteStream[SessionMessage]", check: ListCheck) -> None:
        self._stream, self._check = stream, check

    async def send(self, item: "SessionMessage", /) -> None:
        self._check.note(item)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> "_Writing":
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def _name(item: object) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return printable(name)[:MCP_NAME_CHARS_MAX] if isinstance(name, str) and name else "(no name)"


def _reason(error: "ValidationError") -> str:
    """Where the first error in an item is, and what it is. The place begins with the list and the item's number."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"][2:])
    return printable(f"{place}: {first['msg']}" if place else first["msg"])[:200]
