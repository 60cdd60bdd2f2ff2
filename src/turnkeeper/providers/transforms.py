"""Transforms: adapts a request to its model family, in every protocol. Applied in a fixed order.

Content that cannot be sent is replaced by a text that says so. Only empty texts and empty reasoning without a signature
are removed.
"""

import re
from collections.abc import Callable, Iterable
from operator import is_

from turnkeeper.core.lowering import NO_OUTPUT
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
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.value import encode
from turnkeeper.providers import codec, media
from turnkeeper.providers.endpoint import Endpoint

BRIDGE = "Done."
"""The assistant text between a tool result and a user message, for families that require one."""
RESULT_CHARS_MAX = 4000

_SEALED = {
    "anthropic": ("anthropic", frozenset({"signature", "redactedData"})),
    "openai-responses": ("openai", frozenset({"itemId"})),
}
"""Protocols that refuse a turn which ends with sealed reasoning: where its metadata are, and what seals it."""

_MISTRAL = re.compile(r"mistral|devstral|codestral|pixtral|mixtral")
_CLOSING_TAG = re.compile(r"</system-update", re.IGNORECASE)
_NATIVE_SYSTEM = re.compile(r"(?:\A|/)(?:gpt-|o[1-9]|chatgpt|codex)")
_NOT_PLAIN = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_ALPHANUMERIC = re.compile(r"[^a-zA-Z0-9]")


def prepare(request: ModelRequest, endpoint: Endpoint) -> ModelRequest:
    """The request adapted to its model's family."""
    model = request.model
    messages = [_readable(message, model) for message in request.messages]
    if not takes_system_turns(model, endpoint):
        messages = _without_system_turns(messages)
    if model.protocol == "anthropic":
        messages = [kept for message in messages if (kept := _without_blanks(message)) is not None]
    if model.protocol in _SEALED:
        messages = [kept for message in messages if (kept := _without_last_thoughts(message, model)) is not None]
    if "claude" in model.api_id.lower():
        messages = [_with_call_ids(message, lambda call_id: _NOT_PLAIN.sub("_", call_id)) for message in messages]
    if is_mistral(model):
        rename = _nine_characters()
        messages = _bridged([_with_call_ids(message, rename) for message in messages])
    elif "deepseek" in model.api_id.lower():
        messages = [_with_reasoning(message) for message in messages]
    return request.but(messages=tuple(messages))


def is_mistral(model: ModelInfo) -> bool:
    """Whether the model is of the Mistral family."""
    return model.provider_id == "mistral" or _MISTRAL.search(model.api_id.lower()) is not None


def is_openai(model: ModelInfo, endpoint: Endpoint) -> bool:
    """Whether the host is OpenAI or Azure, which require fields that compatible hosts may refuse."""
    return endpoint.provider_id in ("openai", "azure") or model.provider_id in ("openai", "azure")


def takes_system_turns(model: ModelInfo, endpoint: Endpoint) -> bool:
    """Whether the provider accepts system messages inside the conversation; the option ``midSystem`` overrides it."""
    said = endpoint.options.get("midSystem")
    if isinstance(said, bool):
        return said
    name = model.api_id.lower()
    if model.protocol == "anthropic":
        return "opus-4-8" in name or "opus-4.8" in name
    if model.protocol == "openai-responses":
        return True
    return model.protocol == "openai-chat" and (is_openai(model, endpoint) or _NATIVE_SYSTEM.search(name) is not None)


def system_update(text: str) -> str:
    """A Mid-Conversation System Message as a tagged user text. A closing tag inside the text is escaped."""
    harmless = _CLOSING_TAG.sub(r"<\\/system-update", text)
    return f"<system-update>\n{harmless}\n</system-update>"


def result_text(result: Result) -> str:
    """A tool result as text, for protocols that accept only text; media are named."""
    lines = [part.text if isinstance(part, Text) else f"[{media.named(part)} follows]" for part in result.output]
    return "\n".join(line for line in lines if line) or NO_OUTPUT


def hosted_text(call: Call, result: Result | None) -> str:
    """A hosted call and its result as text, for providers other than the one that ran it."""
    given = encode(call.input).decode()
    if result is None:
        return f"[{call.name} was run by a provider with {given}; its result is not known]"
    said = result_text(result) if result.output else encode(result.raw).decode()
    if len(said) > RESULT_CHARS_MAX:
        said = f"{said[:RESULT_CHARS_MAX]} [{len(said) - RESULT_CHARS_MAX} more characters]"
    return f"[{call.name} was run by a provider with {given}]\n{said}"


def hosted_results(turn: AssistantTurn) -> dict[str, Result]:
    """The results of hosted calls by call id."""
    return {part.call_id: part for part in turn.content if isinstance(part, Result)}


def _readable(message: ModelMessage, model: ModelInfo) -> ModelMessage:
    """The message with a text in place of each file that the model cannot read."""
    match message:
        case UserTurn(content=content) if any(isinstance(part, Media) for part in content):
            return message.but(content=_checked(content, model))
        case ToolTurn(results=results) if any(isinstance(p, Media) for result in results for p in result.output):
            return message.but(results=tuple(r.but(output=_checked(r.output, model)) for r in results))
        case _:
            return message


def _checked(content: Iterable[Text | Media], model: ModelInfo) -> tuple[Text | Media, ...]:
    return tuple(media.checked(part, model.modalities) if isinstance(part, Media) else part for part in content)


def _without_system_turns(messages: list[ModelMessage]) -> list[ModelMessage]:
    """The messages with each system turn appended to the user turn before it, or turned into a user turn."""
    changed: list[ModelMessage] = []
    for message in messages:
        if not isinstance(message, SystemTurn):
            changed.append(message)
            continue
        part = Text(text=system_update(message.text))
        before = changed[-1] if changed else None
        if isinstance(before, UserTurn):
            changed[-1] = before.but(content=(*before.content, part))
        else:
            changed.append(UserTurn(content=(part,)))
    return changed


def _without_blanks(message: ModelMessage) -> ModelMessage | None:
    match message:
        case UserTurn(content=content) | AssistantTurn(content=content):
            kept = tuple(part for part in content if not _is_blank(part))
            return message if len(kept) == len(content) else message.but(content=kept) if kept else None
        case SystemTurn(text=""):
            return None
        case _:
            return message


def _is_blank(part: Text | Media | Reasoning | Call | Result) -> bool:
    match part:
        case Text(text=""):
            return True
        case Reasoning(text=text, metadata=metadata):
            inner = (metadata or {}).get("anthropic")
            return not text.strip() and not (isinstance(inner, dict) and (inner.keys() & {"signature", "redactedData"}))
        case _:
            return False


def _without_last_thoughts(message: ModelMessage, model: ModelInfo) -> ModelMessage | None:
    """The message without the sealed reasoning at its end, as of an answer that has nothing else."""
    if not isinstance(message, AssistantTurn):
        return message
    content = message.content
    while content and _is_sealed(content[-1], model):
        content = content[:-1]
        while content and _is_only_space(content[-1]):  # It stood between two thoughts.
            content = content[:-1]
    return message if content is message.content else message.but(content=content) if content else None


def _is_sealed(part: object, model: ModelInfo) -> bool:
    namespace, seals = _SEALED[model.protocol]
    return isinstance(part, Reasoning) and any(codec.own(part.metadata, namespace).get(seal) for seal in seals)


def _is_only_space(part: object) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _with_call_ids(message: ModelMessage, rename: Callable[[str], str]) -> ModelMessage:
    """The message with renamed ids of calls and results; the message itself if no id changes."""
    match message:
        case AssistantTurn(content=content):
            parts = tuple(_renamed_part(part, rename) for part in content)
            return message if all(map(is_, parts, content)) else message.but(content=parts)
        case ToolTurn(results=results):
            changed = tuple(_renamed_result(result, rename) for result in results)
            return message if all(map(is_, changed, results)) else message.but(results=changed)
        case _:
            return message


def _renamed_part(
    part: Text | Reasoning | Call | Result, rename: Callable[[str], str]
) -> Text | Reasoning | Call | Result:
    match part:
        case Call(id=call_id):
            return part if (name := rename(call_id)) == call_id else part.but(id=name)
        case Result():
            return _renamed_result(part, rename)
        case _:
            return part


def _renamed_result(result: Result, rename: Callable[[str], str]) -> Result:
    return result if (name := rename(result.call_id)) == result.call_id else result.but(call_id=name)


def _nine_characters() -> Callable[[str], str]:
    """A function that makes ids of nine letters and digits; a count keeps ids with equal beginnings distinct."""
    known: dict[str, str] = {}
    taken: set[str] = set()

    def rename(call_id: str) -> str:
        if call_id not in known:
            base = _NOT_ALPHANUMERIC.sub("", call_id)[:9].ljust(9, "0")
            name, count = base, 1
            while name in taken:
                count += 1
                name = base[: 9 - len(str(count))] + str(count)
            known[call_id] = name
            taken.add(name)
        return known[call_id]

    return rename


def _bridged(messages: list[ModelMessage]) -> list[ModelMessage]:
    changed: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, UserTurn) and changed and isinstance(changed[-1], ToolTurn):
            changed.append(AssistantTurn(content=(Text(text=BRIDGE),)))
        changed.append(message)
    return changed


def _with_reasoning(message: ModelMessage) -> ModelMessage:
    if isinstance(message, AssistantTurn) and not any(isinstance(part, Reasoning) for part in message.content):
        return message.but(content=(*message.content, Reasoning(text="")))
    return message
