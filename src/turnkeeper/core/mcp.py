"""MCP: the names of a server's tools, results in the form for a model, and delays before the next connection."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from turnkeeper.core.limits import (
    MCP_BACKOFF_MAX_S,
    MCP_BACKOFF_S,
    MCP_MESSAGES_BURST,
    MCP_MESSAGES_PER_S,
    MCP_RESOURCE_CHARS_MAX,
    MEDIA_BYTES_MAX,
)
from turnkeeper.model.mcp import McpResource
from turnkeeper.model.value import Json, JsonObject, encode

NAME_MAX: Final = 64
"""Characters of a name that every provider takes."""
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.DOTALL)
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9_-]")


def sanitised(name: str) -> str:
    """A name with only letters, digits, '_' and '-'."""
    return _UNUSUAL.sub("_", name)


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool for models. A name that is too long is cut, and gets a hash to stay unique."""
    name = f"{sanitised(server)}_{sanitised(tool)}"
    return name if len(name) <= NAME_MAX else _hashed(name, f"{server}\0{tool}")


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Tools by their names for models. Of two tools that would have the same name, the later one gets a hash."""
    named: dict[str, str] = {}
    for tool in sorted(set(tools)):
        name = tool_name(server, tool)
        named[_hashed(name, f"{server}\0{tool}") if name in named else name] = tool
    return named


def offer_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """Prompts by their names for users: ``server:name``, as in opencode."""
    named: dict[str, str] = {}
    for one in sorted(set(names)):
        name = f"{sanitised(server)}:{sanitised(one)}"
        is_long = len(name) > 2 * NAME_MAX
        named[_hashed(name, f"{server}\0{one}") if is_long or name in named else name] = one
    return named


def resource_names(server: str, resources: Iterable[McpResource]) -> dict[str, McpResource]:
    """Resources by their names for users. Of several with one name, the later ones have a hash of their address."""
    named: dict[str, McpResource] = {}
    for one in sorted(resources, key=lambda one: (one.name, one.uri)):
        [name] = offer_names(server, [one.name])
        named[_hashed(name, f"{server}\0{one.name}\0{one.uri}") if name in named else name] = one
    return named


def printable(text: str) -> str:
    """A text without escape sequences, unprintable characters and lone surrogates. Line breaks and tabs stay."""
    return "".join(one for one in _ESCAPE.sub("", text) if one.isprintable() or one in "\n\t").strip()


def _hashed(name: str, whole: str) -> str:
    return f"{name[: NAME_MAX - 9]}_{sha256(whole.encode()).hexdigest()[:8]}"


def backoff_s(failures: int) -> float:
    """Seconds before the next connection to a server that failed so often in a row."""
    return min(MCP_BACKOFF_MAX_S, MCP_BACKOFF_S * (1 << max(0, min(failures, 30) - 1)))


class MessageBudget:
    """Counts the messages of a server: many at once or some for long, but not many for long.

    The number in one second does not decide alone, because a busy machine reads only few messages in a second.
    """

    def __init__(self) -> None:
        self._left, self._at = float(MCP_MESSAGES_BURST), 0.0

    def exceeded(self, messages: float, now: float) -> str | None:
        """The reason why these messages are too many; None if they are not."""
        self._left = min(MCP_MESSAGES_BURST, self._left + (now - self._at) * MCP_MESSAGES_PER_S) - messages
        self._at = now
        return None if self._left >= 0 else f"it sent more than {MCP_MESSAGES_BURST} messages without a pause"


class McpFile(NamedTuple):
    """A file in a result."""

    mime: str
    url: str
    filename: str | None = None


class McpOutput(NamedTuple):
    """The content of a call's result."""

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


def prompt_output(result: JsonObject) -> McpOutput:
    """A result of ``prompts/get``: the texts of its messages, line by line, and files beside them."""
    messages = result.get("messages")
    contents = [one.get("content") for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    blocks = [one for one in contents if isinstance(one, dict)]
    texts = [text for block in blocks if (text := _text(block))]
    return McpOutput("\n".join(texts)[:MCP_RESOURCE_CHARS_MAX], tuple(file for one in blocks for file in _files(one)))


class ResourcePiece(NamedTuple):
    """A piece of a resource: a text, or a file with a text about it."""

    text: str
    file: McpFile | None = None


ATTACHED: Final = frozenset({"application/pdf", "image/gif", "image/jpeg", "image/png", "image/webp"})


def resource_pieces(result: JsonObject, mime: str, filename: str | None) -> tuple[ResourcePiece, ...]:
    """A result of ``resources/read`` for a model. Files that no model takes are only named."""
    contents = result.get("contents")
    blocks = [one for one in contents if isinstance(one, dict)] if isinstance(contents, list) else []
    return tuple(piece for block in blocks for piece in _pieces(block, mime, filename))


def _pieces(block: JsonObject, mime: str, filename: str | None) -> Iterator[ResourcePiece]:
    name = filename or _word(block.get("uri")) or "resource"
    match block:
        case {"text": str(text)} if text:
            cut = len(text) - MCP_RESOURCE_CHARS_MAX
            yield ResourcePiece(
                text if cut <= 0 else f"{text[:MCP_RESOURCE_CHARS_MAX]}\n[{cut} characters are left out]"
            )
        case {"blob": str(blob)}:
            kind = _word(block.get("mimeType")) or mime
            size = len(blob) * 3 // 4 - blob[-2:].count("=")
            if kind not in ATTACHED:
                yield ResourcePiece(f"[{name} is left out: files of the type {kind} cannot be attached]")
            elif size > MEDIA_BYTES_MAX:
                yield ResourcePiece(f"[{name} is left out: it has {size} bytes, which is too much]")
            else:
                file = McpFile(kind, f"data:{kind};base64,{blob}", name)
                yield ResourcePiece(f"[{name} is attached]", file)


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
