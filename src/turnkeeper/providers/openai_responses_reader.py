"""OpenAI Responses, the answer: events of a response become stream events."""

import msgspec

from turnkeeper.model.stream import Usage
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec
from turnkeeper.providers.answer import Malformed, parse_input

Item = dict[str, object]


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    error: object = None
    incomplete_details: _Incomplete | None = None
    usage: _Usage | None = None
    service_tier: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    sequence_number: int | None = None
    item_id: str = ""
    content_index: int = 0
    summary_index: int = 0
    delta: object = None
    text: object = None
    refusal: object = None
    item: Item | None = None
    response: _Response | None = None
    error: object = None


_decoder = msgspec.json.Decoder(_Event)

HOSTED = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "computer_call": "computer_use",
    "image_generation_call": "image_generation",
    "mcp_call": "mcp",
    "local_shell_call": "local_shell",
}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content-filter"}


class Reader(codec.Reader):
    """Reads the events of one response."""

    def __init__(self, provider_id: str = "") -> None:
        super().__init__(provider_id)
        self._sequence = 0
        self._calls: dict[str, str] = {}
        self._done: set[str] = set()
        self._texts: dict[str, list[str]] = {}
        self._reasonings: dict[str, list[str]] = {}
        self._has_refused = False

    def read(self, name: bytes, data: bytes) -> None:
        """Take in one event."""
        event = codec.decode(_decoder, data)
        self._in_order(event.sequence_number)
        match event.type:
            case "response.output_text.delta":
                self.answer.text(self._text(event), codec.text_of(event.delta))
            case "response.reasoning_summary_text.delta":
                self._think(event.item_id, f"{event.item_id}:{event.summary_index}", codec.text_of(event.delta))
            case "response.reasoning_text.delta":
                self._think(event.item_id, f"{event.item_id}:content", codec.text_of(event.delta))
            case "response.function_call_arguments.delta":
                self.answer.call_input(self._call(event.item_id), codec.text_of(event.delta))
            case "response.refusal.delta":
                self._has_refused = True
                self.answer.text(self._text(event), codec.text_of(event.delta))
            case "response.output_text.done":
                self._say_whole(event, codec.text_of(event.text))
            case "response.refusal.done":
                self._has_refused = True
                self._say_whole(event, codec.text_of(event.refusal))
            case "response.output_item.added":
                self._begin(event.item or {})
            case "response.output_item.done":
                self._end(event.item or {})
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(event.type, event.response or _Response())
            case "error":
                self.fail_with(msgspec.json.decode(data))
            case _ if name == b"error" or (not event.type and event.error is not None):
                self.fail_with(msgspec.json.decode(data))
            case _:
                pass  # Progress of hosted tools, annotations, and what is yet to be invented.

    def _in_order(self, number: int | None) -> None:
        if number is not None:
            # Hosts that do not count send 0 throughout.
            if 0 < self._sequence >= number:
                raise Malformed(f"event {number} comes after event {self._sequence}")
            self._sequence = number

    def _text(self, event: _Event) -> str:
        block = event.item_id or "text"
        if event.content_index:
            block = f"{block}:{event.content_index}"
        known = self._texts.get(event.item_id)
        if known is None:
            known = self._texts[event.item_id] = []
        if block not in known:
            known.append(block)
        return block

    def _say_whole(self, event: _Event, text: str) -> None:
        """The text again, whole; it counts only where no pieces came."""
        block = self._text(event)
        if not self.answer.has_text(block):
            self.answer.text(block, text)

    def _think(self, item_id: str, block: str, text: str) -> None:
        parts = self._reasonings.setdefault(item_id, [])
        if block not in parts:
            if parts:
                self.answer.close_reasoning(parts[-1], {"openai": {"itemId": item_id}})
            parts.append(block)
            self.answer.open_reasoning(block, {"openai": {"itemId": item_id}})
        self.answer.reasoning(block, text)

    def _call(self, item_id: str) -> str:
        call_id = self._calls.get(item_id)
        if call_id is None:
            raise Malformed(f"there is input for the call of item {item_id!r}, which never began")
        return call_id

    def _begin(self, item: Item) -> None:
        item_id, kind = codec.text_of(item.get("id")), codec.text_of(item.get("type"))
        if kind == "function_call":
            call_id = codec.text_of(item.get("call_id"))
            if item_id in self._calls:
                raise Malformed(f"item {item_id!r} begins twice")
            self._calls[item_id or call_id] = call_id
            self.answer.open_call(call_id, codec.text_of(item.get("name")))
            self.answer.call_input(call_id, codec.text_of(item.get("arguments")))
        elif kind in HOSTED:
            self._calls[item_id] = item_id
            self.answer.open_call(item_id, HOSTED[kind], executed=True)

    def _end(self, item: Item) -> None:
        item_id, kind = codec.text_of(item.get("id")), codec.text_of(item.get("type"))
        key = item_id or codec.text_of(item.get("call_id"))
        if key in self._done:
            raise Malformed(f"item {key!r} ends twice")
        self._done.add(key)
        if kind == "message":
            self._end_message(item_id, item)
        elif kind == "reasoning":
            self._end_reasoning(item_id, item)
        elif kind == "function_call" or kind in HOSTED:
            if key not in self._calls:
                self._begin({**item, "arguments": ""})
            if kind == "function_call":
                raw = codec.text_of(item.get("arguments"))
                self.answer.close_call(self._calls[key], raw=raw, metadata={"openai": {"itemId": item_id}})
            else:
                self._end_hosted(item_id, kind, item)

    def _end_message(self, item_id: str, item: Item) -> None:
        said: Item = {"itemId": item_id}
        if item.get("phase"):
            said["phase"] = item["phase"]
        for block in self._texts.get(item_id, ()):
            self.answer.close_text(block, {"openai": said})

    def _end_reasoning(self, item_id: str, item: Item) -> None:
        summaries = item.get("summary")
        if item_id not in self._reasonings:
            for index, part in enumerate(summaries if isinstance(summaries, list) else ()):
                self._think(
                    item_id, f"{item_id}:{index}", codec.text_of(part.get("text")) if isinstance(part, dict) else ""
                )
        if item_id not in self._reasonings and item.get("encrypted_content"):
            self._think(item_id, f"{item_id}:0", "")
        kept: Item = {"itemId": item_id}
        if isinstance(sealed := item.get("encrypted_content"), str):
            kept["reasoningEncryptedContent"] = sealed
        for block in self._reasonings.get(item_id, ())[-1:]:
            self.answer.close_reasoning(block, {"openai": kept})

    def _end_hosted(self, item_id: str, kind: str, item: Item) -> None:
        tool = HOSTED[kind]
        self.answer.close_call(item_id, raw=msgspec.json.encode(_given(kind, item)).decode())
        error = item.get("error")
        if error or item.get("status") == "failed":
            said = codec.text_of(error) or (codec.text_of(error.get("message")) if isinstance(error, dict) else "")
            self.answer.result_failed(item_id, tool, said or f"{tool} failed", {"openai": {"item": item}})
        else:
            self.answer.result(item_id, tool, item)

    def _finish(self, kind: str, response: _Response) -> None:
        if response.usage is not None:
            self._count(response.usage)
        if kind == "response.failed":
            self.fail_with(response.error or {"message": "The response failed."})
            return
        reason = "stop"
        if kind == "response.incomplete":
            why = response.incomplete_details.reason if response.incomplete_details else None
            reason = _INCOMPLETE.get(why or "", "unknown")
        elif self._has_refused:
            reason = "content-filter"
        tier = {"openai": {"serviceTier": response.service_tier}} if response.service_tier else None
        self.answer.finish(reason, tier)

    def _count(self, usage: _Usage) -> None:
        given, said = usage.input_tokens or 0, usage.output_tokens or 0
        into, out = usage.input_tokens_details or _InputDetails(), usage.output_tokens_details or _OutputDetails()
        self.answer.usage = Usage(
            input=given,
            output=said,
            reasoning=out.reasoning_tokens or 0,
            cache_read=into.cached_tokens or 0,
            cache_write=into.cache_write_tokens or 0,
            total=usage.total_tokens if usage.total_tokens is not None else given + said,
        )


def _given(kind: str, item: Item) -> JsonObject:
    """What a hosted tool was asked, as far as the item tells."""
    if kind == "mcp_call":
        _, parsed = parse_input(codec.text_of(item.get("arguments")))
        return {"name": item.get("name"), "server": item.get("server_label"), "arguments": parsed}
    keys = {"web_search_call": "action", "computer_call": "action", "local_shell_call": "action"}
    given = item.get(keys.get(kind, ""))
    if isinstance(given, dict):
        return given
    return {key: item[key] for key in ("queries", "code", "revised_prompt") if item.get(key) is not None}
