"""Sanitise an export: text becomes ``[redacted:<kind>:<id>]``, and the structure stays.

The kinds are those of opencode, and more for error texts, metadata and patterns, which opencode keeps. A field that no
table has is redacted.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from turnkeeper.interop.raw import RawObject
from turnkeeper.model.value import Json

Redaction: TypeAlias = str | Callable[[Json, str], Json] | None
"""The rule of a field: redact it under this kind, keep it (None), or call a function with the value and the id."""

Redactions: TypeAlias = Mapping[str, Redaction]

UNKNOWN = "unknown"


def sanitise_session(info: RawObject) -> RawObject:
    """A session without its texts."""
    return _fields(info, _SESSION, str(info.get("id")))


def sanitise_message(info: RawObject) -> RawObject:
    """A message without its texts."""
    return _fields(info, _MESSAGE, str(info.get("id")))


def sanitise_part(part: RawObject) -> RawObject:
    """A part without its texts."""
    return _fields(part, {**_BASE, **_PARTS.get(str(part.get("type")), {})}, str(part.get("id")))


def _fields(json: RawObject, rules: Redactions, name: str) -> RawObject:
    return {key: _field(value, rules.get(key, UNKNOWN), name) for key, value in json.items()}


def _field(value: Json, rule: Redaction, name: str) -> Json:
    if rule is None:
        return value
    return _redacted(value, rule, name) if isinstance(rule, str) else rule(value, name)


def _redacted(value: Json, kind: str, name: str) -> Json:
    match value:
        case None | bool():
            return value
        case str() if not value.strip():
            return value
        case dict():
            return {"redacted": f"{kind}:{name}"} if value else value
        case list():
            return [_redacted(item, kind, f"{name}-{index}") for index, item in enumerate(value)]
        case _:
            return f"[redacted:{kind}:{name}]"


def _inside(rules: Redactions) -> Callable[[Json, str], Json]:
    """The rule of an object whose fields have these rules."""
    return lambda value, name: (
        _fields(value, rules, name) if isinstance(value, dict) else _redacted(value, UNKNOWN, name)
    )


def _each(rules: Redactions, *, is_numbered: bool = False) -> Callable[[Json, str], Json]:
    """The rule of a list of objects whose fields have these rules; ``is_numbered`` uses the index as the id."""

    def sanitise(value: Json, name: str) -> Json:
        if not isinstance(value, list):
            return _redacted(value, UNKNOWN, name)
        inside = _inside(rules)
        return [inside(item, str(index) if is_numbered else name) for index, item in enumerate(value)]

    return sanitise


def _attachments(value: Json, name: str) -> Json:
    if not isinstance(value, list):
        return _redacted(value, UNKNOWN, name)
    return [sanitise_part(one) if isinstance(one, dict) else _redacted(one, UNKNOWN, name) for one in value]


def _kept(*names: str) -> Redactions:
    return dict.fromkeys(names)


def _diffs(owner: str) -> Callable[[Json, str], Json]:
    texts = dict.fromkeys(("patch", "before", "after"), f"{owner}-diff-patch")
    return _each({**_kept("additions", "deletions", "status"), "file": f"{owner}-diff-file", **texts}, is_numbered=True)


def _bool_or_summary(value: Json, name: str) -> Json:
    return value if isinstance(value, bool) else _MESSAGE_SUMMARY(value, name)


_MESSAGE_SUMMARY = _inside({"title": "summary-title", "body": "summary-body", "diffs": _diffs("message")})

_FAILURE = _inside(
    {
        "name": None,
        "data": _inside(
            {
                **_kept("statusCode", "isRetryable", "providerID", "retries", "ref"),
                "message": "error-message",
                "responseBody": "error-body",
                "responseHeaders": "error-body",
                "metadata": "error-body",
            }
        ),
    }
)

_SESSION: Redactions = {
    **_kept("id", "slug", "projectID", "workspaceID", "parentID", "agent", "model"),
    **_kept("version", "cost", "tokens", "time"),
    "title": "session-title",
    "directory": "session-directory",
    "path": "session-path",
    "metadata": "session-metadata",
    "share": _inside({"url": "session-share"}),
    "summary": _inside({**_kept("additions", "deletions", "files"), "diffs": _diffs("session")}),
    "permission": _each({**_kept("permission", "action"), "pattern": "permission-pattern"}),
    "revert": _inside(
        {**_kept("messageID", "partID"), "snapshot": "revert-snapshot", "diff": "revert-diff", "files": "revert-diff"}
    ),
}

_MESSAGE: Redactions = {
    **_kept("id", "sessionID", "role", "time", "agent", "mode", "model", "modelID", "providerID", "variant"),
    **_kept("parentID", "cost", "tokens", "finish", "tools"),
    "system": "system",
    "summary": _bool_or_summary,
    "format": _inside({**_kept("type", "retryCount"), "schema": "format-schema"}),
    "path": _inside({"cwd": "cwd", "root": "root"}),
    "error": _FAILURE,
    "structured": "structured",
    "updates": _each({"key": None, "text": "system"}),
}

_BASE: Redactions = _kept("id", "sessionID", "messageID", "type")

_FILE_SOURCE = _inside(
    {
        **_kept("type", "range", "kind"),
        "path": "file-path",
        "name": "file-symbol",
        "clientName": "file-client",
        "uri": "file-uri",
        "text": _inside({**_kept("start", "end"), "value": "file-text"}),
    }
)

_TOOL_STATE = _inside(
    {
        **_kept("status", "time"),
        "input": "tool-input",
        "raw": "tool-raw",
        "title": "tool-title",
        "metadata": "tool-state-metadata",
        "output": "tool-output",
        "error": "tool-error",
        "structured": "tool-output",
        "content": "tool-output",
        "outputPaths": "tool-output",
        "attachments": _attachments,
        "withheld": _attachments,
        "full": "tool-output",
    }
)

_PARTS: Mapping[str, Redactions] = {
    "text": {**_kept("synthetic", "ignored", "time"), "text": "text", "metadata": "text-metadata"},
    "reasoning": {"time": None, "text": "reasoning", "metadata": "reasoning-metadata"},
    "file": {"mime": None, "url": "file-url", "filename": "file-name", "source": _FILE_SOURCE},
    "tool": {
        **_kept("callID", "tool"),
        "state": _TOOL_STATE,
        "metadata": "tool-metadata",
        "provider": _inside({"executed": None, "metadata": "tool-metadata", "resultMetadata": "tool-metadata"}),
    },
    "step-start": {"snapshot": "snapshot"},
    "step-finish": {**_kept("reason", "cost", "tokens"), "snapshot": "snapshot"},
    "snapshot": {"snapshot": "snapshot"},
    "patch": {"hash": "patch", "files": "patch-file"},
    "agent": {"name": None, "source": _inside({**_kept("start", "end"), "value": "agent-source"})},
    "subtask": {
        **_kept("agent", "model"),
        "prompt": "subtask-prompt",
        "description": "subtask-description",
        "command": "subtask-command",
    },
    "retry": {**_kept("attempt", "time"), "error": _FAILURE},
    "compaction": _kept("auto", "overflow", "tail_start_id"),
}
