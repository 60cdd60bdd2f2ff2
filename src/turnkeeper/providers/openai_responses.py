"""OpenAI Responses: the wire protocol of OpenAI's reasoning models. By default the provider stores nothing."""

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
from turnkeeper.model.value import encode
from turnkeeper.providers import codec, media, openai_chat, sampling, schemas, transforms
from turnkeeper.providers.codec import Wire
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.openai_responses_reader import Reader

__all__ = ["BASE_URL", "MESSAGES", "Reader", "body", "conversation", "failure", "frame", "headers", "path"]

BASE_URL = "https://api.openai.com/v1"
MESSAGES = "input"
ENCRYPTED = "reasoning.encrypted_content"

_OPTIONS = {
    "parallelToolCalls": "parallel_tool_calls",
    "serviceTier": "service_tier",
    "promptCacheKey": "prompt_cache_key",
    "promptCacheRetention": "prompt_cache_retention",
    "safetyIdentifier": "safety_identifier",
    "maxToolCalls": "max_tool_calls",
    "previousResponseId": "previous_response_id",
}
_OURS = ("reasoningEffort", "reasoningSummary", "textVerbosity", "cacheTtl", "setCacheKey")


def path(request: ModelRequest) -> str:
    """The URL path, equal for every model."""
    return "/responses"


headers = openai_chat.headers
failure = codec.plain_failure


def body(request: ModelRequest, endpoint: Endpoint) -> Wire:
    """The whole body of a request."""
    return frame(request, endpoint, conversation(request, endpoint))


def conversation(request: ModelRequest, endpoint: Endpoint) -> list[Wire]:
    """The messages of a request as items of the wire format."""
    request = transforms.prepare(request, endpoint)
    stores = _options(request, endpoint).get("store") is True
    return [item for message in request.messages for item in _items(message, _role(request), stores)]


def frame(request: ModelRequest, endpoint: Endpoint, messages: list[Wire]) -> Wire:
    """The body of a request with these items."""
    options = _options(request, endpoint)
    system: list[Wire] = [{"role": _role(request), "content": text} for text in request.system if text]
    wire: Wire = {"model": request.model.api_id, "input": [*system, *messages]}
    if request.tools:
        wire["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": schemas.for_model(tool.schema, request.model),
                "strict": False,
            }
            for tool in request.tools
        ]
        wire["tool_choice"] = request.tool_choice
    if request.output_max is not None:
        wire["max_output_tokens"] = request.output_max
    chosen = sampling.of(request)
    wire.update(codec.present({"temperature": chosen.temperature, "top_p": chosen.top_p}))
    reasoning = {"effort": options.get("reasoningEffort"), "summary": options.get("reasoningSummary")}
    if any(reasoning.values()):
        wire["reasoning"] = {key: value for key, value in reasoning.items() if value}
    if options.get("textVerbosity"):
        wire["text"] = {"verbosity": options["textVerbosity"]}
    wire.update(codec.renamed(options, _OPTIONS, without=_OURS))
    wire["stream"] = True
    return wire


def _options(request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    return codec.merged(_base(request, endpoint), request.model.options, request.options)


def _role(request: ModelRequest) -> str:
    return "developer" if request.model.reasoning else "system"


def _base(request: ModelRequest, endpoint: Endpoint) -> Wire:
    """The default options, which the model's and the request's options override."""
    base: Wire = {"store": False, **openai_chat.cache_key(request, endpoint)}
    if request.model.reasoning:
        base["include"] = [ENCRYPTED]
    name = request.model.api_id.lower()
    if "gpt-5" in name and "chat" not in name and "pro" not in name:
        base |= {"reasoningEffort": "medium", "reasoningSummary": "auto"}
        if "gpt-5." in name and "codex" not in name and not endpoint.provider_id.startswith("azure"):
            base["textVerbosity"] = "low"
    return base


def _items(message: ModelMessage, role: str, stores: bool) -> list[Wire]:
    match message:
        case UserTurn(content=content):
            return [{"role": "user", "content": [_said(part) for part in content]}]
        case SystemTurn(text=text):
            return [{"role": role, "content": text}]
        case ToolTurn(results=results):
            return [_result(result) for result in results]
        case AssistantTurn():
            return _assistant(message, stores)


def _said(part: Text | Media) -> Wire:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if part.mime.startswith("image/"):
        if part.data is not None and part.mime not in media.IMAGES:
            return _said(media.stand_in(part, f"the provider does not take images of type {part.mime}"))
        return {"type": "input_image", "image_url": media.data_url(part), "detail": "auto"}
    if part.mime == media.PDF:
        if part.data is None:
            return {"type": "input_file", "file_url": part.url}
        return {"type": "input_file", "filename": part.filename or "file.pdf", "file_data": media.data_url(part)}
    return _said(media.stand_in(part, f"the provider does not take files of type {part.mime}"))


def _result(result: Result) -> Wire:
    output: object = transforms.result_text(result)
    if any(isinstance(part, Media) for part in result.output):
        output = [_said(part) for part in result.output if not isinstance(part, Text) or part.text]
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _assistant(turn: AssistantTurn, stores: bool) -> list[Wire]:
    hosted = transforms.hosted_results(turn)
    items: list[Wire] = []
    for part in turn.content:
        match part:
            case Text(text=text):
                if text:
                    phase = codec.own(part.metadata, "openai").get("phase")
                    said: Wire = {"role": "assistant", "content": text}
                    items.append({**said, "phase": phase} if phase else said)
            case Reasoning():
                _reasoning(part, items, stores)
            case Call(executed=True):
                items.append(_hosted(part, hosted.get(part.id), stores))
            case Call():
                arguments = encode(part.input).decode()
                call: Wire = {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": arguments}
                namespace = codec.own(part.metadata, "openai").get("namespace")
                items.append({**call, "namespace": namespace} if namespace else call)
            case Result():
                pass  # Sent with its call.
    # The protocol refuses a reasoning item with neither its encrypted form nor its text.
    return [item for item in items if item.get("type") != "reasoning" or item.keys() & {"encrypted_content", "content"}]


def _reasoning(part: Reasoning, items: list[Wire], stores: bool) -> None:
    """Add one item for all summaries of one reasoning, with its encrypted form or its whole text if there is one."""
    own = codec.own(part.metadata, "openai")
    item_id = own.get("itemId")
    if not isinstance(item_id, str):
        if part.text.strip():
            items.append({"role": "assistant", "content": part.text})
        return
    if stores:
        reference: Wire = {"type": "item_reference", "id": item_id}
        if reference not in items:
            items.append(reference)
        return
    item = next((known for known in items if known.get("type") == "reasoning" and known.get("id") == item_id), None)
    if item is None:
        item = {"type": "reasoning", "id": item_id, "summary": []}
        items.append(item)
    summary = item["summary"]
    if part.text and own.get("isReasoningText") is True:
        item["content"] = [{"type": "reasoning_text", "text": part.text}]
    elif part.text and isinstance(summary, list):
        summary.append({"type": "summary_text", "text": part.text})
    if isinstance(sealed := own.get("reasoningEncryptedContent"), str):
        item["encrypted_content"] = sealed
        item["id"] = own.get("lastItemId") or item_id


def _hosted(call: Call, result: Result | None, stores: bool) -> Wire:
    item = (result.raw or codec.own(result.metadata, "openai").get("item")) if result else None
    if not isinstance(item, dict) or not codec.text_of(item.get("type")):
        return {"role": "assistant", "content": transforms.hosted_text(call, result)}
    return {"type": "item_reference", "id": item.get("id")} if stores else dict(item)
