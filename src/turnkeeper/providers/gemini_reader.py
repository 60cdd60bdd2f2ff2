"""Google Gemini: parses the chunks of an answer into stream events."""

import msgspec

from turnkeeper.model.stream import Usage
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec, partial_arguments
from turnkeeper.providers.answer import MalformedStream
from turnkeeper.providers.codec import Wire


class _Call(msgspec.Struct, rename="camel"):
    name: str = ""
    id: str | None = None
    args: dict[str, object] | None = None
    partial_args: list[dict[str, object]] | None = None
    will_continue: bool = False


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Call | None = None
    executable_code: dict[str, object] | None = None
    code_execution_result: dict[str, object] | None = None
    inline_data: dict[str, object] | None = None
    file_data: dict[str, object] | None = None
    tool_call: dict[str, object] | None = None
    tool_response: dict[str, object] | None = None


class _Content(msgspec.Struct):
    parts: list[msgspec.Raw] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    index: int = 0
    content: _Content | None = None
    finish_reason: str | int | None = None
    finish_message: str | None = None
    grounding_metadata: object = None
    url_context_metadata: object = None
    citation_metadata: object = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | int | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    total_token_count: int | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    error: object = None


_decoder = msgspec.json.Decoder(_Chunk)
_part_decoder = msgspec.json.Decoder(_Part)
_whole_decoder = msgspec.json.Decoder(dict[str, object])

_FILTERED = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "LANGUAGE",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
_NUMBERED = ("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION")
"""Finish reasons by number, for gateways that send enumerations as numbers."""
_BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE")
_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_FILTERED, "content-filter"),
    **dict.fromkeys(_BROKEN, "error"),
}


class Reader(codec.Reader):
    """Parses the chunks of one answer."""

    def __init__(self, provider_id: str = "") -> None:
        super().__init__(provider_id)
        self._block = ""
        self._blocks = 0
        self._is_thought = False
        self._signature: str | None = None
        self._calls = 0
        self._ran = ""
        self._writing: _OpenCall | None = None
        self._reason: str | None = None
        self._said: Wire = {}

    def read(self, name: bytes, data: bytes) -> None:
        """Parse one chunk."""
        chunk = codec.decode(_decoder, data)
        if chunk.error is not None:
            self.fail_with_event(data)
            return
        if chunk.usage_metadata is not None:
            self._count(chunk.usage_metadata)
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._reason = "SAFETY"
            self._said["blockReason"] = chunk.prompt_feedback.block_reason
        for candidate in chunk.candidates or ():
            if not candidate.index:  # Requests ask for one candidate.
                self._candidate(candidate)

    def _candidate(self, candidate: _Candidate) -> None:
        for raw in (candidate.content.parts if candidate.content is not None else None) or ():
            self._part(bytes(raw))
        self._cite(candidate)
        if candidate.grounding_metadata:
            self._said["groundingMetadata"] = candidate.grounding_metadata
        if reason := _named(candidate.finish_reason):
            self._reason = reason
            if _REASONS.get(reason) != "stop":
                self._said["finishReason"] = reason
            if candidate.finish_message:
                self._said["finishMessage"] = candidate.finish_message

    def complete(self) -> bool:
        """Finish if there is a finish reason. The protocol has no last event."""
        if self._reason is None:
            return False
        self._end_call()
        self._end_block()
        reason = _REASONS.get(self._reason, "unknown")
        message = codec.text_of(self._said.get("finishMessage"))
        if reason == "error":
            message = f"{self._reason}: {message}" if message else f"The provider ended its answer with {self._reason}."
        self.answer.finish(reason, {"google": self._said} if self._said else None, message=message or None)
        return True

    def _part(self, raw: bytes) -> None:
        part = codec.decode(_part_decoder, raw)
        if part.function_call is not None:
            self._call(part.function_call, part.thought_signature)
        elif part.text is not None:
            self._words(part)
        elif part.inline_data is not None or part.file_data is not None:
            self._attached(part.inline_data or {}, part.file_data or {})
        else:
            self._hosted(part, codec.decode(_whole_decoder, raw))

    def _hosted(self, part: _Part, whole: Wire) -> None:
        """A hosted tool or an unknown kind of part. It is stored whole: the provider takes it back with signatures."""
        kinds = whole.keys() - {"thought", "thoughtSignature", "partMetadata"}
        if part.executable_code is not None:
            self._ran = self._hosted_call("", "code_execution", part.executable_code, whole)
        elif part.code_execution_result is not None:
            self._executed(part.code_execution_result, whole)
        elif part.tool_call is not None:
            given, called = part.tool_call.get("args"), codec.text_of(part.tool_call.get("id"))
            self._hosted_call(called, _tool(part.tool_call), given if isinstance(given, dict) else {}, whole)
        elif part.tool_response is not None and self.answer.is_awaited(codec.text_of(part.tool_response.get("id"))):
            self.answer.result(codec.text_of(part.tool_response.get("id")), _tool(part.tool_response), whole)
        elif kinds:
            self._end_block()
            self.answer.item(self._next_call(), min(kinds), whole, metadata={"google": {"isItem": True}})
        elif part.thought_signature:
            self._signature = part.thought_signature

    def _hosted_call(self, call_id: str, name: str, given: Wire, whole: Wire) -> str:
        self._end_block()
        call_id = call_id or self._next_call()
        self.answer.call(call_id, name, given, executed=True, metadata={"google": {"part": whole}})
        return call_id

    def _words(self, part: _Part) -> None:
        text = part.text or ""
        if self._block and self._is_thought != part.thought and (text or not part.thought_signature):
            self._end_block()
        if not self._block and (text or part.thought_signature):
            self._is_thought = part.thought
            self._block = f"{'reasoning' if part.thought else 'text'}-{self._blocks}"
            self._blocks += 1
            # Opened even without text: the block stores the signature.
            (self.answer.open_reasoning if part.thought else self.answer.open_text)(self._block)
        if part.thought_signature:
            self._signature = part.thought_signature
        if self._is_thought:
            self.answer.reasoning(self._block, text)
        else:
            self.answer.text(self._block, text)

    def _end_block(self) -> None:
        if not self._block:
            return
        own: JsonObject | None = {"google": {"thoughtSignature": self._signature}} if self._signature else None
        (self.answer.close_reasoning if self._is_thought else self.answer.close_text)(self._block, own)
        self._block, self._signature = "", None

    def _call(self, call: _Call, signature: str | None) -> None:
        """A tool call, or further arguments of the open call: those have no name."""
        if call.name:
            self._end_call()
            self._end_block()
            self._writing = _OpenCall(call.id or self._next_call(), call.name, dict(call.args or {}))
            if signature or self._signature:
                self._writing.own["thoughtSignature"] = signature or self._signature
                self._signature = None
            if call.id:
                self._writing.own["callId"] = call.id
        elif self._writing is None and (call.args or call.partial_args):
            raise MalformedStream("a call has no name")
        if self._writing is not None:
            for piece in call.partial_args or ():
                partial_arguments.add(self._writing.given, piece)
        if not call.will_continue:
            self._end_call()

    def _end_call(self) -> None:
        written, self._writing = self._writing, None
        if written is not None:
            own = {"google": written.own} if written.own else None
            self.answer.call(written.call_id, written.name, written.given, metadata=own)

    def _next_call(self) -> str:
        call_id = f"tool_{self._calls}"
        self._calls += 1
        return call_id

    def _executed(self, result: Wire, whole: Wire) -> None:
        call_id, self._ran = self._ran, ""
        if not call_id:
            self._end_block()
            call_id = self._next_call()
            self.answer.call(call_id, "code_execution", {}, executed=True)
        if result.get("outcome") in ("OUTCOME_OK", None):
            self.answer.result(call_id, "code_execution", whole)
        else:
            said = codec.text_of(result.get("output")) or codec.text_of(result.get("outcome"))
            self.answer.result_failed(call_id, "code_execution", said, {"google": {"part": whole}})

    def _attached(self, inline: Wire, file: Wire) -> None:
        self._end_block()
        mime = codec.text_of(inline.get("mimeType") or file.get("mimeType"))
        data = codec.text_of(inline.get("data"))
        self.answer.file(mime, f"data:{mime};base64,{data}" if data else codec.text_of(file.get("fileUri")))

    def _cite(self, candidate: _Candidate) -> None:
        """Cite the pages and documents of a candidate, which repeats them in every chunk."""
        for chunk in codec.objects(_at(candidate.grounding_metadata, "groundingChunks")):
            found = next((one for one in chunk.values() if isinstance(one, dict)), {})
            self.answer.cite(
                found,
                url=found.get("uri"),
                title=found.get("title") or found.get("fileSearchStore") or found.get("text"),
            )
        for page in codec.objects(_at(candidate.url_context_metadata, "urlMetadata")):
            self.answer.cite(page, url=page.get("retrievedUrl"))
        for name in ("citationSources", "citations"):
            for cited in codec.objects(_at(candidate.citation_metadata, name)):
                self.answer.cite(cited, url=cited.get("uri"))

    def _count(self, usage: _Usage) -> None:
        thought = usage.thoughts_token_count or 0
        given = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
        said = (usage.candidates_token_count or 0) + thought
        self.answer.usage = Usage(
            input=given,
            output=said,
            reasoning=thought,
            cache_read=usage.cached_content_token_count or 0,
            total=usage.total_token_count if usage.total_token_count is not None else given + said,
        )


class _OpenCall:
    """A tool call whose arguments are incomplete."""

    def __init__(self, call_id: str, name: str, given: Wire) -> None:
        self.call_id, self.name, self.given = call_id, name, given
        self.own: Wire = {}


def _named(reason: str | int | None) -> str | None:
    if isinstance(reason, int):
        return _NUMBERED[reason] if 0 <= reason < len(_NUMBERED) else str(reason)
    return reason


def _tool(called: Wire) -> str:
    return codec.text_of(called.get("toolType")).lower() or "tool"


def _at(holder: object, name: str) -> object:
    return holder.get(name) if isinstance(holder, dict) else None
