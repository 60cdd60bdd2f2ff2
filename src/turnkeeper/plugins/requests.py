"""What plugins change in a request to a model. The recorded history is never changed."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Literal, NamedTuple

from turnkeeper.model.message import UserMessage
from turnkeeper.model.request import ModelRequest, ToolDefinition
from turnkeeper.model.stream import StreamEvent
from turnkeeper.model.value import encode
from turnkeeper.plugins import hooks as h
from turnkeeper.plugins import payloads as p
from turnkeeper.plugins.plugin_set import Changed, PluginSet
from turnkeeper.providers.provider import Provider


class ChangedRequest(NamedTuple):
    """A request, and who changed what in it: ``audit: system``."""

    request: ModelRequest
    changes: tuple[str, ...] = ()


async def changed_request(plugins: PluginSet, request: ModelRequest, asked: p.RequestInput) -> ChangedRequest:
    """The request after all plugins have seen it."""
    session_id, changes = asked.session_id, list[str]()

    def note(what: str, changed: Changed[p.Output]) -> bool:
        changes.extend(f"{name}: {what}" for name in changed.by)
        return bool(changed.by)

    if plugins.has(h.CHAT_PARAMS.name):
        params = p.ParamsOutput(
            temperature=request.temperature,
            top_p=request.top_p,
            max_output_tokens=request.output_max,
            options=dict(request.options),
        )
        found = await plugins.trigger(h.CHAT_PARAMS, asked, params, session_id=session_id)
        if note("parameters", found):  # type: ignore[arg-type] # It reads the names only.
            params = found.output
            request = request.but(
                temperature=params.temperature,
                top_p=params.top_p,
                output_max=params.max_output_tokens,
                options=params.options,
            )
    if plugins.has(h.CHAT_HEADERS.name):
        headers = await plugins.trigger(
            h.CHAT_HEADERS, asked, p.HeadersOutput(headers=dict(request.headers)), session_id=session_id
        )
        if note("headers", headers):  # type: ignore[arg-type] # As above.
            request = request.but(headers=headers.output.headers)
    if plugins.has(h.SYSTEM.name):
        system = await plugins.trigger(
            h.SYSTEM, asked, p.SystemOutput(system=list(request.system)), session_id=session_id
        )
        if note("system", system):  # type: ignore[arg-type] # As above.
            request = request.but(system=tuple(system.output.system))
    if plugins.has(h.MESSAGES.name):
        messages = await plugins.trigger(
            h.MESSAGES, asked, p.MessagesOutput(messages=list(request.messages)), session_id=session_id
        )
        if note("messages", messages):  # type: ignore[arg-type] # As above.
            request = request.but(messages=tuple(messages.output.messages))
    return ChangedRequest(request, tuple(changes))


async def changed_tools(
    plugins: PluginSet, tools: tuple[ToolDefinition, ...], session_id: str
) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
    """The tools as plugins describe them, and who changed them. Without a change these are the same objects."""
    if not plugins.has(h.TOOL_DEFINITION.name):
        return tools, ()
    found, by = list[ToolDefinition](), dict[str, None]()
    for tool in tools:
        output = p.ToolDefinitionOutput(description=tool.description, parameters=dict(tool.schema))
        changed = await plugins.trigger(
            h.TOOL_DEFINITION, p.ToolDefinitionInput(tool_id=tool.name), output, session_id=session_id
        )
        by |= dict.fromkeys(changed.by)
        described = changed.output
        found.append(tool.but(description=described.description, schema=described.parameters) if changed.by else tool)
    return tuple(found) if by else tools, tuple(f"{name}: tools" for name in by)


def brought_tools(plugins: PluginSet, tools: Sequence[ToolDefinition]) -> dict[str, str]:
    """A hash of the tools that each plugin brings to a request, by its name."""
    owners = {one.tool.name: one.plugin for one in plugins.contributed.tools}
    found: dict[str, list[ToolDefinition]] = {}
    for tool in tools if owners else ():
        if tool.name in owners:
            found.setdefault(owners[tool.name], []).append(tool)
    return {name: sha256(encode(brought)).hexdigest()[:8] for name, brought in found.items()}


class AroundProvider:
    """A provider whose requests plugins change: for requests that are no turn."""

    def __init__(
        self,
        provider: Provider,
        plugins: PluginSet,
        purpose: Literal["compaction", "title"],
        session_id: str,
        message: UserMessage | None = None,
    ) -> None:
        self._provider, self._plugins, self._purpose = provider, plugins, purpose
        self._session_id, self._message = session_id, message

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer to the changed request."""
        asked = p.RequestInput(
            session_id=self._session_id,
            model=request.model,
            agent=self._purpose,
            purpose=self._purpose,
            message=self._message,
        )
        request = (await changed_request(self._plugins, request, asked)).request
        async with aclosing(self._provider.stream(request)) as answer:
            async for batch in answer:
                yield batch
