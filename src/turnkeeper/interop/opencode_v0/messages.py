"""Convert messages of opencode's oldest trees to the format that followed.

The format changed three times: all fields in ``metadata`` (p1), parts inside the message (p2), assistants without a
mode (p3). A message may have any of these formats, and its fields show which.
"""

import hashlib
from typing import Any, Final

from turnkeeper.interop.raw import RawObject

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ASSISTANT_KEYS: Final = ("system", "modelID", "providerID", "path", "summary", "cost", "tokens")


class UnknownShape(ValueError):
    """A message in an unknown format."""


def current(message: RawObject) -> tuple[RawObject, list[RawObject], int]:
    """A message without its parts, its parts, and how many parts the new format cannot have. Raises UnknownShape.

    The ids of the parts depend only on the message.
    """
    held = message.get("parts")
    if isinstance(message.get("metadata"), dict):
        message, parts = _without_metadata(message)
    else:
        parts = held if isinstance(held, list) else []
    info = {key: value for key, value in message.items() if key != "parts"}
    for key in ("id", "sessionID", "role"):
        if not isinstance(info.get(key), str):
            raise UnknownShape(f"it has no {key}")
    if info["role"] == "assistant" and not info.get("mode"):
        info["mode"] = "build"
    dropped = len(held) - len(parts) if isinstance(held, list) else 0
    return info, [_with_ids(info, number, part) for number, part in enumerate(parts)], dropped


def worktree(message: RawObject) -> str | None:
    """The worktree of a message, in the old or the current format."""
    for place in (("path", "root"), ("metadata", "assistant", "path", "root")):
        found: Any = message
        for key in place:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            return found
    return None


def _without_metadata(message: RawObject) -> tuple[RawObject, list[RawObject]]:
    metadata = message["metadata"]
    times = metadata.get("time")
    if not isinstance(times, dict) or "created" not in times:
        raise UnknownShape("its metadata does not say when it was created")
    info: RawObject = {
        "id": message.get("id"),
        "sessionID": metadata.get("sessionID"),
        "role": message.get("role"),
        "time": {"created": times["created"]},
    }
    if info["role"] == "assistant":
        if "completed" in times:
            info["time"]["completed"] = times["completed"]
        facts = metadata.get("assistant") or {}
        info |= {key: facts[key] for key in _ASSISTANT_KEYS if key in facts}
        if "error" in metadata:
            info["error"] = metadata["error"]
    elif info["role"] != "user":
        raise UnknownShape(f"its role is {info['role']!r}")
    parts = [_part(part, metadata) for part in message.get("parts") or []]
    return info, [part for part in parts if part is not None]


def _part(part: RawObject, metadata: RawObject) -> RawObject | None:
    match part:
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "step-start"}:
            return {"type": "step-start"}
        case {"type": "file", "url": url, "mediaType": mime}:
            name = {"filename": part["filename"]} if "filename" in part else {}
            return {"type": "file", "mime": mime, **name, "url": url}
        case {"type": "tool-invocation"}:
            # opencode wrote the call as a nested object; its documentation shows flat fields.
            return _call(part.get("toolInvocation", part), metadata)
        case {"type": "reasoning" | "source-url"}:
            return None
    raise UnknownShape(f"it holds a part of an unknown shape: {part!r:.80}")


def _call(invocation: RawObject, metadata: RawObject) -> RawObject:
    match invocation:
        case {"toolCallId": str(call), "toolName": tool}:
            return {"type": "tool", "callID": call, "tool": tool, "state": _state(call, invocation, metadata)}
    raise UnknownShape(f"it holds a tool call of an unknown shape: {invocation!r:.80}")


def _state(call: str, invocation: RawObject, metadata: RawObject) -> RawObject:
    created = metadata["time"]["created"]
    arguments = invocation.get("args")
    match invocation.get("state"):
        case "partial-call":
            return {"status": "pending"}
        case "call":
            return {"status": "running", "input": arguments, "time": {"start": created}}
        case "result":
            facts = dict((metadata.get("tool") or {}).get(call) or {})
            ended = metadata["time"].get("completed", created)
            return {
                "status": "completed",
                "input": arguments,
                "output": invocation.get("result"),
                "title": facts.pop("title", ""),
                "time": facts.pop("time", {"start": created, "end": ended}),
                "metadata": facts,
            }
    raise UnknownShape(f"tool call {call!r} is in the state {invocation.get('state')!r}")


def _with_ids(info: RawObject, number: int, part: RawObject) -> RawObject:
    call = {"callID": part.get("callID") or part.get("id")} if part.get("type") == "tool" else {}
    owner = {"id": _part_id(info, number), "sessionID": info["sessionID"], "messageID": info["id"]}
    return {**part, **owner, **call}


def _part_id(info: RawObject, number: int) -> str:
    """An ascending id with the time of the message. It is derived, because a killed migration runs again."""
    times = info.get("time")
    created = times.get("created") if isinstance(times, dict) else None
    moment = int(created) if isinstance(created, int | float) else 0
    seed = int.from_bytes(hashlib.sha256(f"{info['id']}/{number}".encode()).digest())
    letters = "".join(_BASE62[seed // 62**place % 62] for place in range(14))
    return f"prt_{(moment * 0x1000 + number + 1) & 0xFFFF_FFFF_FFFF:012x}{letters}"
