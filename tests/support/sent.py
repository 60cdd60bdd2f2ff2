"""What the messages of a request give back of an answer, as facts that can be compared. It knows only the wire."""

import json
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

Json = dict[str, Any]
Fact = tuple[object, ...]

_TYPOGRAPHIC = str.maketrans("\u2018\u2019\u201c\u201d\u2014\u2013\u2011\u00a0", "''\"\"--- ")
THINK = "<think>"
_MADE_UP = ("pyd_ai_", "auto_load_", "tool_", "call_0")


def facts(protocol: str, messages: list[Json]) -> list[Fact]:
    """What the first assistant's turn of these messages says, in order, and which calls are answered behind it."""
    return list(_FACTS[protocol](messages))


def plain(text: str) -> str:
    """A text as the recorder wrote it: without white space around it, with straight quotes and dashes."""
    return text.strip().translate(_TYPOGRAPHIC).replace("--", "-")


def _id(given: str | None) -> str | None:
    """An id of the provider's; None for one that a client made up."""
    last = (given or "").rpartition(":")[2]
    return None if not last or last.startswith(_MADE_UP) else last


def _input(given: object) -> str:
    return json.dumps(json.loads(given or "{}") if isinstance(given, str) else given, sort_keys=True)


def _of_turn(messages: list[Json], role: str) -> list[Json]:
    """The first messages of a role that follow each other."""
    begun = messages[next((i for i, one in enumerate(messages) if one.get("role") == role), len(messages)) :]
    return list(takewhile(lambda one: one.get("role") == role, begun))


def _anthropic(messages: list[Json]) -> Iterator[Fact]:
    for message in _of_turn(messages, "assistant"):
        blocks = message["content"]
        for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
            match block:
                case {"type": "text", "text": text}:
                    if text.strip():
                        yield "text", plain(text)
                case {"type": "thinking"}:
                    yield "thinking", plain(block["thinking"]), block.get("signature")
                case {"type": "redacted_thinking", "data": data}:
                    yield "redacted", data
                case {"input": given}:
                    yield block["type"], _id(block["id"]), block["name"], _input(given)
                case {"tool_use_id": answered}:
                    yield block["type"], answered
                case _:
                    yield (block["type"],)


def _chat(messages: list[Json]) -> Iterator[Fact]:
    for message in _of_turn(messages, "assistant"):
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content if part.get("type") == "text")
        thought = ""
        if content and content.startswith(THINK):
            # A client that has no field for reasoning writes it into the text.
            thought, _, content = content.removeprefix(THINK).partition("</think>")
        if content and content.strip():
            yield "text", plain(content)
        if thought:
            yield "reasoning", plain(thought)
        for name in ("reasoning_content", "reasoning"):
            if message.get(name):
                yield name, plain(message[name])
        for detail in message.get("reasoning_details") or ():
            yield "detail", detail.get("type"), detail.get("signature") or detail.get("data")
        for holder in (message, *(message.get("tool_calls") or ())):
            if signed := holder.get("extra_content"):
                yield "signature", json.dumps(signed, sort_keys=True)
        for call in message.get("tool_calls") or ():
            yield "call", _id(call.get("id")), call["function"]["name"], _input(call["function"]["arguments"])


def _responses(messages: list[Json]) -> Iterator[Fact]:
    said = takewhile(lambda one: one.get("role") not in ("user", "system", "developer"), messages)
    for item in said:
        match item.get("type") or "message":
            case "message":
                content = item["content"]
                texts = [{"text": content}] if isinstance(content, str) else content
                if text := plain("".join(part.get("text") or part.get("refusal") or "" for part in texts)):
                    yield "text", text
            case "reasoning":
                yield "reasoning", item.get("id")
                if item.get("encrypted_content"):
                    yield "encrypted", item["encrypted_content"]
                for part in (*(item.get("summary") or ()), *(item.get("content") or ())):
                    yield part["type"], plain(part["text"])
            case "function_call":
                yield "call", _id(item["call_id"]), item["name"], _input(item["arguments"])
                if item.get("namespace"):
                    yield "namespace", item["namespace"]
            case "function_call_output":
                yield "result", _id(item["call_id"])
            case other:
                yield other, item.get("id")


def _gemini(messages: list[Json]) -> Iterator[Fact]:
    for part in (part for content in _of_turn(messages, "model") for part in content.get("parts") or ()):
        call = part.get("functionCall") or part.get("function_call")
        signature = part.get("thoughtSignature") or part.get("thought_signature")
        if call:
            yield "call", _id(call.get("id")), call["name"], _input(call.get("args") or {})
        elif part.get("text", "").strip():
            yield "thought" if part.get("thought") else "text", plain(part["text"])
        elif "text" not in part:
            yield tuple(sorted(part.keys() - {"thoughtSignature", "thought"}))
        if signature:
            yield "signature", signature.replace("-", "+").replace("_", "/")


_FACTS: dict[str, Callable[[list[Json]], Iterator[Fact]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
