"""The stream of a recording: as it was recorded, or made of a whole answer the way its provider would stream it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from recorded import Recording

PIECE = 50
Json = dict[str, Any]


def stream_of(recording: Recording) -> bytes | None:
    """The bytes of a stream; None for a whole answer that is none (a list of models, say)."""
    if recording.kind == "sse":
        return recording.body()
    whole = json.loads(recording.body())
    events = list(_STREAMS[recording.protocol](whole))
    return (
        "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events).encode()
        or None
    )


def _pieces(text: str | None) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)] if text else []


def _gemini(whole: Any) -> Iterator[Json]:
    yield from whole if isinstance(whole, list) else [whole]


def _anthropic(whole: Json) -> Iterator[Json]:
    if whole.get("type") != "message":
        return
    yield {"type": "message_start", "message": {**whole, "content": []}}
    for index, block in enumerate(whole["content"]):
        emptied, deltas = _block(block)
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **emptied}}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": whole.get("usage")}
    yield {"type": "message_stop"}


def _block(block: Json) -> tuple[Json, list[Json]]:
    """What of a block is empty when it begins, and the deltas that fill it."""
    match block["type"]:
        case "text":
            cited = [{"type": "citations_delta", "citation": one} for one in block.get("citations") or ()]
            said = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
            return {"text": "", "citations": None}, [*cited, *said]
        case "thinking":
            thought = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            return {"thinking": "", "signature": ""}, [
                *thought,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            written = _pieces(json.dumps(block["input"]))
            return {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in written]
        case _:
            return {}, []


def _chat(whole: Json) -> Iterator[Json | str]:
    if not whole.get("choices"):
        return
    choice = whole["choices"][0]
    message = dict(choice.get("message") or {})
    content, calls = message.pop("content", None), message.pop("tool_calls", None)
    deltas: list[Json] = []
    for field in ("reasoning", "reasoning_content"):
        deltas += [{field: piece} for piece in _pieces(message.pop(field, None))]
    deltas += [{"content": piece} for piece in _pieces(content)] if isinstance(content, str) else [{"content": content}]
    for index, call in enumerate(calls or ()):
        written = call.get("function") or {}
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**written, "arguments": ""}}]})
        given = written.get("arguments")
        for piece in _pieces(given if given is None or isinstance(given, str) else json.dumps(given)):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    for delta in (message, *deltas):
        yield {"choices": [{"index": 0, "delta": delta}]}
    found: Json = {key: whole[key] for key in ("citations", "search_results") if key in whole}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}], **found}
    yield {"choices": [], "usage": whole.get("usage")}
    yield "[DONE]"


def _responses(whole: Json) -> Iterator[Json]:
    if whole.get("object") != "response" or whole.get("status") not in ("completed", "incomplete", "failed"):
        return
    for place, item in enumerate(whole["output"]):
        at = {"output_index": place, "item_id": item.get("id") or f"item_{place}"}
        emptied = {"content": [], "summary": [], "arguments": ""}
        yield {
            "type": "response.output_item.added",
            **at,
            "item": {**item, **{k: v for k, v in emptied.items() if k in item}},
        }
        for kind, text, where in _texts(item):
            for piece in _pieces(text):
                yield {"type": f"response.{kind}.delta", **at, **where, "delta": piece}
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _texts(item: Json) -> Iterator[tuple[str, str | None, Json]]:
    """The texts of an item: the kind of their events, the text, and where in the item it is."""
    is_message = item["type"] == "message"
    for index, part in enumerate(item.get("summary") or ()):
        yield "reasoning_summary_text", part["text"], {"summary_index": index}
    for index, part in enumerate(item.get("content") or () if item["type"] in ("message", "reasoning") else ()):
        kind = "refusal" if "refusal" in part else "output_text" if is_message else "reasoning_text"
        yield kind, part.get("text") or part.get("refusal"), {"content_index": index}
    if item["type"] == "function_call":
        yield "function_call_arguments", item["arguments"], {}


_STREAMS: dict[str, Callable[[Any], Iterator[Json | str]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
