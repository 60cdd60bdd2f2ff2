"""OpenAI Responses: parses the events of an answer into stream events."""

import msgspec

from turnkeeper.model.stream import Usage
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec
from turnkeeper.providers.answer import MalformedStream, parse_input

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
    output_index: int | None = None
    item_id: str = ""
    content_index: int = 0
    summary_index: int = 0
    delta: object = None
    text: object = None
    refusal: object = None
    annotation: object = None
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
_OURS = frozenset({"message", "reasoning", "function_call"})
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content-filter"}


class Reader(codec.Reader):
    """Parses the events of one response.

    An item is identified by its id, or by its output index for hosts that send a new id with every event.
    """

    def __init__(self, provider_id: str = "") -> None:
        super().__init__(provider_id)
        self._sequence = 0
        self._names: set[str] = set()
        self._places: dict[int, str] = {}
        self._calls: dict[str, str] = {}
        self._done: set[str] = set()
        self._texts: dict[str, list[str]] = {}
        self._reasonings: dict[str, list[str]] = {}
        self._has_refused = False

    def read(self, name: bytes, data: bytes) -> None:
        """Parse one event."""
        event = codec.decode(_decoder, data)
        self._in_order(event.sequence_number)
        match event.type:
            case "response.output_text.delta":
                self.answer.text(self._text(event), codec.text_of(event.delta))
            case "response.reasoning_summary_text.delta":
                self._think(self._name(event), str(event.summary_index), codec.text_of(event.delta))
            case "response.reasoning_text.delta":
                self._think(self._name(event), "content", codec.text_of(event.delta))
            case "response.function_call_arguments.delta":
                self.answer.call_input(self._call(self._name(event)), codec.text_of(event.delta))
            case "response.refusal.delta":
                self._has_refused = True
                self.answer.text(self._text(event), codec.text_of(event.delta))
            case "response.output_text.done":
                self._say_whole(event, codec.text_of(event.text))
            case "response.refusal.done":
                self._has_refused = True
                self._say_whole(event, codec.text_of(event.refusal))
            case "response.output_text.annotation.added":
                self._cite(event.annotation)
            case "response.output_item.added":
                item = event.item or {}
                self._begin(self._new_name(_item_id(item), event.output_index), item)
            case "response.output_item.done":
                item = event.item or {}
                self._end(self._known_name(_item_id(item), event.output_index), item)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(event.type, event.response or _Response())
            case _ if event.type == "error" or name == b"error" or (not event.type and event.error is not None):
                self.fail_with_event(data)
            case _:
                pass  # Progress of hosted tools, and unknown events. Items are parsed when they end.

    def _in_order(self, number: int | None) -> None:
        if number is not None:
            # Some hosts send 0 with every event.
            if 0 < self._sequence >= number:
                raise MalformedStream(f"event {number} comes after event {self._sequence}")
            self._sequence = number

    def _name(self, event: _Event) -> str:
        return self._known_name(event.item_id, event.output_index)

    def _known_name(self, item_id: str, place: int | None) -> str:
        """The name of an event's item: the first id of that item."""
        if item_id in self._names:
            return item_id
        name = self._places.get(place) if place is not None else None
        return name if name is not None and name not in self._done else self._new_name(item_id, place)

    def _new_name(self, item_id: str, place: int | None) -> str:
        name = item_id or (f"item-{place}" if place is not None else "item")
        self._names.add(name)
        if place is not None:
            self._places[place] = name
        return name

    def _text(self, event: _Event) -> str:
        name = self._name(event)
        block = f"{name}:{event.content_index}" if event.content_index else name
        blocks = self._texts.setdefault(name, [])
        if block not in blocks:
            blocks.append(block)
        return block

    def _say_whole(self, event: _Event, text: str) -> None:
        """Add the whole text of a block, unless its deltas were received."""
        block = self._text(event)
        if not self.answer.has_text(block):
            self.answer.text(block, text)

    def _cite(self, annotation: object) -> None:
        if isinstance(annotation, dict):
            self.answer.cite(annotation, title=annotation.get("title") or annotation.get("filename"))

    def _think(self, name: str, part: str, text: str) -> None:
        blocks, block = self._reasonings.setdefault(name, []), f"{name}:{part}"
        if block not in blocks:
            if blocks:
                self.answer.close_reasoning(blocks[-1], {"openai": {"itemId": name}})
            blocks.append(block)
            self.answer.open_reasoning(block, {"openai": {"itemId": name}})
        self.answer.reasoning(block, text)

    def _call(self, name: str) -> str:
        call_id = self._calls.get(name)
        if call_id is None:
            raise MalformedStream(f"there is input for the call of item {name!r}, which never began")
        return call_id

    def _begin(self, name: str, item: Item) -> None:
        kind = codec.text_of(item.get("type"))
        if kind == "function_call":
            call_id = codec.text_of(item.get("call_id"))
            if name in self._calls:
                raise MalformedStream(f"item {name!r} begins twice")
            self._calls[name] = call_id
            self.answer.open_call(call_id, codec.text_of(item.get("name")))
            self.answer.call_input(call_id, codec.text_of(item.get("arguments")))
        elif kind and kind not in _OURS:
            self._calls[name] = name
            self.answer.open_call(name, _tool(kind), executed=True)

    def _end(self, name: str, item: Item) -> None:
        kind = codec.text_of(item.get("type"))
        if name in self._done:
            raise MalformedStream(f"item {name!r} ends twice")
        self._done.add(name)
        if kind == "message":
            self._end_message(name, item)
        elif kind == "reasoning":
            self._end_reasoning(name, item)
        elif kind:
            if name not in self._calls:
                self._begin(name, {**item, "arguments": ""})
            if kind == "function_call":
                raw = codec.text_of(item.get("arguments"))
                self.answer.close_call(self._calls[name], raw=raw, metadata={"openai": _call_metadata(item)})
            else:
                self._end_hosted(name, kind, item)

    def _end_message(self, name: str, item: Item) -> None:
        said: Item = {"itemId": _item_id(item)}
        if item.get("phase"):
            said["phase"] = item["phase"]
        for index, part in enumerate(codec.objects(item.get("content"))):
            block = f"{name}:{index}" if index else name
            if not self.answer.has_text(block):
                # Some hosts send no deltas and the text only with the end of the item.
                self._has_refused = self._has_refused or part.get("type") == "refusal"
                self.answer.text(block, codec.text_of(part.get("text")) or codec.text_of(part.get("refusal")))
                self._texts.setdefault(name, []).append(block)
            for annotation in codec.objects(part.get("annotations")):
                self._cite(annotation)
        for block in self._texts.get(name, ()):
            self.answer.close_text(block, {"openai": said})

    def _end_reasoning(self, name: str, item: Item) -> None:
        if name not in self._reasonings:
            for index, part in enumerate(codec.objects(item.get("summary"))):
                self._think(name, str(index), codec.text_of(part.get("text")))
            for part in codec.objects(item.get("content")):
                self._think(name, "content", codec.text_of(part.get("text")))
        if name not in self._reasonings and item.get("encrypted_content"):
            self._think(name, "0", "")
        kept: Item = {"itemId": name}
        if (last_id := _item_id(item)) not in ("", name):
            kept["lastItemId"] = last_id
        if isinstance(sealed := item.get("encrypted_content"), str):
            kept["reasoningEncryptedContent"] = sealed
        for block in self._reasonings.get(name, ())[-1:]:
            if block == f"{name}:content":
                kept["isReasoningText"] = True
            self.answer.close_reasoning(block, {"openai": kept})

    def _end_hosted(self, name: str, kind: str, item: Item) -> None:
        tool = _tool(kind)
        self.answer.close_call(name, raw=msgspec.json.encode(_given(kind, item)).decode())
        error = item.get("error")
        if error or item.get("status") == "failed":
            said = codec.text_of(error) or (codec.text_of(error.get("message")) if isinstance(error, dict) else "")
            self.answer.result_failed(name, tool, said or f"{tool} failed", {"openai": {"item": item}})
        else:
            self.answer.result(name, tool, item)

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


def _item_id(item: Item) -> str:
    return codec.text_of(item.get("id"))


def _tool(kind: str) -> str:
    """The name of an item's tool; for an unknown kind of item, the kind."""
    return HOSTED.get(kind) or kind


def _call_metadata(item: Item) -> Item:
    kept: Item = {"itemId": _item_id(item)}
    if item.get("namespace"):
        kept["namespace"] = item["namespace"]
    return kept


def _given(kind: str, item: Item) -> JsonObject:
    """The input of a hosted tool, as far as its item contains it."""
    if kind == "mcp_call":
        _, parsed = parse_input(codec.text_of(item.get("arguments")))
        return {"name": item.get("name"), "server": item.get("server_label"), "arguments": parsed}
    given = item.get("action")
    if kind in ("web_search_call", "computer_call", "local_shell_call") and isinstance(given, dict):
        return given
    return {key: item[key] for key in ("queries", "code", "revised_prompt") if item.get(key) is not None}
