"""Anthropic Messages: the wire protocol of Claude and of hosts with a compatible API."""

from collections.abc import Mapping, Sequence

from turnkeeper.core.lowering import NO_OUTPUT
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import cache_points, codec, media, sampling, schemas, transforms
from turnkeeper.providers.anthropic_reader import Reader
from turnkeeper.providers.codec import Wire
from turnkeeper.providers.endpoint import Endpoint

__all__ = ["BASE_URL", "MESSAGES", "Reader", "body", "conversation", "failure", "frame", "headers", "path"]

BASE_URL = "https://api.anthropic.com/v1"
MESSAGES = "messages"
VERSION = "2023-06-01"
OUTPUT_DEFAULT = 4096
"""``max_tokens`` if neither the request nor the catalogue has a limit; the protocol requires one."""

_OPTIONS = {"serviceTier": "service_tier", "stopSequences": "stop_sequences", "cacheControl": "cache_control"}
_OURS = ("thinking", "effort", "disableParallelToolUse", "cacheTtl", "toolStreaming", "sendReasoning")


def path(request: ModelRequest) -> str:
    """The URL path, equal for every model."""
    return "/messages"


def headers(endpoint: Endpoint) -> dict[str, str]:
    """Version and API key. A subscription token is sent as a bearer token."""
    own = {"anthropic-version": VERSION}
    if endpoint.api_key:
        if endpoint.api_key.startswith("sk-ant-oat"):
            own["authorization"] = f"Bearer {endpoint.api_key}"
        else:
            own["x-api-key"] = endpoint.api_key
    return own


failure = codec.plain_failure


def body(request: ModelRequest, endpoint: Endpoint) -> Wire:
    """The whole body of a request."""
    return frame(request, endpoint, conversation(request, endpoint))


def conversation(request: ModelRequest, endpoint: Endpoint) -> list[Wire]:
    """The messages of a request in the wire format: roles alternate, and tool results come first in a user message."""
    request = transforms.prepare(request, endpoint)
    messages = codec.alternating(_message(request.messages, index) for index in range(len(request.messages)))
    for role, blocks in messages:
        if role == "user":
            blocks.sort(key=lambda block: block["type"] != "tool_result")
    return [{"role": role, "content": blocks} for role, blocks in messages]


def frame(request: ModelRequest, endpoint: Endpoint, messages: list[Wire]) -> Wire:
    """The body of a request with these messages, to which it adds cache points."""
    options = codec.merged(request.model.options, request.options)
    thinking = _thinking(options)
    wire: Wire = {"model": request.model.api_id, "max_tokens": _output(request, thinking)}
    system: list[Wire] = [{"type": "text", "text": text} for text in request.system if text]
    tools: list[Wire] = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": schemas.for_model(tool.schema, request.model),
        }
        for tool in request.tools
    ]
    if "cacheControl" not in options and "cache_control" not in options:
        cache_points.mark_anthropic(system, messages, tools, cache_points.marker(options))
    if system:
        wire["system"] = system
    wire["messages"] = messages
    if tools:
        wire["tools"] = tools
        wire["tool_choice"] = _tool_choice(request, options)
    wire.update(_sampled(request, thinking, endpoint))
    if isinstance(effort := options.get("effort"), str):
        wire["output_config"] = {"effort": effort}
    wire.update(codec.renamed(options, _OPTIONS, without=_OURS))
    wire["stream"] = True
    return wire


def _thinking(options: JsonObject) -> Wire | None:
    given = options.get("thinking")
    return codec.renamed(given, {"budgetTokens": "budget_tokens"}) if isinstance(given, Mapping) else None


def _output(request: ModelRequest, thinking: Wire | None) -> int:
    """``max_tokens``. It includes thinking tokens, so a limit below the thinking budget is added to the budget."""
    limit = request.output_max or request.model.limits.output or OUTPUT_DEFAULT
    budget = (thinking or {}).get("budget_tokens")
    if isinstance(budget, int) and limit <= budget:
        limit += budget
        if request.model.limits.output > budget:
            limit = min(limit, request.model.limits.output)
    return limit


def _sampled(request: ModelRequest, thinking: Wire | None, endpoint: Endpoint) -> Wire:
    """Thinking or sampling fields: a request may not have both, and newer models and versions refuse sampling."""
    is_thinking = thinking is not None and thinking.get("type") != "disabled"
    version = {name.lower(): value for name, value in endpoint.headers.items()}.get("anthropic-version", VERSION)
    if is_thinking or not request.model.temperature or version != VERSION:
        return {"thinking": thinking} if thinking is not None else {}
    chosen = sampling.of(request)
    wire: Wire = {"temperature": chosen.temperature, "top_p": chosen.top_p, "top_k": chosen.top_k, "thinking": thinking}
    return codec.present(wire)


def _tool_choice(request: ModelRequest, options: JsonObject) -> Wire:
    if request.tool_choice == "none":
        # The tools are still sent: the cached prefix begins with them.
        return {"type": "none"}
    choice: Wire = {"type": "any" if request.tool_choice == "required" else "auto"}
    if options.get("disableParallelToolUse") is True:
        choice["disable_parallel_tool_use"] = True
    return choice


def _message(messages: Sequence[ModelMessage], index: int) -> tuple[str, list[Wire]]:
    match messages[index]:
        case UserTurn(content=content):
            return "user", [_said(part) for part in content]
        case ToolTurn(results=results):
            return "user", [_result(result) for result in results]
        case SystemTurn(text=text) if _is_system_allowed(messages, index):
            return "system", [{"type": "text", "text": text}]
        case SystemTurn(text=text):
            return "user", [{"type": "text", "text": transforms.system_update(text)}]
        case AssistantTurn() as turn:
            return "assistant", _assistant(turn)


def _is_system_allowed(messages: Sequence[ModelMessage], index: int) -> bool:
    """Whether the provider takes a system message here: after a user or tool turn, before an assistant turn or the end.

    Adjacent system messages count as one, so that Passing Words at the end do not change how earlier ones are sent.
    """
    before = next((one for one in reversed(messages[:index]) if not isinstance(one, SystemTurn)), None)
    after = next((one for one in messages[index + 1 :] if not isinstance(one, SystemTurn)), None)
    return isinstance(before, UserTurn | ToolTurn) and (after is None or isinstance(after, AssistantTurn))


def _said(part: Text | Media) -> Wire:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    kind = "image" if part.mime in media.IMAGES else "document" if part.mime == media.PDF else None
    if kind is None:
        return _said(media.stand_in(part, f"the provider does not take files of type {part.mime}"))
    source: Wire = (
        {"type": "url", "url": part.url}
        if part.data is None
        else {"type": "base64", "media_type": part.mime, "data": part.data}
    )
    titled = {"title": part.filename} if kind == "document" and part.filename else {}
    return {"type": kind, "source": source, **titled}


def _result(result: Result) -> Wire:
    content = [_said(part) for part in result.output if not isinstance(part, Text) or part.text]
    block: Wire = {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": content or [{"type": "text", "text": NO_OUTPUT}],
    }
    return {**block, "is_error": True} if result.is_error else block


def _assistant(turn: AssistantTurn) -> list[Wire]:
    results = transforms.hosted_results(turn)
    blocks: list[Wire] = []
    for part in turn.content:
        match part:
            case Text(text=text):
                cited = codec.own(part.metadata, "anthropic").get("citations")
                blocks.append({"type": "text", "text": text, **({"citations": cited} if cited else {})})
            case Reasoning():
                blocks.append(_reasoning(part))
            case Call(executed=True):
                blocks.extend(_hosted(part, results.get(part.id)))
            case Call():
                blocks.append({"type": "tool_use", "id": part.id, "name": part.name, "input": part.input})
            case Result():
                pass  # Sent with its call.
    return blocks


def _reasoning(part: Reasoning) -> Wire:
    """Thinking with its signature. The provider refuses thinking without one, so that is sent as text."""
    own = codec.own(part.metadata, "anthropic")
    if own.get("redactedData"):
        return {"type": "redacted_thinking", "data": own["redactedData"]}
    if own.get("signature"):
        return {"type": "thinking", "thinking": part.text, "signature": own["signature"]}
    return {"type": "text", "text": part.text}


def _hosted(call: Call, result: Result | None) -> list[Wire]:
    block = (result.raw or codec.own(result.metadata, "anthropic").get("block")) if result else None
    own = codec.own(call.metadata, "anthropic")
    if isinstance(block, dict) and own.get("isItem") is True:
        return [dict(block)]
    is_result = isinstance(block, dict) and codec.text_of(block.get("type")).endswith("_tool_result")
    if not isinstance(block, dict) or not is_result or own.get("isContinued") is True:
        return [{"type": "text", "text": transforms.hosted_text(call, result)}]
    kind = own.get("callType") or "server_tool_use"
    used: Wire = {"type": kind, "id": call.id, "name": call.name, "input": call.input}
    return [used, {**block, "tool_use_id": call.id}]
