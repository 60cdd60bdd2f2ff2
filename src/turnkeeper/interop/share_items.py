"""Share items: what a link shows of a message, before it is redacted. What is not named here is left out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from turnkeeper.interop.raw import RawObject, ReadOnlyObject
from turnkeeper.model.share import ShareItem

OUTPUT_CHARS_MAX: Final = 4_000
"""Characters of an output, unless whole outputs are shared: three quarters of them its beginning."""

_USAGE: Final[RawObject] = {
    "cost": 0,
    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
}
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def session_item(info: ReadOnlyObject, include: Sequence[ShareItem]) -> RawObject:
    """The session: its title and times, and its usage and counts if they are included. No directory, no rules."""
    kept = {key: info[key] for key in ("id", "slug", "title", "version", "time") if key in info}
    if "usage" in include:
        kept |= {key: info[key] for key in _USAGE if key in info}
    if "diffs" in include and isinstance(info.get("summary"), dict):
        kept["summary"] = {key: one for key, one in info["summary"].items() if key != "diffs"}
    return {**kept, "projectID": "global", "directory": "/"}


def message_item(info: ReadOnlyObject, include: Sequence[ShareItem]) -> RawObject:
    """A message without its parts: who, when, and by which model. No system prompt, no paths."""
    names = ("id", "sessionID", "role", "time", "parentID", "agent", "mode", "model", "modelID", "providerID", "finish")
    kept = {key: info[key] for key in names if key in info}
    if info.get("role") == "assistant":
        usage = {key: info.get(key, default) for key, default in _USAGE.items()} if "usage" in include else _USAGE
        kept |= {**usage, "path": {"cwd": "/", "root": "/"}}
        if isinstance(info.get("error"), dict):
            data = info["error"].get("data")
            message = data.get("message", "") if isinstance(data, dict) else ""
            kept["error"] = {"name": info["error"].get("name"), "data": {"message": message}}
    return kept


def part_item(part: ReadOnlyObject, include: Sequence[ShareItem]) -> RawObject | None:
    """A part; None if it is not shared."""
    shown = _PARTS.get(str(part.get("type")))
    kept = shown(part, include) if shown is not None else None
    return {**_base(part), **kept} if kept is not None else None


def bounded(part: RawObject, include: Sequence[ShareItem]) -> RawObject:
    """A part after redaction, its output cut to what is shared. Cut before, half a secret would not be known as one."""
    state = part.get("state")
    if "outputs" in include or not isinstance(state, dict):
        return part
    cut = {key: _cut(state[key]) for key in ("output", "error") if isinstance(state.get(key), str)}
    return {**part, "state": {**state, **cut}}


def _cut(text: str) -> str:
    if len(text) <= OUTPUT_CHARS_MAX:
        return text
    first, last = text[: OUTPUT_CHARS_MAX * 3 // 4], text[-(OUTPUT_CHARS_MAX // 4) :]
    return f"{first}\n\n[{len(text) - len(first) - len(last):,} characters are not shared]\n\n{last}"


def _base(part: ReadOnlyObject) -> RawObject:
    return {key: part[key] for key in ("id", "sessionID", "messageID", "type") if key in part}


def _text(part: ReadOnlyObject, include: Sequence[ShareItem]) -> RawObject | None:
    if part.get("synthetic") or part.get("ignored") or "messages" not in include:
        return None
    return {"text": _complete(part), **{key: part[key] for key in ("time",) if key in part}}


def _reasoning(part: ReadOnlyObject, include: Sequence[ShareItem]) -> RawObject | None:
    return {"text": _complete(part), "time": part.get("time")} if "reasoning" in include else None


def _complete(part: ReadOnlyObject) -> str:
    """The text. While it is still being written, whole lines only: half a secret is not recognised."""
    text, time = str(part.get("text", "")), part.get("time")
    is_open = isinstance(time, dict) and "end" not in time
    return text[: text.rfind("\n") + 1] if is_open else text


def _tool(part: ReadOnlyObject, include: Sequence[ShareItem]) -> RawObject | None:
    state = part.get("state")
    if "tools" not in include or not isinstance(state, dict):
        return None
    kept: RawObject = {
        key: state[key] for key in ("status", "input", "output", "title", "error", "time") if key in state
    }
    if kept.get("status") == "pending":
        kept |= {"input": {}, "raw": ""}
    metadata = state.get("metadata")
    changed = metadata.get("diff") if isinstance(metadata, dict) and "diffs" in include else None
    kept["metadata"] = {"diff": changed} if isinstance(changed, str) else {}
    if isinstance(state.get("attachments"), list) and "files" in include:
        files = (part_item(one, include) for one in state["attachments"] if isinstance(one, dict))
        kept["attachments"] = [one for one in files if one is not None]
    return {"callID": part.get("callID"), "tool": part.get("tool"), "state": kept}


def _file(part: ReadOnlyObject, include: Sequence[ShareItem]) -> RawObject | None:
    kept = {key: part[key] for key in ("mime", "filename") if key in part}
    is_shared = "files" in include and part.get("mime") in _IMAGES and str(part.get("url", "")).startswith("data:")
    return {**kept, "url": part["url"] if is_shared else ""}


def _fields(*names: str) -> Callable[[ReadOnlyObject, Sequence[ShareItem]], RawObject | None]:
    return lambda part, include: {key: part[key] for key in names if key in part}


_PARTS: Final[Mapping[str, Callable[[ReadOnlyObject, Sequence[ShareItem]], RawObject | None]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "file": _file,
    "agent": _fields("name"),
    "subtask": _fields("prompt", "description", "agent"),
    "compaction": _fields("auto"),
}
