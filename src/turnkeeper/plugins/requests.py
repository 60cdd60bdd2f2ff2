"""Plugin hooks around a request to a model. They never change the recorded history."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Literal, NamedTuple, TypeVar

from turnkeeper.model.message import UserMessage
from turnkeeper.model.request import ModelRequest, ToolDefinition
from turnkeeper.model.stream import StreamEvent
from turnkeeper.model.value import encode
from turnkeeper.plugins import hooks as h
from turnkeeper.plugins import payloads as p
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.providers.provider import Provider

O = TypeVar("O", bound=p.Output)  # noqa: E741 # The output of a hook.


class ChangedRequest(NamedTuple):
    """A request, and its changes by plugin and field: ``audit: system``."""

    request: ModelRequest
    changes: tuple[str, ...] = ()


async def changed_request(plugins: PluginSet, request: ModelRequest, asked: p.RequestInput) -> ChangedRequest:
    """The request after the hooks of all plugins."""
    changes: list[str] = []

    async def changed(what: str, hook: h.Hook[p.RequestInput, O], given: O) -> O | None:
        """The output of a hook; None if no plugin changed it."""
        output, by = await plugins.trigger(hook, asked, given, session_id=asked.session_id)
        changes.extend(f"{name}: {what}" for name in by)
        return output if by else None

    if not plugins.plugins:
        return ChangedRequest(request)
    params = p.ParamsOutput(
        temperature=request.temperature,
        top_p=request.top_p,
        max_output_tokens=request.output_max,
        options=dict(request.options),
    )
    if (own := await changed("parameters", h.CHAT_PARAMS, params)) is not None:
        request = request.but(
            temperature=own.temperature, top_p=own.top_p, output_max=own.max_output_tokens, options=own.options
        )
    headers = p.HeadersOutput(headers=dict(request.headers))
    if (sent := await changed("headers", h.CHAT_HEADERS, headers)) is not None:
        request = request.but(headers=sent.headers)
    system = p.SystemOutput(system=list(request.system))
    if (told := await changed("system", h.SYSTEM, system)) is not None:
        request = request.but(system=tuple(told.system))
    messages = p.MessagesOutput(messages=list(request.messages))
    if (shown := await changed("messages", h.MESSAGES, messages)) is not None:
        request = request.but(messages=tuple(shown.messages))
    return ChangedRequest(request, tuple(changes))


async def changed_tools(
    plugins: PluginSet, tools: tuple[ToolDefinition, ...], session_id: str
) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
    """The tools with changes by plugins, and the plugins that made them. Unchanged tools are the same objects."""
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
    """A hash of the tools in a request that each plugin registered, by the name of the plugin."""
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
