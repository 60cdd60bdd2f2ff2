"""Answer: builds the stream events of an answer in a valid order, also if the provider sends them in another.

Blocks open before their first delta and close once; deltas are never empty; a tool call has a start, deltas, an end and
the whole call; one ``finish`` or one ``error`` is last.
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


class _OpenCall(msgspec.Struct):
    """A tool call whose input is incomplete."""

    name: str
    executed: bool
    pieces: list[str]


class AnswerStream:
    """Collects the stream events of one answer."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.usage: Usage | None = None
        self.is_over = False
        self.has_calls = False
        self.has_said = False
        self._texts: dict[str, None] = {}
        self._reasonings: dict[str, None] = {}
        self._calls: dict[str, _OpenCall] = {}
        self._closed: set[str] = set()
        self._awaited: set[str] = set()
        self._cited: list[JsonObject] = []
        self._uncited = 0
        """Number of sources, at the end of ``_cited``, that no text block has in its metadata yet."""

    def take(self) -> list[StreamEvent]:
        """The events since the previous call."""
        events, self.events = self.events, []
        return events

    def open_text(self, block: str, metadata: JsonObject | None = None) -> None:
        """Open a text block."""
        self._fresh(block)
        self._texts[block] = None
        self.events.append(TextStart(id=block, metadata=metadata))

    def text(self, block: str, text: str) -> None:
        """Add text to a block, which is opened if it is not open."""
        if text:
            if block not in self._texts:
                self.open_text(block)
            self.has_said = True
            self.events.append(TextDelta(id=block, text=text))

    def close_text(self, block: str, metadata: JsonObject | None = None) -> None:
        """Close a text block if it is open."""
        if block in self._texts:
            del self._texts[block]
            self._closed.add(block)
            if self._uncited:
                metadata = {**(metadata or {}), SOURCES: self._cited[-self._uncited :]}
                self._uncited = 0
            self.events.append(TextEnd(id=block, metadata=metadata))

    def cite(self, source: JsonObject, *, url: object = None, title: object = None) -> None:
        """Add a source of the answer; the next text block that closes has it in its metadata.

        ``url`` and ``title`` are for providers with other field names.
        """
        named = {"url": url, "title": title}
        source = {**source, **{key: value for key, value in named.items() if isinstance(value, str) and value}}
        if source not in self._cited:
            self._cited.append(source)
            self._uncited += 1

    def file(self, mime: str, url: str) -> None:
        """Add a file that the model generated, as a ``data:`` URL or a URL to fetch it from."""
        self.has_said = True
        self.events.append(File(mime=mime, url=url))

    def has_text(self, block: str) -> bool:
        """Whether a text block was opened."""
        return block in self._texts or block in self._closed

    def open_reasoning(self, block: str, metadata: JsonObject | None = None) -> None:
        """Open a reasoning block."""
        self._fresh(block)
        self._reasonings[block] = None
        self.events.append(ReasoningStart(id=block, metadata=metadata))

    def reasoning(self, block: str, text: str) -> None:
        """Add reasoning to a block, which is opened if it is not open."""
        if text:
            if block not in self._reasonings:
                self.open_reasoning(block)
            self.events.append(ReasoningDelta(id=block, text=text))

    def close_reasoning(self, block: str, metadata: JsonObject | None = None) -> None:
        """Close a reasoning block if it is open."""
        if block in self._reasonings:
            del self._reasonings[block]
            self._closed.add(block)
            self.events.append(ReasoningEnd(id=block, metadata=metadata))

    def open_call(self, call_id: str, name: str, *, executed: bool = False) -> None:
        """Open a tool call. ``executed``: the provider runs it."""
        if not call_id or not name:
            raise MalformedStream(f"a call has no {'id' if name else 'name'}")
        self._fresh(call_id)
        self._calls[call_id] = _OpenCall(name, executed, [])
        self.events.append(ToolInputStart(id=call_id, name=name, executed=executed))

    def call_input(self, call_id: str, text: str) -> None:
        """Add text to the input of an open tool call."""
        if text:
            if call_id not in self._calls:
                raise MalformedStream(f"there is input for the call {call_id!r}, which is not open")
            self._calls[call_id].pieces.append(text)
            self.events.append(ToolInputDelta(id=call_id, text=text))

    def close_call(
        self, call_id: str, *, raw: str = "", given: JsonObject | None = None, metadata: JsonObject | None = None
    ) -> None:
        """Close a tool call. ``raw`` is the whole input, if the protocol repeats it; ``given`` is the input of the
        start event, used if there were no deltas.
        """
        call = self._calls.pop(call_id, None)
        if call is None:
            raise MalformedStream(f"the call {call_id!r} ends without a beginning")
        self._closed.add(call_id)
        written = "".join(call.pieces)
        if not raw and not written and given:
            raw = encode(given).decode()
        if raw and not written:
            self.events.append(ToolInputDelta(id=call_id, text=raw))
        raw = raw or written
        self.events.append(ToolInputEnd(id=call_id))
        self.has_calls = self.has_calls or not call.executed
        if call.executed:
            self._awaited.add(call_id)
        self.has_said = True
        is_object, parsed = parse_input(raw)
        if not is_object:
            error = f"The input of {call.name} is not a JSON object: {raw[:RAW_SHOWN_MAX]!r}"
            self.events.append(ToolFailed(id=call_id, name=call.name, error=error, metadata=metadata))
            return
        self.events.append(
            ToolCall(id=call_id, name=call.name, input=parsed, raw=raw, executed=call.executed, metadata=metadata)
        )

    def call(
        self, call_id: str, name: str, given: object, *, executed: bool = False, metadata: JsonObject | None = None
    ) -> None:
        """Add a complete tool call."""
        self.open_call(call_id, name, executed=executed)
        self.close_call(call_id, raw=encode(given).decode(), metadata=metadata)

    def result(self, call_id: str, name: str, output: Json, metadata: JsonObject | None = None) -> None:
        """Add the result of a hosted tool call."""
        self._settle(call_id)
        self.events.append(ToolResult(id=call_id, name=name, output=output, metadata=metadata))

    def result_failed(self, call_id: str, name: str, error: str, metadata: JsonObject | None = None) -> None:
        """Add the error of a hosted tool call."""
        self._settle(call_id)
        self.events.append(ToolFailed(id=call_id, name=name, error=error, metadata=metadata))

    def item(self, item_id: str, kind: str, item: JsonObject, metadata: JsonObject) -> None:
        """Add an item of an unknown kind, stored whole as the result of a hosted tool call."""
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
        """End the answer. ``message`` is the provider's explanation of the reason."""
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
        """End the answer with an error."""
        self.events.append(StreamError(failure=failure, usage=self.usage))
        self.is_over = True

    def is_awaited(self, call_id: str) -> bool:
        """Whether a hosted call has no result yet."""
        return call_id in self._awaited

    def _settle(self, call_id: str) -> None:
        if call_id not in self._awaited:
            raise MalformedStream(f"there is a result for the call {call_id!r}, which awaits none")
        self._awaited.remove(call_id)

    def _fresh(self, name: str) -> None:
        if name in self._closed or name in self._texts or name in self._reasonings or name in self._calls:
            raise MalformedStream(f"{name!r} begins twice")


def parse_input(raw: str) -> tuple[bool, JsonObject]:
    """Whether a tool call's input is a JSON object, and the object. Blank input is an empty object."""
    if not raw.strip():
        return True, {}
    if is_too_deep(raw):
        return False, {}
    try:
        parsed = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False, {}
    return (True, parsed) if isinstance(parsed, dict) else (False, {})
