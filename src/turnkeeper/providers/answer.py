"""Answer: keeps the promises of the stream events, whatever a provider's wire does.

Blocks open before their first delta and close once; deltas are never empty; a call is announced, written and given
whole; one ``finish`` or one ``error`` is last.
"""

import msgspec

from turnkeeper.core.sources import SOURCES
from turnkeeper.core.storable import is_too_deep
from turnkeeper.model.failure import Failure
from turnkeeper.model.stream import (
    File,
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamError,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolFailed,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    Usage,
)
from turnkeeper.model.value import Json, JsonObject, encode

RAW_SHOWN_MAX = 400


class MalformedStream(Exception):
    """The stream contradicts itself or its protocol."""


class _Writing(msgspec.Struct):
    """A call while the model writes it."""

    name: str
    executed: bool
    pieces: list[str]


class AnswerStream:
    """The events of one answer, in the order in which they become known."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.usage: Usage | None = None
        self.is_over = False
        self.has_calls = False
        self.has_said = False
        self._texts: dict[str, None] = {}
        self._reasonings: dict[str, None] = {}
        self._calls: dict[str, _Writing] = {}
        self._closed: set[str] = set()
        self._awaited: set[str] = set()
        self._cited: list[JsonObject] = []
        self._uncited = 0
        """How many sources, at the end of the list, no text was closed with yet."""

    def take(self) -> list[StreamEvent]:
        """The events since the last time."""
        events, self.events = self.events, []
        return events

    def open_text(self, block: str, metadata: JsonObject | None = None) -> None:
        """A block of text begins."""
        self._fresh(block)
        self._texts[block] = None
        self.events.append(TextStart(id=block, metadata=metadata))

    def text(self, block: str, text: str) -> None:
        """More text; opens the block if it is not open."""
        if text:
            if block not in self._texts:
                self.open_text(block)
            self.has_said = True
            self.events.append(TextDelta(id=block, text=text))

    def close_text(self, block: str, metadata: JsonObject | None = None) -> None:
        """A block of text is complete. Nothing happens if it was never open."""
        if block in self._texts:
            del self._texts[block]
            self._closed.add(block)
            if self._uncited:
                metadata = {**(metadata or {}), SOURCES: self._cited[-self._uncited :]}
                self._uncited = 0
            self.events.append(TextEnd(id=block, metadata=metadata))

    def cite(self, source: JsonObject, *, url: object = None, title: object = None) -> None:
        """Name a source of the answer once; the next text that closes carries it. ``url`` and ``title`` are set where
        the provider has other words for them.
        """
        named = {"url": url, "title": title}
        source = {**source, **{key: value for key, value in named.items() if isinstance(value, str) and value}}
        if source not in self._cited:
            self._cited.append(source)
            self._uncited += 1

    def file(self, mime: str, url: str) -> None:
        """A file that the model made, as a ``data:`` address or one to fetch it from."""
        self.has_said = True
        self.events.append(File(mime=mime, url=url))

    def has_text(self, block: str) -> bool:
        """Whether this block was opened."""
        return block in self._texts or block in self._closed

    def open_reasoning(self, block: str, metadata: JsonObject | None = None) -> None:
        """A block of reasoning begins."""
        self._fresh(block)
        self._reasonings[block] = None
        self.events.append(ReasoningStart(id=block, metadata=metadata))

    def reasoning(self, block: str, text: str) -> None:
        """More reasoning; opens the block if it is not open."""
        if text:
            if block not in self._reasonings:
                self.open_reasoning(block)
            self.events.append(ReasoningDelta(id=block, text=text))

    def close_reasoning(self, block: str, metadata: JsonObject | None = None) -> None:
        """A block of reasoning is complete. Nothing happens if it was never open."""
        if block in self._reasonings:
            del self._reasonings[block]
            self._closed.add(block)
            self.events.append(ReasoningEnd(id=block, metadata=metadata))

    def open_call(self, call_id: str, name: str, *, executed: bool = False) -> None:
        """The model begins to write a call."""
        if not call_id or not name:
            raise MalformedStream(f"a call has no {'id' if name else 'name'}")
        self._fresh(call_id)
        self._calls[call_id] = _Writing(name, executed, [])
        self.events.append(ToolInputStart(id=call_id, name=name, executed=executed))

    def call_input(self, call_id: str, text: str) -> None:
        """More of a call's input."""
        if text:
            writing = self._calls.get(call_id)
            if writing is None:
                raise MalformedStream(f"there is input for the call {call_id!r}, which is not open")
            writing.pieces.append(text)
            self.events.append(ToolInputDelta(id=call_id, text=text))

    def close_call(
        self, call_id: str, *, raw: str = "", given: JsonObject | None = None, metadata: JsonObject | None = None
    ) -> None:
        """The call is complete. ``raw``, where the protocol repeats the input, wins over the pieces; ``given`` is
        what was said with the beginning, and counts if no pieces came.
        """
        writing = self._calls.pop(call_id, None)
        if writing is None:
            raise MalformedStream(f"the call {call_id!r} ends without a beginning")
        self._closed.add(call_id)
        written = "".join(writing.pieces)
        if not raw and not written and given:
            raw = encode(given).decode()
        if raw and not written:
            self.events.append(ToolInputDelta(id=call_id, text=raw))
        raw = raw or written
        self.events.append(ToolInputEnd(id=call_id))
        self.has_calls = self.has_calls or not writing.executed
        if writing.executed:
            self._awaited.add(call_id)
        self.has_said = True
        understood, parsed = parse_input(raw)
        if not understood:
            error = f"The input of {writing.name} is not a JSON object: {raw[:RAW_SHOWN_MAX]!r}"
            self.events.append(ToolFailed(id=call_id, name=writing.name, error=error, metadata=metadata))
            return
        self.events.append(
            ToolCall(id=call_id, name=writing.name, input=parsed, raw=raw, executed=writing.executed, metadata=metadata)
        )

    def call(
        self, call_id: str, name: str, given: object, *, executed: bool = False, metadata: JsonObject | None = None
    ) -> None:
        """A call that comes whole."""
        self.open_call(call_id, name, executed=executed)
        self.close_call(call_id, raw=encode(given).decode(), metadata=metadata)

    def result(self, call_id: str, name: str, output: Json, metadata: JsonObject | None = None) -> None:
        """What a tool gave that the provider ran."""
        self._settle(call_id)
        self.events.append(ToolResult(id=call_id, name=name, output=output, metadata=metadata))

    def result_failed(self, call_id: str, name: str, error: str, metadata: JsonObject | None = None) -> None:
        """A tool that the provider ran has failed."""
        self._settle(call_id)
        self.events.append(ToolFailed(id=call_id, name=name, error=error, metadata=metadata))

    def item(self, item_id: str, kind: str, item: JsonObject, metadata: JsonObject) -> None:
        """An item of the provider's own kind, neither text nor a call: kept whole, like the result of a hosted tool."""
        self.call(item_id, kind, {}, executed=True, metadata=metadata)
        self.result(item_id, kind, item)

    def close_blocks(self) -> None:
        """Close every open block and call, in the order in which they opened."""
        for block in tuple(self._reasonings):
            self.close_reasoning(block)
        for block in tuple(self._texts):
            self.close_text(block)
        for call_id in tuple(self._calls):
            self.close_call(call_id)

    def finish(
        self, reason: str, metadata: JsonObject | None = None, *, message: str | None = None, is_paused: bool = False
    ) -> None:
        """The answer is over. ``message`` is the provider's explanation of the reason."""
        self.close_blocks()
        if self._uncited:
            self.open_text(SOURCES)
            self.close_text(SOURCES)
        if reason == "stop" and self.has_calls:
            reason = "tool-calls"
        self.events.append(
            FinishStep(reason=reason, message=message, is_paused=is_paused, usage=self.usage, metadata=metadata)
        )
        self.events.append(Finish())
        self.is_over = True

    def fail(self, failure: Failure) -> None:
        """The answer broke off."""
        self.events.append(StreamError(failure=failure, usage=self.usage))
        self.is_over = True

    def is_awaited(self, call_id: str) -> bool:
        """Whether the result of this hosted call is still to come."""
        return call_id in self._awaited

    def _settle(self, call_id: str) -> None:
        if call_id not in self._awaited:
            raise MalformedStream(f"there is a result for the call {call_id!r}, which awaits none")
        self._awaited.remove(call_id)

    def _fresh(self, name: str) -> None:
        if name in self._closed or name in self._texts or name in self._reasonings or name in self._calls:
            raise MalformedStream(f"{name!r} begins twice")


def parse_input(raw: str) -> tuple[bool, JsonObject]:
    """Whether a call's input is a JSON object, and the object. No input at all is an empty object."""
    if not raw.strip():
        return True, {}
    if is_too_deep(raw):
        return False, {}
    try:
        parsed = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False, {}
    return (True, parsed) if isinstance(parsed, dict) else (False, {})
