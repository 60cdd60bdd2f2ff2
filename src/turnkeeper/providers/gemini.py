"""Google Gemini: the wire protocol of generateContent."""

from collections.abc import Mapping
from urllib.parse import quote

from turnkeeper.core.failures import json_or_none
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import ApiFailure, Failure
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
    ToolDefinition,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec, sampling, schemas, transforms
from turnkeeper.providers.codec import Wire
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.gemini_reader import Reader

__all__ = ["BASE_URL", "MESSAGES", "Reader", "body", "conversation", "failure", "frame", "headers", "path"]

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
MESSAGES = "contents"
UNSIGNED = "skip_thought_signature_validator"
"""Placeholder signature for a tool call by another model; newer models refuse a call without a signature."""

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_OURS = frozenset({"thinkingConfig", "safetySettings", "cachedContent", "cacheTtl", "labels"})


def path(request: ModelRequest) -> str:
    """The URL path: the model, and a request for server-sent events."""
    return f"/models/{quote(request.model.api_id, safe='/')}:streamGenerateContent?alt=sse"


def headers(endpoint: Endpoint) -> dict[str, str]:
    """The API key, in a header and never in the URL."""
    return {"x-goog-api-key": endpoint.api_key} if endpoint.api_key else {}


def failure(status: int, headers: Mapping[str, str], body: str, endpoint: Endpoint) -> Failure:
    """The typed failure of an error status. The retry delay in the body becomes a ``retry-after`` header."""
    found = codec.plain_failure(status, headers, body, endpoint)
    wait = _retry_delay(body)
    if isinstance(found, ApiFailure) and wait and "retry-after" not in headers:
        return found.but(data=found.data.but(response_headers={**headers, "retry-after": wait}))
    return found


def body(request: ModelRequest, endpoint: Endpoint) -> Wire:
    """The whole body of a request."""
    return frame(request, endpoint, conversation(request, endpoint))


def conversation(request: ModelRequest, endpoint: Endpoint) -> list[Wire]:
    """The messages of a request in the wire format: roles alternate."""
    request = transforms.prepare(request, endpoint)
    wire_ids: dict[str, object] = {}
    messages = (_message(message, request.model, wire_ids) for message in request.messages)
    return [{"role": role, "parts": parts} for role, parts in codec.alternating(messages)]


def frame(request: ModelRequest, endpoint: Endpoint, messages: list[Wire]) -> Wire:
    """The body of a request with these messages."""
    options = codec.merged(_base(request.model), request.model.options, request.options)
    wire: Wire = {}
    if system := [{"text": text} for text in request.system if text]:
        wire["systemInstruction"] = {"parts": system}
    wire["contents"] = messages
    if request.tools:
        wire["tools"] = [{"functionDeclarations": [_tool(tool, request.model) for tool in request.tools]}]
        wire["toolConfig"] = {"functionCallingConfig": {"mode": _MODES[request.tool_choice]}}
    chosen = sampling.of(request)
    config: Wire = {
        "maxOutputTokens": request.output_max,
        "temperature": chosen.temperature,
        "topP": chosen.top_p,
        "topK": chosen.top_k,
        "thinkingConfig": options.get("thinkingConfig"),
    }
    wire["generationConfig"] = {**codec.present(config), **codec.renamed(options, {}, without=_OURS)}
    wire.update({key: options[key] for key in ("safetySettings", "cachedContent", "labels") if key in options})
    return wire


def _base(model: ModelInfo) -> Wire:
    if not model.reasoning:
        return {}
    level = {"thinkingLevel": "high"} if "gemini-3" in model.api_id else {}
    return {"thinkingConfig": {"includeThoughts": True, **level}}


def _tool(tool: ToolDefinition, model: ModelInfo) -> Wire:
    schema = schemas.for_model(tool.schema, model)
    declared: Wire = {"name": tool.name, "description": tool.description}
    # The provider refuses a schema without properties, so a tool without input has no schema.
    return {**declared, "parameters": schema} if schema.get("properties") else declared


def _message(message: ModelMessage, model: ModelInfo, wire_ids: dict[str, object]) -> tuple[str, list[Wire]]:
    match message:
        case UserTurn(content=content):
            return "user", [_said(part) for part in content]
        case SystemTurn(text=text):
            return "user", [{"text": transforms.system_update(text)}]
        case ToolTurn(results=results):
            return "user", [part for result in results for part in _result(result, model, wire_ids)]
        case AssistantTurn():
            return "model", _assistant(message, model, wire_ids)


def _said(part: Text | Media) -> Wire:
    if isinstance(part, Text):
        return {"text": part.text}
    if part.data is None:
        return {"fileData": {"mimeType": part.mime, "fileUri": part.url}}
    return {"inlineData": {"mimeType": part.mime, "data": part.data}}


def _result(result: Result, model: ModelInfo, wire_ids: dict[str, object]) -> list[Wire]:
    """A tool result. Its media are inside it for models that accept that, else in parts after it."""
    files = [_said(part) for part in result.output if isinstance(part, Media)]
    response: Wire = {"error" if result.is_error else "output": transforms.result_text(result)}
    answered: Wire = {"name": result.name, "response": response}
    if result.call_id in wire_ids:
        answered["id"] = wire_ids[result.call_id]
    if files and "gemini-3" in model.api_id:
        return [{"functionResponse": {**answered, "parts": files}}]
    return [{"functionResponse": answered}, *files]


def _assistant(turn: AssistantTurn, model: ModelInfo, wire_ids: dict[str, object]) -> list[Wire]:
    hosted = transforms.hosted_results(turn)
    parts: list[Wire] = []
    has_call = False
    for part in turn.content:
        own = codec.own(part.metadata, "google")
        match part:
            case Text(text=text):
                parts.append(_signed({"text": text}, own))
            case Reasoning(text=text):
                if text or own.get("thoughtSignature"):
                    parts.append(_signed({"text": text, "thought": True}, own))
            case Call(executed=True):
                parts.extend(_hosted(part, hosted.get(part.id)))
            case Call():
                call: Wire = {"name": part.name, "args": part.input}
                if wire_id := own.get("callId"):
                    wire_ids[part.id] = call["id"] = wire_id
                signed = _signed({"functionCall": call}, own)
                if not has_call and "thoughtSignature" not in signed and "gemini-3" in model.api_id:
                    signed["thoughtSignature"] = UNSIGNED
                has_call = True
                parts.append(signed)
            case Result():
                pass  # Sent with its call.
    return parts


def _signed(part: Wire, own: JsonObject) -> Wire:
    return {**part, "thoughtSignature": own["thoughtSignature"]} if own.get("thoughtSignature") else part


def _hosted(call: Call, result: Result | None) -> list[Wire]:
    own = codec.own(call.metadata, "google")
    given = (result.raw or codec.own(result.metadata, "google").get("part")) if result else None
    if isinstance(given, dict) and own.get("isItem") is True:
        return [given]
    if isinstance(given, dict) and isinstance(called := own.get("part"), dict):
        return [called, given]
    return [{"text": transforms.hosted_text(call, result)}]


def _retry_delay(body: str) -> str | None:
    """The seconds in ``error.details[].retryDelay``, which has the form ``34.07s``."""
    parsed = json_or_none(body)
    answer = next(iter(codec.objects(parsed if isinstance(parsed, list) else [parsed])), {})
    for detail in codec.objects(codec.own(answer, "error").get("details")):
        delay = codec.text_of(detail.get("retryDelay"))
        if delay.endswith("s"):
            return delay[:-1]
    return None
