"""Old and incomplete shapes brought to today's: tokens, diffs, failures, tool states. JSON in, JSON out."""

import difflib
from collections.abc import Callable
from typing import TypeGuard

from turnkeeper.interop.raw import RawObject
from turnkeeper.model.value import Json

FAILURES = frozenset(
    {
        "MessageAbortedError",
        "ProviderAuthError",
        "APIError",
        "ContextOverflowError",
        "MessageOutputLengthError",
        "StructuredOutputError",
        "ContentFilterError",
        "UnknownError",
    }
)
"""Names of failures that we know (model/failure.py)."""

PATCH_LINES_MAX = 4000
"""Files longer than this together are shown as replaced whole: finding the smallest patch takes time in the square."""


def as_object(value: Json) -> RawObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def is_number(value: Json) -> TypeGuard[int | float]:
    """Whether JSON would call it a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def created(info: RawObject) -> int:
    """When a message came to be; 0 if it does not say."""
    time = as_object(info.get("time")).get("created")
    return int(time) if is_number(time) else 0


def age(info: RawObject) -> tuple[int, str]:
    """Where a message stands among others: by its time. The id only tells apart what came at the same moment."""
    return created(info), str(info.get("id"))


def tokens(raw: Json) -> RawObject:
    """Usage with every kind there, zero where the source has no number."""
    given = as_object(raw)
    cache = as_object(given.get("cache"))
    counted = {kind: _number(given.get(kind)) for kind in ("input", "output", "reasoning")}
    kept = {**cache, "read": _number(cache.get("read")), "write": _number(cache.get("write"))}
    return {**given, **counted, "cache": kept}


def diffs(raw: list[Json]) -> list[Json]:
    """File diffs, each with counts and a patch: old ones hold the file before and after instead."""
    return [_diff(one) if isinstance(one, dict) else one for one in raw]


def failure(raw: RawObject) -> tuple[RawObject, bool]:
    """What went wrong, under a name that we know; and whether that took more than filling gaps."""
    data = as_object(raw.get("data"))
    name, message = raw.get("name"), data.get("message")
    said = message if isinstance(message, str) else ""
    if not isinstance(name, str) or name not in FAILURES:
        return {"name": "UnknownError", "data": {"message": f"{name or raw.get('type')}: {said or raw}"}}, True
    if name == "MessageOutputLengthError":
        return {**raw, "data": data}, False
    filled = {**data, "message": said}
    if name == "APIError":
        filled["isRetryable"] = data.get("isRetryable") is True
    if name == "ProviderAuthError":
        filled.setdefault("providerID", "unknown")
    if name == "StructuredOutputError":
        filled.setdefault("retries", 0)
    return {**raw, "data": filled}, False


def tool_state(raw: RawObject, attachment: Callable[[int, Json], Json]) -> RawObject:
    """A tool call's state with the fields that every state of its kind has today."""
    state = dict(raw)
    if not isinstance(state.get("input"), dict):
        state.setdefault("input", {})
        state["input"] = {} if state["input"] is None else state["input"]
    match state.get("status"):
        case "pending":
            state["raw"] = _text(state.get("raw"))
        case "completed":
            state["title"] = _text(state.get("title"))
            state["metadata"] = {} if state.get("metadata") is None else state["metadata"]
    attachments = state.get("attachments")
    if isinstance(attachments, list):
        state["attachments"] = [attachment(nth, one) for nth, one in enumerate(attachments)]
    return state


def _diff(raw: RawObject) -> RawObject:
    diff = dict(raw)
    before, after = diff.get("before"), diff.get("after")
    if isinstance(before, str) and isinstance(after, str) and not isinstance(diff.get("patch"), str):
        diff["patch"] = _patch(str(diff.get("file", "")), before, after)
    diff["additions"], diff["deletions"] = _number(diff.get("additions")), _number(diff.get("deletions"))
    return diff


def _patch(file: str, before: str, after: str) -> str:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if before == after:
        return ""
    if len(old) + len(new) > PATCH_LINES_MAX:
        lines = [f"@@ -1,{len(old)} +1,{len(new)} @@\n", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
        lines = [f"--- {file}\n", f"+++ {file}\n", *lines]
    else:
        lines = list(difflib.unified_diff(old, new, file, file))
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(ended)


def _number(value: Json) -> int | float:
    return value if is_number(value) else 0


def _text(value: Json) -> Json:
    return "" if value is None else value
