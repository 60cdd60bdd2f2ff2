"""OpenAI Chat Completions: parses the chunks of an answer into stream events, in the dialects of many hosts."""

import msgspec

from turnkeeper.model.stream import Usage
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec
from turnkeeper.providers.answer import parse_input
from turnkeeper.providers.think_tags import ThinkTags

Item = dict[str, object]


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, object] | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: object = None


class _Piece(msgspec.Struct):
    """An element of list content, which Mistral sends for reasoning models."""

    type: str = ""
    text: str = ""
    thinking: "str | list[_Piece]" = ""


class _Delta(msgspec.Struct):
    content: str | list[_Piece] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: object = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    executed_tools: object = None
    annotations: object = None
    images: object = None
    extra_content: object = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None
    usage: "_Usage | None" = None
    error: object = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: dict[str, object] | None = None
    completion_tokens_details: dict[str, object] | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    citation_tokens: int | None = None
    cost: float | None = None


class _Groq(msgspec.Struct):
    usage: _Usage | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    x_groq: _Groq | None = None
    citations: object = None
    search_results: object = None
    error: object = None


_decoder = msgspec.json.Decoder(_Chunk)

_REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
    "model_context_window_exceeded": "length",
}


class Reader(codec.Reader):
    """Parses the chunks of one completion."""

    def __init__(self, provider_id: str = "") -> None:
        super().__init__(provider_id)
        self._text = self._reasoning = 0
        self._is_reasoning = False
        self._is_named = False
        """Whether the host sent the reasoning in the field ``reasoning``."""
        self._details: list[object] = []
        self._calls: dict[int, str] = {}
        self._metadata: dict[str, object] = {}
        self._finished: set[str] = set()
        self._reason: str | None = None
        self._is_refused = False
        self._cost: float | None = None
        self._tags = ThinkTags()
        self._ran: dict[int, str] = {}
        self._sources: dict[str, JsonObject] = {}
        self._extra: object = None
        self._parsed: list[Item] = []

    def read(self, name: bytes, data: bytes) -> None:
        """Parse one chunk."""
        if data == b"[DONE]":
            self._finish()
            return
        chunk = codec.decode(_decoder, data)
        if chunk.error is not None or name == b"error":
            self.fail_with_event(data)
            return
        counted = chunk.usage or (chunk.x_groq.usage if chunk.x_groq is not None else None)
        if counted is not None:
            self._count(counted)
        self._found(chunk.search_results)
        self._found(chunk.citations)
        for choice in chunk.choices or ():
            if choice.index:
                continue  # Requests ask for one choice; another would be mixed into the answer.
            if choice.error is not None:
                self.fail_with(choice.error)
                return
            if choice.usage is not None and counted is None:
                self._count(choice.usage)
            if choice.delta is not None:
                self._delta(choice.delta)
            if choice.finish_reason:
                self._reason = choice.finish_reason
                self._end_calls()

    def complete(self) -> bool:
        """Finish if there is a finish reason; some hosts leave out ``[DONE]``."""
        if self._reason is None:
            return False
        self._finish()
        return True

    def _delta(self, delta: _Delta) -> None:
        content = delta.content
        if isinstance(content, str):
            self._divided(*(("", content) if self._tags.is_over else self._tags.feed(content)))
        elif content:
            self._pieces(content)
        if thought := delta.reasoning_content or delta.reasoning:
            self._think(thought)
            self._is_named = not delta.reasoning_content
        if details := codec.objects(delta.reasoning_details):
            if not self._is_reasoning:
                self._think("")
            self._details.extend(details)
        if delta.refusal:
            self._is_refused = True
            self._say(delta.refusal)
        if delta.extra_content is not None:
            self._extra = delta.extra_content
        for item in codec.objects(delta.executed_tools):
            self._executed(item)
        for annotation in codec.objects(delta.annotations):
            self._annotated(annotation)
        for image in codec.objects(delta.images):
            self._image(image)
        for call in delta.tool_calls or ():
            self._call(call)

    def _divided(self, thought: str, text: str) -> None:
        if thought:
            self._think(thought)
        if text:
            self._say(text)

    def _say(self, text: str) -> None:
        self._end_reasoning()
        self.answer.text(f"text-{self._text}", text)

    def _think(self, text: str) -> None:
        block = f"reasoning-{self._reasoning}"
        if not self._is_reasoning:
            self._is_reasoning = True
            self.answer.open_reasoning(block)
        self.answer.reasoning(block, text)

    def _end_reasoning(self) -> None:
        if not self._is_reasoning:
            return
        own: Item | None = {"openai": {"field": "reasoning"}} if self._is_named else None
        if self._details:
            own = {"openrouter": {"reasoning_details": self._details}}
        self.answer.close_reasoning(f"reasoning-{self._reasoning}", own)
        self._reasoning += 1
        self._is_reasoning, self._is_named, self._details = False, False, []

    def _pieces(self, pieces: list[_Piece]) -> None:
        for piece in pieces:
            if piece.type == "thinking":
                thought = piece.thinking
                self._think(thought if isinstance(thought, str) else "".join(inner.text for inner in thought))
            elif piece.text:
                self._say(piece.text)

    def _call(self, call: _ToolCall) -> None:
        self._divided(*self._tags.end())
        self._end_reasoning()
        index = call.index if call.index is not None else len(self._calls) - (0 if call.id else 1)
        name = call.function.name if call.function else None
        known = self._calls.get(index)
        if known is None or (call.id and name and call.id != known):
            if known is not None:
                self._end_call(known)  # Some hosts send every call with one index.
            known = call.id or f"call_{len(self._calls)}"
            self.answer.open_call(known, name or "")
            self._calls[index] = known
            if call.extra_content is not None:
                self._metadata[known] = call.extra_content
        given = call.function.arguments if call.function else None
        if given:
            self.answer.call_input(known, given if isinstance(given, str) else msgspec.json.encode(given).decode())

    def _executed(self, item: Item) -> None:
        """A tool that Groq ran. Groq sends it once when it starts and once more with its output."""
        place = item.get("index")
        index = place if isinstance(place, int) else len(self._ran)
        name = codec.text_of(item.get("type")) or "tool"
        if index not in self._ran:
            self._end_reasoning()
            self._ran[index] = f"executed_{index}"
            _, given = parse_input(codec.text_of(item.get("arguments")))
            own = {"openai": {"isInAnswer": True}}
            self.answer.call(self._ran[index], name, given, executed=True, metadata=own)
        if item.get("output") is not None and self.answer.is_awaited(self._ran[index]):
            self.answer.result(self._ran[index], name, item)
        searched = item.get("search_results")
        self._found(searched.get("results") if isinstance(searched, dict) else None)

    def _annotated(self, annotation: Item) -> None:
        """A cited page, or a parsed file: sent back with the answer, the host does not parse that file again."""
        cited, file = annotation.get("url_citation"), annotation.get("file")
        if isinstance(cited, dict):
            self.answer.cite({**annotation, **cited})
        elif isinstance(file, dict):
            self._parsed.append(annotation)
            self.answer.cite({"type": annotation.get("type")}, title=file.get("name"))
        else:
            self.answer.cite(annotation)

    def _found(self, listed: object) -> None:
        """Collect search results. Hosts repeat them in every chunk, as URLs or as objects with a title."""
        for one in listed if isinstance(listed, list) else ():
            found: JsonObject = one if isinstance(one, dict) else {"url": one}
            url = codec.text_of(found.get("url"))
            if url and ("title" in found or url not in self._sources):
                self._sources[url] = {key: found[key] for key in ("url", "title", "date") if found.get(key)}

    def _image(self, image: Item) -> None:
        inner = image.get("image_url")
        url = codec.text_of(inner.get("url") if isinstance(inner, dict) else inner)
        if url:
            mime = url.removeprefix("data:").partition(";")[0] if url.startswith("data:") else "image/*"
            self.answer.file(mime, url)

    def _end_calls(self) -> None:
        for call_id in self._calls.values():
            self._end_call(call_id)

    def _end_call(self, call_id: str) -> None:
        if call_id in self._finished:
            return
        self._finished.add(call_id)
        own: Item = {}
        if (extra := self._metadata.get(call_id)) is not None:
            own["extraContent"] = extra
        if self._extra is not None and not self.answer.has_text(f"text-{self._text}"):
            # The message has no text to hold the message's signature, so its first call holds it.
            own["messageExtraContent"], self._extra = self._extra, None
        self.answer.close_call(call_id, metadata={"openai": own} if own else None)

    def _finish(self) -> None:
        if self._reason == "model_context_window_exceeded" and not self.answer.has_said:
            self.fail_with_overflow()
            return
        self._divided(*self._tags.end())
        self._end_reasoning()
        self._end_calls()
        for source in self._sources.values():
            self.answer.cite(source)
        own = {"extraContent": self._extra, "annotations": self._parsed}
        if own := {name: value for name, value in own.items() if value}:
            self.answer.close_text(f"text-{self._text}", {"openai": own})
        reason = "content-filter" if self._is_refused else _REASONS.get(self._reason or "", "unknown")
        if reason == "unknown" and self.answer.has_calls:
            reason = "tool-calls"
        billed = {"openrouter": {"cost": self._cost}} if self._cost is not None else None
        self.answer.finish(reason, billed)

    def _count(self, usage: _Usage) -> None:
        self._cost = usage.cost if usage.cost is not None else self._cost
        given, said = usage.prompt_tokens or 0, usage.completion_tokens or 0
        details = usage.prompt_tokens_details or {}
        read = details.get("cached_tokens")
        write = details.get("cache_write_tokens")
        thought = (usage.completion_tokens_details or {}).get("reasoning_tokens")
        if usage.total_tokens is not None and not usage.citation_tokens:
            # Some hosts count reasoning tokens in the total and not in the completion.
            said = max(said, usage.total_tokens - given)
        self.answer.usage = Usage(
            input=given,
            output=said,
            reasoning=thought if isinstance(thought, int) else usage.reasoning_tokens or 0,
            cache_read=read if isinstance(read, int) else usage.prompt_cache_hit_tokens or usage.cached_tokens or 0,
            cache_write=write if isinstance(write, int) else 0,
            total=usage.total_tokens if usage.total_tokens is not None else given + said,
        )
