"""What an answer says, found by a straight walk over its JSON. Nothing of the project is used here."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Json = dict[str, Any]
Call = tuple[str | None, str, object]
UNREADABLE = "an input that is no JSON"
_THINK = re.compile(r"\s*<think>\s*(.*?)(?:</think>\s*(.*))?", re.DOTALL)


@dataclass
class Expected:
    """What must be found in the parts of an answer."""

    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    hosted: int = 0
    files: int = 0
    kept: list[str] = field(default_factory=list)
    """Signatures, encrypted reasoning, sources, and what stands in blocks of other kinds."""
    finish: str = "unknown"
    usage: tuple[int, int] | None = None
    """Tokens in and out, all kinds together."""
    is_error: bool = False


def expected(protocol: str, stream: bytes) -> Expected:
    """What a stream says."""
    found = Expected()
    _WALKS[protocol](found, list(_events(stream)))
    if found.finish in ("stop", "unknown") and found.calls and not found.is_error:
        found.finish = "tool-calls"
    return found


def _events(stream: bytes) -> Iterator[Json]:
    text = stream.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        data = "\n".join(line[5:] for line in block.split("\n") if line.startswith("data:"))
        try:
            event = json.loads(data)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _given(written: object) -> object:
    if isinstance(written, dict):
        return written
    try:
        return json.loads(str(written or "").strip() or "{}")
    except ValueError:
        return UNREADABLE


def _anthropic(found: Expected, events: list[Json]) -> None:
    blocks: dict[int, Json] = {}
    usage: Json = {}
    reason, begun = None, None
    for event in events:
        match event.get("type"):
            case "message_start":
                found.is_error = found.is_error or begun not in (None, event["message"].get("id"))
                begun = event["message"].get("id")
                usage |= {
                    key: value for key, value in (event["message"].get("usage") or {}).items() if value is not None
                }
            case "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "written": "", "cited": []}
            case "content_block_delta":
                _anthropic_delta(
                    blocks.setdefault(event["index"], {"type": "text", "written": "", "cited": []}), event["delta"]
                )
            case "message_delta":
                reason = event["delta"].get("stop_reason") or reason
                usage |= {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            case "error":
                found.is_error = True
    for block in blocks.values():
        _anthropic_block(found, block)
    reasons = {"max_tokens": "length", "tool_use": "tool-calls", "refusal": "content-filter"}
    found.finish = reasons.get(
        reason or "", "stop" if reason in ("end_turn", "stop_sequence", "pause_turn") else "unknown"
    )
    if usage:
        cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
        found.usage = (usage.get("input_tokens") or 0) + cached, usage.get("output_tokens") or 0


def _anthropic_delta(block: Json, delta: Json) -> None:
    for name in ("text", "thinking", "signature", "content"):
        if name in delta:
            block[name] = (block.get(name) or "") + delta[name]
    block["written"] += delta.get("partial_json", "")
    block["cited"] += [delta["citation"]] if "citation" in delta else []


def _anthropic_block(found: Expected, block: Json) -> None:
    kind = block["type"]
    if kind == "text":
        found.text += block.get("text") or ""
        found.kept += [one["url"] for one in block["cited"] if one.get("url")]
    elif kind == "thinking":
        found.reasoning += block.get("thinking") or ""
        found.kept += [block["signature"]] if block.get("signature") else []
    elif kind == "redacted_thinking":
        found.kept.append(block["data"])
    elif kind == "tool_use":
        found.calls.append((block["id"], block["name"], _given(block["written"] or block.get("input"))))
    elif kind in ("server_tool_use", "mcp_tool_use"):
        found.hosted += 1
    elif not kind.endswith("_tool_result"):
        found.hosted += 1
        found.kept += [block["content"]] if isinstance(block.get("content"), str) else []


def _chat(found: Expected, events: list[Json]) -> None:
    calls: list[Json] = []
    places: dict[int, Json] = {}
    content, reason, is_refused, ran = "", None, False, set()
    for event in events:
        found.is_error = found.is_error or bool(event.get("error"))
        counted = event.get("usage") or (event.get("x_groq") or {}).get("usage")
        found.kept += [one if isinstance(one, str) else one["url"] for one in event.get("citations") or ()]
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            counted = counted or choice.get("usage")
            delta = choice.get("delta") or {}
            content += _chat_content(found, delta.get("content")) + (delta.get("refusal") or "")
            is_refused = is_refused or bool(delta.get("refusal"))
            reason = choice.get("finish_reason") or reason
            found.reasoning += delta.get("reasoning_content") or delta.get("reasoning") or ""
            found.files += len(delta.get("images") or ())
            ran |= {one["index"] for one in delta.get("executed_tools") or ()}
            _chat_kept(found, delta)
            for call in delta.get("tool_calls") or ():
                _chat_call(found, calls, places, call)
        if counted:
            found.usage = _chat_usage(counted)
    found.hosted = len(ran)
    thought = _THINK.fullmatch(content)
    found.reasoning += thought[1] if thought else ""
    found.text = (thought[2] or "") if thought else content
    found.calls = [(call["id"], call["name"], _given(call["written"])) for call in calls]
    reasons = {"tool_calls": "tool-calls", "function_call": "tool-calls", "content_filter": "content-filter"}
    found.finish = reasons.get(reason or "", reason if reason in ("stop", "length", "error") else "unknown")
    found.finish = "content-filter" if is_refused else found.finish


def _chat_content(found: Expected, content: object) -> str:
    if not isinstance(content, list):
        return str(content or "")
    for part in content:
        thought = part.get("thinking") or ""
        found.reasoning += thought if isinstance(thought, str) else "".join(one.get("text") or "" for one in thought)
    return "".join(part.get("text") or "" for part in content)


def _chat_kept(found: Expected, delta: Json) -> None:
    for detail in delta.get("reasoning_details") or ():
        found.kept += [detail[key] for key in ("signature", "data") if detail.get(key)]
    for noted in delta.get("annotations") or ():
        found.kept.append(
            (noted.get("url_citation") or noted.get("file"))["url" if "url_citation" in noted else "hash"]
        )
    for ran in delta.get("executed_tools") or ():
        found.kept += [ran[key] for key in ("arguments", "output") if ran.get(key)]
    for holder in (delta, *(delta.get("tool_calls") or ())):
        signed = ((holder.get("extra_content") or {}).get("google") or {}).get("thought_signature")
        found.kept += [signed] if signed else []


def _chat_call(found: Expected, calls: list[Json], places: dict[int, Json], call: Json) -> None:
    written = call.get("function") or {}
    place = call.get("index")
    place = len(calls) - (0 if call.get("id") else 1) if place is None else place
    known = places.get(place)
    if known is None or (call.get("id") and written.get("name") and call["id"] != known["id"]):
        known = places[place] = {"id": call.get("id"), "name": written.get("name"), "written": ""}
        calls.append(known)
    given = written.get("arguments")
    known["written"] += given if isinstance(given, str) else json.dumps(given) if given else ""


def _chat_usage(counted: Json) -> tuple[int, int]:
    given, said = counted.get("prompt_tokens") or 0, counted.get("completion_tokens") or 0
    beyond = (counted.get("total_tokens") or 0) - given - said
    return given, said + (beyond if beyond > 0 and not counted.get("citation_tokens") else 0)


def _responses(found: Expected, events: list[Json]) -> None:
    items: dict[int, Json] = {}
    final, kind = None, ""
    for event in events:
        match event.get("type"):
            case "response.output_item.added" | "response.output_item.done":
                known = items.get(event["output_index"], {})
                items[event["output_index"]] = {**known, **event["item"]}
            case "response.output_text.annotation.added":
                noted = event["annotation"]
                found.kept.append(noted.get("url") or noted.get("filename") or noted["file_id"])
            case "response.completed" | "response.incomplete" | "response.failed" as ended:
                final, kind = event["response"], ended
                found.is_error = ended == "response.failed"
            case "error":
                found.is_error = True
    is_refused = False
    for item in items.values():
        is_refused = _responses_item(found, item) or is_refused
    if final is None:
        return
    found.finish = "content-filter" if is_refused else "stop"
    if kind == "response.incomplete":
        why = (final.get("incomplete_details") or {}).get("reason", "")
        found.finish = {"max_output_tokens": "length", "content_filter": "content-filter"}.get(why, "unknown")
    if counted := final.get("usage"):
        found.usage = counted.get("input_tokens") or 0, counted.get("output_tokens") or 0


def _responses_item(found: Expected, item: Json) -> bool:
    """Take in one item; whether it is a refusal."""
    match item["type"]:
        case "message":
            found.text += "".join(part.get("text") or part.get("refusal") or "" for part in item["content"])
            for noted in (one for part in item["content"] for one in part.get("annotations") or ()):
                found.kept.append(noted.get("url") or noted.get("filename") or noted["file_id"])
            return any(part["type"] == "refusal" for part in item["content"])
        case "reasoning":
            found.reasoning += "".join(part["text"] for part in item.get("summary") or ())
            found.reasoning += "".join(part["text"] for part in item.get("content") or ())
            found.kept += [item["encrypted_content"]] if item.get("encrypted_content") else []
        case "function_call":
            found.calls.append((item["call_id"], item["name"], _given(item.get("arguments"))))
        case _:
            found.hosted += 1
            found.kept += [item["id"]] if item.get("id") else []
    return False


_GEMINI_TEXTS = frozenset({"text", "thought", "thoughtSignature", "functionCall", "inlineData", "codeExecutionResult"})


def _gemini(found: Expected, events: list[Json]) -> None:
    reason = None
    for event in events:
        found.is_error = found.is_error or bool(event.get("error"))
        reason = "SAFETY" if (event.get("promptFeedback") or {}).get("blockReason") else reason
        if counted := event.get("usageMetadata"):
            given = (counted.get("promptTokenCount") or 0) + (counted.get("toolUsePromptTokenCount") or 0)
            found.usage = given, (counted.get("candidatesTokenCount") or 0) + (counted.get("thoughtsTokenCount") or 0)
        for candidate in event.get("candidates") or ():
            if not candidate.get("index"):
                for part in (candidate.get("content") or {}).get("parts") or ():
                    _gemini_part(found, part)
                _gemini_sources(found, candidate)
                reason = candidate.get("finishReason") or reason
    ours = {"STOP": "stop", 1: "stop", "MAX_TOKENS": "length", "OTHER": "unknown", None: "unknown"}
    broken = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")
    found.finish = "error" if reason in broken else ours.get(reason, "content-filter")


def _gemini_part(found: Expected, part: Json) -> None:
    found.kept += [part["thoughtSignature"]] if part.get("thoughtSignature") else []
    found.files += "inlineData" in part
    if part.get("thought"):
        found.reasoning += part.get("text") or ""
    else:
        found.text += part.get("text") or ""
    if "functionCall" in part:
        _gemini_call(found, part["functionCall"])
    found.hosted += bool(part.keys() & {"executableCode", "toolCall"})
    found.kept += [one["id"] for key in part.keys() - _GEMINI_TEXTS if "id" in (one := part[key])]


def _gemini_call(found: Expected, call: Json) -> None:
    """A call, or another piece of the last one: the place of each value is a path of names and numbers."""
    if "name" in call:
        found.calls.append((call.get("id"), call["name"], dict(call.get("args") or {})))
    for piece in call.get("partialArgs") or ():
        here: Any = found.calls[-1][2]
        names = re.findall(r"[^$.\[\]]+", piece["jsonPath"])
        path = [int(step) if step.isdecimal() else step for step in names]
        for step, following in pairwise(path):
            here = _gemini_place(here, step, [] if isinstance(following, int) else {})
        last = path[-1]
        before = _gemini_place(here, last, "")
        value = next(value for key, value in piece.items() if key.endswith("Value"))
        here[last] = before + value if isinstance(value, str) else value


def _gemini_place(holder: Any, step: Any, empty: object) -> Any:
    if isinstance(holder, dict):
        return holder.setdefault(step, empty)
    holder += [empty] if step == len(holder) else []
    return holder[step]


def _gemini_sources(found: Expected, candidate: Json) -> None:
    for chunk in (candidate.get("groundingMetadata") or {}).get("groundingChunks") or ():
        found.kept += [one for source in chunk.values() if (one := source.get("uri") or source.get("title"))]
    found.kept += [one["retrievedUrl"] for one in (candidate.get("urlContextMetadata") or {}).get("urlMetadata") or ()]


_WALKS: dict[str, Callable[[Expected, list[Json]], None]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
