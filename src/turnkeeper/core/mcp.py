"""MCP: the names of a server's tools, what a result says to a model, and when a broken connection is tried again."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from turnkeeper.core.limits import MCP_BACKOFF_MAX_S, MCP_BACKOFF_S
from turnkeeper.model.value import Json, JsonObject, encode

NAME_MAX: Final = 64
"""Characters of a name that every provider takes."""
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9_-]")


def sanitised(name: str) -> str:
    """A name with only letters, digits, '_' and '-'."""
    return _UNUSUAL.sub("_", name)


def tool_name(server: str, tool: str) -> str:
    """What a model calls a tool of a server. One that is too long is cut, and told apart by a hash."""
    name = f"{sanitised(server)}_{sanitised(tool)}"
    return name if len(name) <= NAME_MAX else _hashed(name, f"{server}\0{tool}")


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Tools by what a model calls them; of two that would be called the same, the later one has a hash."""
    named: dict[str, str] = {}
    for tool in sorted(set(tools)):
        name = tool_name(server, tool)
        named[_hashed(name, f"{server}\0{tool}") if name in named else name] = tool
    return named


def _hashed(name: str, whole: str) -> str:
    return f"{name[: NAME_MAX - 9]}_{sha256(whole.encode()).hexdigest()[:8]}"


def backoff_s(failures: int) -> float:
    """How long a server that failed so often in a row is left alone."""
    return min(MCP_BACKOFF_MAX_S, MCP_BACKOFF_S * (1 << max(0, min(failures, 30) - 1)))


class McpFile(NamedTuple):
    """A file in a result."""

    mime: str
    url: str
    filename: str | None = None


class McpOutput(NamedTuple):
    """What a result of a call says."""

    text: str
    files: tuple[McpFile, ...] = ()
    is_error: bool = False


def output(result: JsonObject) -> McpOutput:
    """A result of ``tools/call`` for a model: texts joined by blank lines, images and other files beside them.

    Structured content is shown only if there is no other: servers repeat it as text.
    """
    content = result.get("content")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    files = tuple(file for block in blocks for file in _files(block))
    texts = [text for block in blocks if (text := _text(block))]
    structured = result.get("structuredContent")
    if not texts and structured is not None:
        texts = [encode(structured).decode()]
    said = "\n\n".join(texts) or ("" if files else "(no output)")
    return McpOutput(said, files, result.get("isError") is True)


def _text(block: JsonObject) -> str | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": str(uri)}:
            about = [str(one) for key in ("name", "mimeType", "description") if (one := block.get(key))]
            return f"[resource {uri}{': ' if about else ''}{', '.join(about)}]"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str()}}:
            return f"[the file {uri} is attached]"
        case {"type": "image" | "audio"}:
            return None
        case _:
            return f"[content of an unknown kind: {str(block.get('type'))[:80]}]"


def _files(block: JsonObject) -> Iterator[McpFile]:
    match block:
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(mime)}:
            yield McpFile(mime, f"data:{mime};base64,{data}")
        case {"type": "resource", "resource": {"blob": str(data), **about}}:
            mime = _word(about.get("mimeType")) or "application/octet-stream"
            yield McpFile(mime, f"data:{mime};base64,{data}", _word(about.get("uri")))


def _word(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
