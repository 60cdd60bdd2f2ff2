"""Google Gemini, the answer: pieces of a candidate become stream events."""

import msgspec

from turnkeeper.model.stream import Usage
from turnkeeper.model.value import JsonObject
from turnkeeper.providers import codec
from turnkeeper.providers.codec import Wire


class _Call(msgspec.Struct):
    name: str = ""
    id: str | None = None
    args: dict[str, object] | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Call | None = None
    executable_code: dict[str, object] | None = None
    code_execution_result: dict[str, object] | None = None
    inline_data: dict[str, object] | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    index: int = 0
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: dict[str, object] | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


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
_BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE")
_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_FILTERED, "content-filter"),
    **dict.fromkeys(_BROKEN, "error"),
}


class Reader(codec.Reader):
    """Reads the chunks of one answer."""

    def __init__(self, provider_id: str = "") -> None:
        super().__init__(provider_id)
        self._block = ""
        self._blocks = 0
        self._is_thought = False
        self._signature: str | None = None
        self._calls = 0
        self._ran = ""
        self._reason: str | None = None
        self._said: Wire = {}

    def read(self, name: bytes, data: bytes) -> None:
        """Take in one chunk."""
        chunk = codec.decode(_decoder, data)
        if chunk.error is not None:
            self.fail_with(msgspec.json.decode(data))
            return
        if chunk.usage_metadata is not None:
            self._count(chunk.usage_metadata)
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._reason = "SAFETY"
            self._said["blockReason"] = chunk.prompt_feedback.block_reason
        for candidate in chunk.candidates or ():
            if candidate.index:
                continue  # We ask for one answer.
            if candidate.content is not None:
                for part in candidate.content.parts or ():
                    self._part(part)
            if candidate.grounding_metadata:
                self._said["groundingMetadata"] = candidate.grounding_metadata
            if candidate.finish_reason:
                self._reason = candidate.finish_reason
                if _REASONS.get(candidate.finish_reason) != "stop":
                    self._said["finishReason"] = candidate.finish_reason
                if candidate.finish_message:
                    self._said["finishMessage"] = candidate.finish_message

    def complete(self) -> bool:
        """The protocol has no last event: the stream ends, and a finish reason was given or it was not."""
        if self._reason is None:
            return False
        self._end_block()
        self.answer.finish(_REASONS.get(self._reason, "unknown"), {"google": self._said} if self._said else None)
        return True

    def _part(self, part: _Part) -> None:
        if part.function_call is not None:
            self._call(part.function_call, part.thought_signature)
        elif part.text is not None:
            self._words(part)
        elif part.executable_code is not None:
            self._end_block()
            self._ran = self._next_call()
            own = {"google": {"part": {"executableCode": part.executable_code}}}
            self.answer.call(self._ran, "code_execution", part.executable_code, executed=True, metadata=own)
        elif part.code_execution_result is not None:
            self._executed(part.code_execution_result)
        elif part.inline_data is not None:
            self._attached(part.inline_data)
        elif part.thought_signature:
            self._signature = part.thought_signature

    def _words(self, part: _Part) -> None:
        text = part.text or ""
        if self._block and self._is_thought != part.thought and (text or not part.thought_signature):
            self._end_block()
        if not self._block and (text or part.thought_signature):
            self._is_thought = part.thought
            self._block = f"{'reasoning' if part.thought else 'text'}-{self._blocks}"
            self._blocks += 1
            # Opened even without words: a signature must have a place to be kept.
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
        self._end_block()
        own: Wire = {}
        if signature or self._signature:
            own["thoughtSignature"] = signature or self._signature
            self._signature = None
        if call.id:
            own["callId"] = call.id
        call_id = call.id or self._next_call()
        self.answer.call(call_id, call.name, call.args or {}, metadata={"google": own} if own else None)

    def _next_call(self) -> str:
        call_id = f"tool_{self._calls}"
        self._calls += 1
        return call_id

    def _executed(self, result: dict[str, object]) -> None:
        call_id, self._ran = self._ran, ""
        if not call_id:
            self._end_block()
            call_id = self._next_call()
            self.answer.call(call_id, "code_execution", {}, executed=True)
        if result.get("outcome") in ("OUTCOME_OK", None):
            self.answer.result(call_id, "code_execution", {"codeExecutionResult": result})
        else:
            said = codec.text_of(result.get("output")) or codec.text_of(result.get("outcome"))
            own = {"google": {"part": {"codeExecutionResult": result}}}
            self.answer.result_failed(call_id, "code_execution", said, own)

    def _attached(self, inline: dict[str, object]) -> None:
        mime, size = codec.text_of(inline.get("mimeType")), len(codec.text_of(inline.get("data"))) * 3 // 4
        self._words(_Part(text=f"[The model sent a file of type {mime}, {size} bytes, which cannot be kept.]"))

    def _count(self, usage: _Usage) -> None:
        thought = usage.thoughts_token_count or 0
        given = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
        said = usage.candidates_token_count + thought if usage.candidates_token_count is not None else thought
        self.answer.usage = Usage(
            input=given,
            output=said,
            reasoning=thought,
            cache_read=usage.cached_content_token_count or 0,
            total=usage.total_token_count if usage.total_token_count is not None else given + said,
        )
