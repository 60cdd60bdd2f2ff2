"""Anthropic Messages: parses the events of an answer into stream events."""

import msgspec

from turnkeeper.model.stream import Usage
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec
from turnkeeper.providers.answer import MalformedStream
from turnkeeper.providers.codec import Wire


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: dict[str, object] | None = None
    server_tool_use: dict[str, object] | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    usage: _Usage | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    content: str | None = None
    citation: object = None
    stop_reason: str | None = None
    stop_details: object = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: dict[str, object] | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: object = None


_decoder = msgspec.json.Decoder(_Event)

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class _Block:
    """An open content block."""

    def __init__(self, kind: str, name: str, given: JsonObject | None = None) -> None:
        self.kind, self.name, self.given = kind, name, given
        self.signature = ""
        self.citations: list[object] = []
        self.content = ""


class Reader(codec.Reader):
    """Parses the events of one message."""

    def __init__(self, provider_id: str = "") -> None:
        super().__init__(provider_id)
        self._blocks: dict[int, _Block] = {}
        self._closed: set[int] = set()
        self._tools: dict[str, str] = {}
        self._usage = _Usage()
        self._begun: str | None = None
        self._reason: str | None = None
        self._details: object = None

    def read(self, name: bytes, data: bytes) -> None:
        """Parse one event."""
        event = codec.decode(_decoder, data)
        kind = event.type
        if kind == "content_block_delta":
            self._delta(event.index, event.delta)
        elif kind == "content_block_start":
            self._open(event.index, event.content_block or {})
        elif kind == "content_block_stop":
            self._close(event.index)
        elif kind == "message_start":
            self._begin(event.message or _Message())
        elif kind == "message_delta":
            self._count(event.usage)
            if event.delta and event.delta.stop_reason:
                self._reason, self._details = event.delta.stop_reason, event.delta.stop_details
        elif kind == "message_stop":
            self._finish(self._reason)
        elif kind == "error" or name == b"error" or event.error is not None:
            self.fail_with_event(data)

    def complete(self) -> bool:
        """Finish if there is a stop reason, even if the last event is missing."""
        if self._reason is None:
            return False
        self._finish(self._reason)
        return True

    def _begin(self, message: _Message) -> None:
        """Begin the message. Some hosts repeat ``message_start``; one with another id is refused."""
        name = message.id or ""
        if self._begun is not None and (not name or name != self._begun):
            raise MalformedStream("the message begins twice")
        self._begun = name
        self._count(message.usage)

    def _finish(self, reason: str | None) -> None:
        if reason == "model_context_window_exceeded" and not self.answer.has_said:
            self.fail_with_overflow()
            return
        said: Wire = {"stopReason": reason} if reason in ("pause_turn", "refusal") else {}
        if self._details is not None:
            said["stopDetails"] = self._details
        if self._usage.server_tool_use:
            said["serverToolUse"] = self._usage.server_tool_use
        metadata = {"anthropic": said} if said else None
        self.answer.finish(_REASONS.get(reason or "", "unknown"), metadata, is_paused=reason == "pause_turn")

    def _open(self, index: int, block: dict[str, object]) -> None:
        if index in self._blocks or index in self._closed:
            raise MalformedStream(f"block {index} begins twice")
        kind = codec.text_of(block.get("type"))
        opened = self._blocks[index] = _Block(kind, f"text-{index}")
        if kind == "text":
            self.answer.open_text(opened.name)
            self.answer.text(opened.name, codec.text_of(block.get("text")))
        elif kind in ("thinking", "redacted_thinking"):
            opened.name = f"reasoning-{index}"
            redacted = {"anthropic": {"redactedData": block.get("data")}} if kind == "redacted_thinking" else None
            opened.given = redacted
            self.answer.open_reasoning(opened.name, redacted)
            self.answer.reasoning(opened.name, codec.text_of(block.get("thinking")))
            opened.signature = codec.text_of(block.get("signature"))
        elif kind in _CALLS:
            opened.name, tool = codec.text_of(block.get("id")), codec.text_of(block.get("name"))
            given = block.get("input")
            opened.given = given if isinstance(given, dict) else None
            self._tools[opened.name] = tool
            self.answer.open_call(opened.name, tool, executed=kind != "tool_use")
        elif kind.endswith("_tool_result"):
            self._result(block)
        elif kind:
            opened.given = block

    def _result(self, block: dict[str, object]) -> None:
        call_id, content = codec.text_of(block.get("tool_use_id")), block.get("content")
        tool = self._tools.get(call_id)
        if tool is None:
            # The call is part of the previous answer, which the provider paused.
            tool = codec.text_of(block.get("type")).removesuffix("_tool_result")
            self.answer.call(call_id, tool, {}, executed=True, metadata={"anthropic": {"isContinued": True}})
        failed = isinstance(content, dict) and codec.text_of(content.get("type")).endswith("_tool_result_error")
        if failed or block.get("is_error") is True:
            code = codec.text_of(content.get("error_code")) if isinstance(content, dict) else ""
            self.answer.result_failed(call_id, tool, code or f"{tool} failed", {"anthropic": {"block": block}})
        else:
            self.answer.result(call_id, tool, block)

    def _delta(self, index: int, delta: _Delta | None) -> None:
        if delta is None:
            raise MalformedStream("a delta is empty")
        block = self._blocks.get(index) or self._opened_late(index, delta)
        if delta.text is not None:
            self.answer.text(block.name, delta.text)
        elif delta.thinking is not None:
            self.answer.reasoning(block.name, delta.thinking)
        elif delta.partial_json is not None:
            self.answer.call_input(block.name, delta.partial_json)
        elif delta.signature is not None:
            block.signature += delta.signature
        elif delta.citation is not None:
            block.citations.append(delta.citation)
            self._cite(delta.citation)
        elif delta.content is not None:
            block.content += delta.content

    def _cite(self, citation: object) -> None:
        if isinstance(citation, dict):
            named = {key: citation[key] for key in ("url", "title") if citation.get(key)}
            title = citation.get("title") or citation.get("document_title") or citation.get("source")
            if named or title:
                self.answer.cite(named, title=title)

    def _opened_late(self, index: int, delta: _Delta) -> _Block:
        """Open a text or thinking block that has no start event. A call without one has no name and is refused."""
        if index in self._closed or delta.type not in ("text_delta", "thinking_delta"):
            raise MalformedStream(f"there is a delta for block {index}, which is not open")
        kind = delta.type.removesuffix("_delta")
        block = self._blocks[index] = _Block(kind, f"{'text' if kind == 'text' else 'reasoning'}-{index}")
        return block

    def _close(self, index: int) -> None:
        block = self._blocks.pop(index, None)
        if block is None:
            raise MalformedStream(f"block {index} ends, but is not open")
        self._closed.add(index)
        if block.kind == "text":
            self.answer.close_text(
                block.name, {"anthropic": {"citations": block.citations}} if block.citations else None
            )
        elif block.kind == "thinking":
            signed = {"anthropic": {"signature": block.signature}} if block.signature else None
            self.answer.close_reasoning(block.name, signed)
        elif block.kind == "redacted_thinking":
            self.answer.close_reasoning(block.name, block.given)
        elif block.kind in _CALLS:
            # Some hosts send the whole input in the start event and no deltas.
            metadata = {"anthropic": {"callType": block.kind}} if block.kind == "mcp_tool_use" else None
            self.answer.close_call(block.name, given=block.given, metadata=metadata)
        elif block.given is not None:
            # An unknown kind of block, such as a compaction, is stored and sent back unchanged.
            said = {"content": block.content} if block.content else {}
            own = {"anthropic": {"isItem": True}}
            self.answer.item(f"block-{index}", block.kind, {**block.given, **said}, metadata=own)

    def _count(self, usage: _Usage | None) -> None:
        """Merge token counts, which come in several events; for each count the latest value wins."""
        if usage is None:
            return
        known = self._usage
        for field in _Usage.__struct_fields__:
            if (value := getattr(usage, field)) is not None:
                setattr(known, field, value)
        read, write = known.cache_read_input_tokens or 0, known.cache_creation_input_tokens or 0
        total_in, out = (known.input_tokens or 0) + read + write, known.output_tokens or 0
        thought = (known.output_tokens_details or {}).get("thinking_tokens")
        self.answer.usage = Usage(
            input=total_in,
            output=out,
            reasoning=thought if isinstance(thought, int) else 0,
            cache_read=read,
            cache_write=write,
            total=total_in + out,
        )
