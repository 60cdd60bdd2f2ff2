"""Cache points: marks up to four places in a request whose prefix the provider should cache."""

from collections.abc import Iterator

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec
from turnkeeper.providers.endpoint import Endpoint

BUDGET = 4
LONG_S = 3600
"""A ``cacheTtl`` of at least this many seconds requests the one-hour cache."""

_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


def marker(options: JsonObject) -> dict[str, object]:
    """The wire format of a cache point. ``cacheTtl`` is in seconds."""
    ttl = options.get("cacheTtl")
    if isinstance(ttl, int | float) and ttl >= LONG_S:
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}


def takes_markers(model: ModelInfo, endpoint: Endpoint) -> bool:
    """Whether a host of the chat protocol supports cache points: those in front of Anthropic or Alibaba models."""
    names = f"{endpoint.provider_id} {model.provider_id} {model.api_id}".lower()
    return "vercel" not in names and any(word in names for word in ("anthropic", "claude", "alibaba"))


def mark_anthropic(
    system: list[dict[str, object]], messages: list[dict[str, object]], tools: list[dict[str, object]], mark: JsonObject
) -> None:
    """Mark the last tool, the last system part, the latest user message, and the end of the conversation.

    The end is marked because a turn with many tool calls adds messages after the user message.
    """
    blocks = [part for part in (_last(tools), _last(system)) if part is not None]
    users = [message for message in messages if message["role"] == "user"]
    said = next((block for message in reversed(users) if (block := _latest_said(message)) is not None), None)
    blocks += [block for block in (said, _last_block(messages[-1]) if messages else None) if block is not None]
    _mark(blocks, mark)


def mark_messages(messages: list[dict[str, object]], mark: JsonObject) -> None:
    """Mark the last content part of the first two system messages and of the last two other messages."""
    system = [m for m in messages if m["role"] in ("system", "developer")][:2]
    others = [m for m in messages if m["role"] not in ("system", "developer")][-2:]
    _mark([block for message in (*system, *others) if (block := _last_block(message)) is not None], mark)


def markable(messages: list[dict[str, object]]) -> list[int]:
    """The indexes of the messages of a conversation's prefix that later requests may mark."""
    system = [index for index, one in enumerate(messages) if one.get("role") in ("system", "developer")]
    others = [index for index, one in enumerate(messages) if one.get("role") not in ("system", "developer")]
    said = [index for index, one in enumerate(messages) if one.get("role") == "user" and _has_prompt(one)]
    return sorted({*system[:2], *others[-2:], *said[-1:]})


def _has_prompt(message: dict[str, object]) -> bool:
    return any(block.get("type") != "tool_result" for block in codec.objects(message.get("content")))


def _mark(blocks: list[dict[str, object]], mark: JsonObject) -> None:
    fresh: list[dict[str, object]] = []
    for block in blocks:
        if not any(block is known for known in fresh):
            fresh.append(block)
    assert len(fresh) <= BUDGET, "a provider refuses a request with more marks"
    for block in fresh:
        block["cache_control"] = dict(mark)


def _latest_said(message: dict[str, object]) -> dict[str, object] | None:
    """The last text of a user message, else its last part; None for a message with only tool results."""
    said = [block for block in _blocks(message) if block.get("type") != "tool_result"]
    texts = [block for block in said if block.get("type") == "text"]
    return _last(texts) or _last(said)


def _last_block(message: dict[str, object]) -> dict[str, object] | None:
    return _last([block for block in _blocks(message) if block.get("type") not in _UNMARKABLE])


def _blocks(message: dict[str, object]) -> Iterator[dict[str, object]]:
    content = message.get("content")
    if isinstance(content, str) and content:
        content = message["content"] = [{"type": "text", "text": content}]
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def _last(blocks: list[dict[str, object]]) -> dict[str, object] | None:
    return blocks[-1] if blocks else None
