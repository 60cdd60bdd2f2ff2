"""OpenAI Chat Completions: the wire protocol of OpenAI's older models and of most other hosts.

The protocol has no field for reasoning. Its text is sent back in the field that the catalogue names (``interleaved``),
or in ``reasoning`` if the host sent it there. Other reasoning is left out: some hosts send ``reasoning_content`` and
refuse it in requests. Signatures and encrypted reasoning are sent back to the host that sent them.
"""

from turnkeeper.model.catalog import ModelInfo
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
from turnkeeper.model.value import encode
from turnkeeper.providers import cache_points, codec, media, sampling, schemas, transforms
from turnkeeper.providers.codec import Wire
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.openai_chat_reader import Reader

__all__ = ["BASE_URL", "MESSAGES", "Reader", "body", "conversation", "failure", "frame", "headers", "path"]

BASE_URL = "https://api.openai.com/v1"
MESSAGES = "messages"
PLAIN = "reasoning"
"""The field in which most hosts send and accept plain reasoning."""
FROM_TOOL = "These files come from the tool results above:"

_OPTIONS = {
    "reasoningEffort": "reasoning_effort",
    "textVerbosity": "verbosity",
    "parallelToolCalls": "parallel_tool_calls",
    "serviceTier": "service_tier",
    "maxCompletionTokens": "max_completion_tokens",
    "promptCacheKey": "prompt_cache_key",
    "promptCacheRetention": "prompt_cache_retention",
    "safetyIdentifier": "safety_identifier",
    "logitBias": "logit_bias",
    "responseFormat": "response_format",
    "topK": "top_k",
}
_OURS = ("cacheTtl", "reasoningSummary", "include", "textVerbosityDefault")
_CACHE_KEY_HOSTS = frozenset({"openai", "azure", "xai", "mistral", "venice", "deepinfra", "cerebras"})
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def path(request: ModelRequest) -> str:
    """The URL path, equal for every model."""
    return "/chat/completions"


def headers(endpoint: Endpoint) -> dict[str, str]:
    """The API key as a bearer token, or in Azure's own header."""
    if not endpoint.api_key:
        return {}
    if endpoint.provider_id.startswith("azure"):
        return {"api-key": endpoint.api_key}
    return {"authorization": f"Bearer {endpoint.api_key}"}


failure = codec.plain_failure


def cache_key(request: ModelRequest, endpoint: Endpoint) -> Wire:
    """The prompt cache key of a session, for hosts that support one. ``setCacheKey`` of the options overrides that."""
    wanted = endpoint.options.get("setCacheKey")
    is_wanted = wanted if isinstance(wanted, bool) else endpoint.provider_id in _CACHE_KEY_HOSTS
    return {"prompt_cache_key": request.session_id} if is_wanted and request.session_id else {}


def body(request: ModelRequest, endpoint: Endpoint) -> Wire:
    """The whole body of a request."""
    return frame(request, endpoint, conversation(request, endpoint))


def conversation(request: ModelRequest, endpoint: Endpoint) -> list[Wire]:
    """The messages of a request in the wire format."""
    request = transforms.prepare(request, endpoint)
    is_openai = transforms.is_openai(request.model, endpoint)
    return [item for message in request.messages for item in _message(message, request, is_openai)]


def frame(request: ModelRequest, endpoint: Endpoint, messages: list[Wire]) -> Wire:
    """The body of a request with these messages, to which it adds cache points."""
    is_openai = transforms.is_openai(request.model, endpoint)
    options = codec.merged(_base(request, endpoint), request.model.options, request.options)
    messages = [*_system(request, is_openai, endpoint), *messages]
    if cache_points.takes_markers(request.model, endpoint):
        cache_points.mark_messages(messages, cache_points.marker(options))
    wire: Wire = {"model": request.model.api_id, "messages": messages}
    if request.tools:
        wire["tools"] = [_tool(tool, request.model, is_openai) for tool in request.tools]
        wire["tool_choice"] = request.tool_choice
    if request.output_max is not None:
        wire["max_completion_tokens" if is_openai else "max_tokens"] = request.output_max
    chosen = sampling.of(request)
    sampled: Wire = {
        "temperature": chosen.temperature,
        "top_p": chosen.top_p,
        "top_k": None if is_openai else chosen.top_k,
    }
    wire.update(codec.present(sampled))
    wire.update(codec.renamed(options, _OPTIONS, without=_OURS))
    wire["stream"] = True
    if endpoint.options.get("includeUsage") is not False and endpoint.provider_id != "mistral":
        wire["stream_options"] = {"include_usage": True}
    return wire


def _base(request: ModelRequest, endpoint: Endpoint) -> Wire:
    base = cache_key(request, endpoint)
    if transforms.is_openai(request.model, endpoint) or endpoint.provider_id in ("xai", "github-copilot"):
        base["store"] = False
    if endpoint.provider_id == "openrouter":
        base["usage"] = {"include": True}
    if request.model.reasoning and endpoint.provider_id in ("zai", "zhipuai", "zai-coding-plan", "zhipuai-coding-plan"):
        base["thinking"] = {"type": "enabled", "clear_thinking": False}
    return base


def _system(request: ModelRequest, is_openai: bool, endpoint: Endpoint) -> list[Wire]:
    """System messages. Many hosts accept only one, so parts are sent separately only where caching needs it."""
    parts = [text for text in request.system if text]
    role = "developer" if is_openai and request.model.reasoning else "system"
    if not is_openai and not cache_points.takes_markers(request.model, endpoint):
        parts = ["\n\n".join(parts)] if parts else []
    return [{"role": role, "content": text} for text in parts]


def _tool(tool: ToolDefinition, model: ModelInfo, is_openai: bool) -> Wire:
    schema = schemas.for_model(tool.schema, model)
    function: Wire = {"name": tool.name, "description": tool.description, "parameters": schema}
    return {"type": "function", "function": {**function, "strict": False} if is_openai else function}


def _message(message: ModelMessage, request: ModelRequest, is_openai: bool) -> list[Wire]:
    match message:
        case UserTurn(content=content):
            return [{"role": "user", "content": _content([_said(part) for part in content])}]
        case SystemTurn(text=text):
            return [{"role": "developer" if is_openai and request.model.reasoning else "system", "content": text}]
        case ToolTurn(results=results):
            return _results(results)
        case AssistantTurn():
            return _assistant(message, request.model.interleaved)


def _content(parts: list[Wire]) -> object:
    """The content of a message: a single text as a string, which every host accepts."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _said(part: Text | Media) -> Wire:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.mime.startswith("image/"):
        if part.data is not None and part.mime not in media.IMAGES:
            return _said(media.stand_in(part, f"the provider does not take images of type {part.mime}"))
        return {"type": "image_url", "image_url": {"url": media.data_url(part)}}
    if part.data is None:
        return _said(media.stand_in(part, "the provider takes only its content, not its address"))
    if part.mime == media.PDF:
        file: Wire = {"filename": part.filename or "file.pdf", "file_data": media.data_url(part)}
        return {"type": "file", "file": file}
    if part.mime in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": _AUDIO[part.mime]}}
    return _said(media.stand_in(part, f"the provider does not take files of type {part.mime}"))


def _results(results: tuple[Result, ...]) -> list[Wire]:
    """One message for each result. Tool messages accept only text, so media follow in a user message."""
    messages: list[Wire] = [
        {"role": "tool", "tool_call_id": result.call_id, "content": transforms.result_text(result)}
        for result in results
    ]
    files = [part for result in results for part in result.output if isinstance(part, Media)]
    if files:
        parts = [_said(Text(text=FROM_TOOL)), *(_said(part) for part in files)]
        messages.append({"role": "user", "content": parts})
    return messages


def _assistant(turn: AssistantTurn, field: str | None) -> list[Wire]:
    hosted = transforms.hosted_results(turn)
    texts: list[str] = []
    calls: list[Wire] = []
    sealed: Wire = {}
    is_plain_taken = True
    for part in turn.content:
        own = codec.own(part.metadata, "openai")
        extra = own.get("extraContent")
        match part:
            case Text(text=text):
                texts.append(text)
                sealed |= {"extra_content": extra} if extra else {}
                sealed |= {"annotations": own["annotations"]} if own.get("annotations") else {}
            case Call(executed=True) if own.get("isInAnswer") is True:
                is_plain_taken = False  # The host ran the tool inside its answer, and accepts only the answer's text.
            case Call(executed=True):
                texts.append(transforms.hosted_text(part, hosted.get(part.id)))
            case Call():
                function = {"name": part.name, "arguments": encode(part.input).decode()}
                call: Wire = {"id": part.id, "type": "function", "function": function}
                calls.append({**call, "extra_content": extra} if extra else call)
                message_extra = own.get("messageExtraContent")
                sealed |= {"extra_content": message_extra} if message_extra else {}
            case _:
                pass  # Reasoning is sent in its own field, a result with its call.
    text = "\n\n".join(texts) if hosted else "".join(texts)
    sealed |= _reasoning([part for part in turn.content if isinstance(part, Reasoning)], field)
    if not is_plain_taken or not (text or calls):
        sealed.pop(PLAIN, None)
    if not text and not calls and not sealed:
        return []  # The turn has only reasoning, and hosts refuse an empty message.
    message: Wire = {"role": "assistant", "content": text or (None if calls else ""), **sealed}
    return [{**message, "tool_calls": calls} if calls else message]


def _reasoning(parts: list[Reasoning], field: str | None) -> Wire:
    """Reasoning in the fields in which hosts accept it."""
    found = [codec.own(part.metadata, "openrouter").get("reasoning_details") for part in parts]
    details = [item for one in found for item in codec.objects(one)]
    wire: Wire = {"reasoning_details": details} if details else {}
    if field and field != "reasoning_details":
        wire[field] = "".join(part.text for part in parts)
    elif plain := "".join(part.text for part in parts if codec.own(part.metadata, "openai").get("field") == PLAIN):
        wire[PLAIN] = plain
    return wire
