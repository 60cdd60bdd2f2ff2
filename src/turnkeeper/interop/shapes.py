"""Convert old and incomplete JSON to the current format: tokens, diffs, failures, tool states."""

import difflib
from collections.abc import Callable
from typing import TypeGuard, get_args

from turnkeeper.interop.raw import RawObject
from turnkeeper.model.failure import Failure
from turnkeeper.model.value import Json

FAILURES = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Failure))
"""The names of the failures of the model."""

TIME_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999."""

PATCH_LINES_MAX = 4000
"""Longer files are shown as replaced completely, because the time to compute a small patch grows quadratically."""


def as_object(value: Json) -> RawObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def is_number(value: Json) -> TypeGuard[int | float]:
    """Whether a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def created(info: RawObject) -> int:
    """The time at which a message was created; 0 if it has none."""
    time = as_object(info.get("time")).get("created")
    return int(time) if is_number(time) else 0


def age(info: RawObject) -> tuple[int, str]:
    """The sort key of a message: its time, then its id."""
    return created(info), str(info.get("id"))


def tokens(raw: Json) -> RawObject:
    """Token counts with every kind, 0 where the source has no number."""
    given = as_object(raw)
    cache = as_object(given.get("cache"))
    counted = {kind: _number(given.get(kind)) for kind in ("input", "output", "reasoning")}
    kept = {**cache, "read": _number(cache.get("read")), "write": _number(cache.get("write"))}
    return {**given, **counted, "cache": kept}


def diffs(raw: list[Json]) -> list[Json]:
    """File diffs with counts and patches. Old ones have the texts before and after instead of a patch."""
    return [_diff(one) if isinstance(one, dict) else one for one in raw]


def failure(raw: RawObject) -> tuple[RawObject, bool]:
    """A failure with a name of the model, and whether its name was replaced."""
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
    """The state of a tool call with all fields of the current format."""
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
