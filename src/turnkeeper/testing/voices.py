"""Voices: encode text, reasoning, calls, failures and the end of an answer in each of the four protocols."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from turnkeeper.model.failure import Failure
from turnkeeper.model.stream import Usage
from turnkeeper.model.value import Json
from turnkeeper.providers.script import Calls
from turnkeeper.testing.wire import Voice, cut_up, fault, sse


class AnthropicVoice:
    """Anthropic Messages."""

    _STOP: Final = {"stop": "end_turn", "tool-calls": "tool_use", "length": "max_tokens", "content-filter": "refusal"}

    def __init__(self, model: str, number: int, usage: Usage | None) -> None:
        self._model, self._id, self._usage, self._index = model, f"msg_{number}", usage or Usage(), -1

    def begin(self) -> Iterator[bytes]:
        """The start, with the input tokens."""
        usage = self._usage
        counted = {
            "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": 1,
        }
        message = {"id": self._id, "type": "message", "role": "assistant", "model": self._model, "content": []}
        yield self._event(
            "message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": counted}
        )
        yield self._event("ping")

    def says(self, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """A text block."""
        yield self._open({"type": "text", "text": ""})
        yield from (self._delta(type="text_delta", text=piece) for piece in pieces)
        yield self._close()

    def thinks(self, pieces: tuple[str, ...], signature: str | None) -> Iterator[bytes]:
        """A thinking block, signed."""
        yield self._open({"type": "thinking", "thinking": "", "signature": ""})
        yield from (self._delta(type="thinking_delta", thinking=piece) for piece in pieces)
        if signature:
            yield self._delta(type="signature_delta", signature=signature)
        yield self._close()

    def calls(self, call_id: str, act: Calls) -> Iterator[bytes]:
        """A tool_use block; a server tool is followed by its result."""
        kind = "server_tool_use" if act.executed else "tool_use"
        yield self._open({"type": kind, "id": call_id, "name": act.name, "input": {}})
        yield from (self._delta(type="input_json_delta", partial_json=piece) for piece in cut_up(act.raw))
        yield self._close()
        if act.executed:
            yield self._open({"type": f"{act.name}_tool_result", "tool_use_id": call_id, "content": act.output})
            yield self._close()

    def fails(self, failure: Failure) -> Iterator[bytes]:
        """An error event."""
        yield sse(fault(failure, "anthropic"), event="error")

    def finish(self, reason: str, usage: Usage | None) -> Iterator[bytes]:
        """The stop reason and the output tokens."""
        counted = {"output_tokens": usage.output if usage else 0}
        delta = {"stop_reason": self._STOP.get(reason, reason), "stop_sequence": None}
        yield self._event("message_delta", delta=delta, usage=counted)
        yield self._event("message_stop")

    def _open(self, block: Json) -> bytes:
        self._index += 1
        return self._event("content_block_start", index=self._index, content_block=block)

    def _delta(self, **delta: Json) -> bytes:
        return self._event("content_block_delta", index=self._index, delta=delta)

    def _close(self) -> bytes:
        return self._event("content_block_stop", index=self._index)

    def _event(self, kind: str, **fields: Json) -> bytes:
        return sse({"type": kind, **fields}, event=kind)


class ChatVoice:
    """OpenAI Chat Completions."""

    _FINISH: Final = {
        "stop": "stop",
        "tool-calls": "tool_calls",
        "length": "length",
        "content-filter": "content_filter",
    }

    def __init__(self, model: str, number: int, usage: Usage | None) -> None:
        self._base = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._calls = 0

    def begin(self) -> Iterator[bytes]:
        """The role."""
        yield self._chunk({"role": "assistant", "content": ""})

    def says(self, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """Content."""
        yield from (self._chunk({"content": piece}) for piece in pieces)

    def thinks(self, pieces: tuple[str, ...], signature: str | None) -> Iterator[bytes]:
        """Reasoning content of compatible hosts, without a signature."""
        yield from (self._chunk({"reasoning_content": piece}) for piece in pieces)

    def calls(self, call_id: str, act: Calls) -> Iterator[bytes]:
        """A call in chunks with its index; the first has the id and the name."""
        assert not act.executed, "this protocol has no tools of the provider"
        index, self._calls = self._calls, self._calls + 1
        opening = {"index": index, "id": call_id, "type": "function", "function": {"name": act.name, "arguments": ""}}
        yield self._chunk({"tool_calls": [opening]})
        for piece in cut_up(act.raw):
            yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def fails(self, failure: Failure) -> Iterator[bytes]:
        """An error instead of a chunk."""
        yield sse(fault(failure, "openai-chat"))

    def finish(self, reason: str, usage: Usage | None) -> Iterator[bytes]:
        """The finish reason, the usage and the end marker."""
        yield self._chunk({}, self._FINISH.get(reason, reason))
        if usage is not None:
            counted = {
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "total_tokens": usage.input + usage.output if usage.total is None else usage.total,
                "prompt_tokens_details": {"cached_tokens": usage.cache_read},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            }
            yield sse({**self._base, "choices": [], "usage": counted})
        yield sse(b"[DONE]")

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        return sse({**self._base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


class ResponsesVoice:
    """OpenAI Responses."""

    def __init__(self, model: str, number: int, usage: Usage | None) -> None:
        self._base = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": model, "output": []}
        self._sequence = self._item = -1

    def begin(self) -> Iterator[bytes]:
        """The created response."""
        yield self._event("response.created", response={**self._base, "status": "in_progress"})
        yield self._event("response.in_progress", response={**self._base, "status": "in_progress"})

    def says(self, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """A message item with one part."""
        item = self._next({"type": "message", "role": "assistant", "status": "in_progress", "content": []}, "msg")
        yield self._added(item)
        place = {"item_id": item["id"], "output_index": self._item, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        yield self._event("response.content_part.added", **place, part=part)
        for piece in pieces:
            yield self._event("response.output_text.delta", **place, delta=piece, logprobs=[])
        whole = {**part, "text": "".join(pieces)}
        yield self._event("response.output_text.done", **place, text=whole["text"], logprobs=[])
        yield self._event("response.content_part.done", **place, part=whole)
        yield self._done({**item, "status": "completed", "content": [whole]})

    def thinks(self, pieces: tuple[str, ...], signature: str | None) -> Iterator[bytes]:
        """A reasoning item with one summary part and its encrypted content."""
        item = self._next({"type": "reasoning", "summary": []}, "rs")
        yield self._added(item)
        place = {"item_id": item["id"], "output_index": self._item, "summary_index": 0}
        yield self._event("response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""})
        for piece in pieces:
            yield self._event("response.reasoning_summary_text.delta", **place, delta=piece)
        whole = {"type": "summary_text", "text": "".join(pieces)}
        yield self._event("response.reasoning_summary_text.done", **place, text=whole["text"])
        yield self._event("response.reasoning_summary_part.done", **place, part=whole)
        yield self._done({**item, "summary": [whole], "encrypted_content": signature})

    def calls(self, call_id: str, act: Calls) -> Iterator[bytes]:
        """A function call item, or the item of a hosted tool."""
        if act.executed:
            hosted = self._next({"type": f"{act.name}_call", "status": "in_progress"}, "ws")
            yield self._added(hosted)
            action = msgspec.json.decode(act.raw)
            yield self._done({**hosted, "status": "completed", "action": action, "output": act.output})
            return
        item = self._next({"type": "function_call", "call_id": call_id, "name": act.name, "arguments": ""}, "fc")
        yield self._added(item)
        place = {"item_id": item["id"], "output_index": self._item}
        for piece in cut_up(act.raw):
            yield self._event("response.function_call_arguments.delta", **place, delta=piece)
        yield self._event("response.function_call_arguments.done", **place, name=act.name, arguments=act.raw)
        yield self._done({**item, "arguments": act.raw, "status": "completed"})

    def fails(self, failure: Failure) -> Iterator[bytes]:
        """A failed response."""
        body = fault(failure, "openai-responses")
        error = body.get("error", {}) if isinstance(body, dict) else {}
        coded = {"code": error.get("code") or error.get("type"), "message": error.get("message")}
        yield self._event("response.failed", response={**self._base, "status": "failed", "error": coded})

    def finish(self, reason: str, usage: Usage | None) -> Iterator[bytes]:
        """Completed, or incomplete with a reason."""
        response: dict[str, Json] = {**self._base, "status": "completed"}
        if usage is not None:
            response["usage"] = {
                "input_tokens": usage.input,
                "input_tokens_details": {"cached_tokens": usage.cache_read},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.input + usage.output if usage.total is None else usage.total,
            }
        why = {"length": "max_output_tokens", "content-filter": "content_filter"}.get(reason)
        if why is None:
            yield self._event("response.completed", response=response)
        else:
            response |= {"status": "incomplete", "incomplete_details": {"reason": why}}
            yield self._event("response.incomplete", response=response)

    def _next(self, item: Mapping[str, Json], prefix: str) -> dict[str, Json]:
        self._item += 1
        return {"id": f"{prefix}_{self._base['id']}_{self._item}", **item}

    def _added(self, item: Json) -> bytes:
        return self._event("response.output_item.added", output_index=self._item, item=item)

    def _done(self, item: Json) -> bytes:
        return self._event("response.output_item.done", output_index=self._item, item=item)

    def _event(self, kind: str, **fields: Json) -> bytes:
        self._sequence += 1
        return sse({"type": kind, "sequence_number": self._sequence, **fields}, event=kind)


class GeminiVoice:
    """Google Gemini."""

    _FINISH: Final = {"stop": "STOP", "tool-calls": "STOP", "length": "MAX_TOKENS", "content-filter": "SAFETY"}

    def __init__(self, model: str, number: int, usage: Usage | None) -> None:
        self._base = {"modelVersion": model, "responseId": f"response-{number}"}

    def begin(self) -> Iterator[bytes]:
        """No event: the first part begins the answer."""
        return iter(())

    def says(self, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """Text parts."""
        yield from (self._part({"text": piece}) for piece in pieces)

    def thinks(self, pieces: tuple[str, ...], signature: str | None) -> Iterator[bytes]:
        """Thoughts; the last one has the signature."""
        for number, piece in enumerate(pieces, start=1):
            signed = {"thoughtSignature": signature} if signature and number == len(pieces) else {}
            yield self._part({"text": piece, "thought": True, **signed})

    def calls(self, call_id: str, act: Calls) -> Iterator[bytes]:
        """A call in one part, without an id."""
        if act.executed:
            yield self._part({"executableCode": msgspec.json.decode(act.raw)})
            yield self._part({"codeExecutionResult": act.output})
        else:
            yield self._part({"functionCall": {"name": act.name, "args": msgspec.Raw((act.raw or "{}").encode())}})

    def fails(self, failure: Failure) -> Iterator[bytes]:
        """An error instead of a chunk."""
        yield sse(fault(failure, "gemini"))

    def finish(self, reason: str, usage: Usage | None) -> Iterator[bytes]:
        """The finish reason with the usage."""
        candidate = {"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0}
        chunk: dict[str, Json] = {
            "candidates": [{**candidate, "finishReason": self._FINISH.get(reason, reason)}],
            **self._base,
        }
        if usage is not None:
            chunk["usageMetadata"] = {
                "promptTokenCount": usage.input,
                "cachedContentTokenCount": usage.cache_read,
                "candidatesTokenCount": max(0, usage.output - usage.reasoning),
                "thoughtsTokenCount": usage.reasoning,
                "totalTokenCount": usage.input + usage.output if usage.total is None else usage.total,
            }
        yield sse(chunk)

    def _part(self, part: Json) -> bytes:
        return sse({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], **self._base})


VOICES: Final[Mapping[str, Callable[[str, int, Usage | None], Voice]]] = {
    "anthropic": AnthropicVoice,
    "openai-chat": ChatVoice,
    "openai-responses": ResponsesVoice,
    "gemini": GeminiVoice,
}
"""The voice of each protocol. Its arguments are the model, the number of the request and the usage."""
