"""Content blocks of Claude Code, which are those of Anthropic's API, as parts."""

from typing import Final

from turnkeeper.interop import shapes
from turnkeeper.interop.fields import data_url, rest, rest_as, usage, word
from turnkeeper.interop.raw import RawMessage, RawObject
from turnkeeper.model.value import encode

PROGRAM: Final = "claude-code"
HEAD: Final = ("uuid", "parentUuid", "type", "message", "timestamp", "sessionId", "cwd", "isSidechain", "toolUseResult")
"""Fields of a line that become fields of a session, a message or a call."""


def count_usage(turn: RawMessage, spent: RawObject) -> None:
    """Take the usage of a line. Each line of a turn has the usage so far, so the largest counts."""
    before = turn.info["tokens"]
    found = usage(
        spent.get("input_tokens"),
        spent.get("output_tokens"),
        0,
        spent.get("cache_read_input_tokens"),
        spent.get("cache_creation_input_tokens"),
    )
    turn.info.setdefault(PROGRAM, {})["usage"] = spent
    cache = {kind: max(before["cache"][kind], found["cache"][kind]) for kind in ("read", "write")}
    kinds = ("input", "output", "reasoning")
    turn.info["tokens"] = {**{kind: max(before[kind], found[kind]) for kind in kinds}, "cache": cache}


def blocks_of(message: RawObject) -> list[RawObject]:
    """The content of a message as blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [one if isinstance(one, dict) else {"type": "value", "value": one} for one in content]
    return [] if content is None else [{"type": "value", "value": content}]


def foreign_blocks(message: RawObject) -> RawObject:
    """The blocks of a summary that are not texts."""
    others = [block for block in blocks_of(message) if block.get("type") != "text"]
    return {"blocks": others} if others else {}


def text_of(block: RawObject) -> str:
    """The text of a block; its JSON if it is another block."""
    text = block.get("text")
    return text if isinstance(text, str) else encode(block).decode()


def file_of(block: RawObject) -> RawObject | None:
    """The file part of an image or document; None for another block."""
    source = shapes.as_object(block.get("source"))
    if block.get("type") not in ("image", "document") or not isinstance(source.get("data", source.get("url")), str):
        return None
    if source.get("type") == "text":
        return None
    more = rest_as(PROGRAM, block, "type", "source")
    if "data" in source:
        return {**data_url(source.get("media_type"), source["data"]), **more}
    mime = "image/png" if block["type"] == "image" else "application/pdf"
    return {"type": "file", "mime": word(source.get("media_type")) or mime, "url": source["url"], **more}


def other_fields(body: RawObject) -> RawObject | None:
    """The fields of a line that neither the session nor the message has."""
    known = (*HEAD, "requestId", "version", "gitBranch", "userType", "isMeta", "isApiErrorMessage", "costUSD")
    return rest(body, *known) or None
