"""Rows of opencode's database as opencode's JSON. Columns may be missing, and unknown ones are kept."""

from turnkeeper.interop.raw import RawObject, Unreadable, minted, parse
from turnkeeper.model.value import Json

JSON_COLUMNS = frozenset(
    {"data", "summary_diffs", "metadata", "revert", "permission", "model", "sandboxes", "commands", "prompt"}
)
"""Columns with JSON. They are selected as bytes, so that invalid UTF-8 in one row does not fail the query."""

_PLAIN = {
    "id": "id",
    "slug": "slug",
    "project_id": "projectID",
    "workspace_id": "workspaceID",
    "directory": "directory",
    "path": "path",
    "parent_id": "parentID",
    "title": "title",
    "agent": "agent",
    "version": "version",
}
_PARSED = {"model": "model", "metadata": "metadata", "revert": "revert", "permission": "permission"}
_SUMMARY = ("additions", "deletions", "files")
_TOKENS = ("tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write")
_TIMES = ("created", "updated", "compacting", "archived")
_MAPPED = frozenset(
    {
        *_PLAIN,
        *_PARSED,
        *_TOKENS,
        *(f"summary_{name}" for name in (*_SUMMARY, "diffs")),
        *(f"time_{name}" for name in _TIMES),
        "cost",
        "share_url",
    }
)


def session_info(row: RawObject) -> RawObject:
    """A row of ``session``."""
    info = {name: row[column] for column, name in _PLAIN.items() if row.get(column) is not None}
    info |= {name: _json(row[column]) for column, name in _PARSED.items() if row.get(column) is not None}
    summary = {name: row[f"summary_{name}"] for name in _SUMMARY if row.get(f"summary_{name}") is not None}
    if row.get("summary_diffs") is not None:
        summary["diffs"] = _json(row["summary_diffs"])
    if summary:
        info["summary"] = summary
    if row.get("cost") is not None:
        info["cost"] = row["cost"]
    if all(row.get(name) is not None for name in _TOKENS):
        given, output, reasoning, read, write = (row[name] for name in _TOKENS)
        cache = {"read": read, "write": write}
        info["tokens"] = {"input": given, "output": output, "reasoning": reasoning, "cache": cache}
    if row.get("share_url") is not None:
        info["share"] = {"url": row["share_url"]}
    info["time"] = {name: row[f"time_{name}"] for name in _TIMES if row.get(f"time_{name}") is not None}
    unknown = {name: value for name, value in row.items() if name not in _MAPPED and value is not None}
    return {**{name: _json(value) for name, value in unknown.items()}, **info}


def message_info(row: RawObject) -> RawObject:
    """A row of ``message`` or ``session_message``. Raises Unreadable."""
    info = _data(row)
    if not isinstance(info.get("time"), dict):
        info = {**info, "time": {"created": row.get("time_created")}}
    return {**info, "id": str(row["id"]), "sessionID": str(row["session_id"])}


def part_body(row: RawObject) -> RawObject:
    """A row of ``part``. Raises Unreadable."""
    place = {"id": str(row["id"]), "sessionID": str(row["session_id"]), "messageID": str(row["message_id"])}
    return {**_data(row), **place}


def project_info(row: RawObject) -> RawObject:
    """A row of ``project``."""
    icon = {name: row[f"icon_{name}"] for name in ("url", "color") if row.get(f"icon_{name}") is not None}
    if row.get("icon_url_override") is not None:
        icon["override"] = row["icon_url_override"]
    times = ("created", "updated", "initialized")
    info = {
        "id": str(row["id"]),
        "worktree": row.get("worktree") or "/",
        "vcs": row.get("vcs"),
        "name": row.get("name"),
        "icon": icon or None,
        "time": {name: row[f"time_{name}"] for name in times if row.get(f"time_{name}") is not None},
        "sandboxes": _json(row.get("sandboxes")) or [],
        "commands": _json(row.get("commands")),
    }
    return {name: value for name, value in info.items() if value is not None}


def arrival(part: RawObject, near: int) -> tuple[int, str]:
    """The sort key of a part in its message: the time in its id, which is near that of the message."""
    return minted(part["id"], near), part["id"]


def _data(row: RawObject) -> RawObject:
    data = parse(row["data"]) if row.get("data") is not None else None
    if not isinstance(data, dict):
        raise Unreadable("holds no JSON object")
    return data


def _json(value: Json) -> Json:
    """The parsed JSON of a column; its text if that is not JSON."""
    if not isinstance(value, bytes | str):
        return value
    try:
        return parse(value)
    except Unreadable:
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
