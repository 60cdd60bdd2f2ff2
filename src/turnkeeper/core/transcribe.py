"""Scribe: turns the stream events of a provider into events to append and deltas to publish, in that order.

Every part is recorded when it begins: text as empty, a call as pending. The deltas of a text add up to the text. A text
is recorded whole when it ends; until then ``checkpoint`` makes it durable piece by piece.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from turnkeeper.core.limits import CHECKPOINT_CHARS
from turnkeeper.core.lowering import INTERRUPTED
from turnkeeper.core.settling import completed, failed
from turnkeeper.model import stream as s
from turnkeeper.model.event import Event, PartExtended, PartRecorded
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Delta
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import RunningTime, ToolError, ToolPending, ToolProvider, ToolRunning, ToolState
from turnkeeper.model.value import JsonObject, encode

ScribeOutput: TypeAlias = Event | Delta

NO_RESULT = "[The provider gave no result of this call in the same answer]"


class _Block:
    """A text or reasoning part that is still open."""

    def __init__(self, kind: type[TextPart] | type[ReasoningPart], part_id: str, now: int) -> None:
        self.kind, self.part_id, self.start = kind, part_id, now
        self.metadata: JsonObject | None = None
        self.pieces: list[str] = []
        self.length = 0
        self.unsent: list[str] = []
        self.sent = 0
        self.unsaved: list[str] = []
        self.saved = 0
        self.saved_at = now

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.unsent.append(text)
        self.unsaved.append(text)
        self.length += len(text)

    def part(self, message: AssistantMessage, end: int | None = None) -> TextPart | ReasoningPart:
        """The part; without text unless it has an ``end``."""
        return self.kind(
            id=self.part_id,
            session_id=message.session_id,
            message_id=message.id,
            text="".join(self.pieces) if end is not None else "",
            metadata=self.metadata,
            time=Span(start=self.start, end=end),
        )


class Scribe:
    """Transcribes one attempt at a turn; keeps its open blocks and its calls."""

    def __init__(
        self,
        message: AssistantMessage,
        directory: str,
        part_id: Callable[[], str],
        snapshot: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``snapshot`` is the snapshot before the turn's calls, once it is known."""
        self._message, self._directory, self._part_id, self._snapshot = message, directory, part_id, snapshot
        self._step: StepStartPart | None = None
        self._blocks: dict[tuple[str, str], _Block] = {}
        self._tools: dict[str, ToolPart] = {}
        self._raw: dict[str, list[str]] = {}
        self._unrecorded: dict[str, _Block | ToolPart] = {}  # In the order in which they began.
        self._acts: list[ScribeOutput] = []
        self._calls: list[ToolPart] = []
        self._seen: dict[str, None] = {}
        self.finish: s.FinishStep | None = None
        self.failure: Failure | None = None
        self.usage: s.Usage | None = None
        self.has_begun_tools = False
        self.has_output = False
        """Whether there is text, a file or a call; reasoning does not count."""

    @property
    def recorded(self) -> Iterable[str]:
        """Ids of the parts this attempt recorded, in order."""
        return self._seen

    @property
    def has_open(self) -> bool:
        """Whether a text or reasoning part is open."""
        return bool(self._blocks)

    def has_called(self, tool: str) -> bool:
        """Whether the answer has a call of this tool."""
        return any(part.tool == tool for part in self._tools.values())

    def feed(self, events: Iterable[s.StreamEvent], now: int) -> list[ScribeOutput]:
        """The events to append and the deltas to publish for a portion of the stream, in order."""
        for event in events:
            self._feed(event, now)
        self._record_begun(None)
        for block in self._blocks.values():
            self._send(block)
            if block.length - block.saved >= CHECKPOINT_CHARS:
                self._acts.append(self._save(block, now))
        return self._taken()

    def snapshot_known(self) -> list[Event]:
        """The event that records the snapshot, if it became known after the step began."""
        if self._step is None or self._step.snapshot == (snapshot := self._snapshot()):
            return []
        self._step = self._step.but(snapshot=snapshot)
        return [PartRecorded(part=self._step)]

    def calls(self) -> list[ToolPart]:
        """The calls that became complete since the last call of this method, recorded as running."""
        calls, self._calls = self._calls, []
        return calls

    def checkpoint(self, now: int, *, age_ms: int = 0) -> list[Event]:
        """The events that make text durable that has been unsaved for at least ``age_ms``."""
        return [
            self._save(block, now)
            for block in self._blocks.values()
            if block.part_id not in self._unrecorded and block.unsaved and now - block.saved_at >= age_ms
        ]

    def close(self, now: int) -> list[ScribeOutput]:
        """End the open parts: text that is not finished, and calls without complete input."""
        for block in list(self._blocks.values()):
            self._end(block, None, now)
        for call_id, part in list(self._tools.items()):
            lacks_result = part.is_hosted and isinstance(part.state, ToolRunning)
            if lacks_result and self.finish is not None:
                # The answer is complete: the provider gives the result in its next answer, or never.
                self._record(self._with(part, completed(part, now, NO_RESULT, title=part.tool, metadata={})))
            elif lacks_result or isinstance(part.state, ToolPending):
                self._record(self._with(part, interrupted(part, now, self._raw_of(call_id))))
        return self._taken()

    def _taken(self) -> list[ScribeOutput]:
        acts, self._acts = self._acts, []
        return acts

    def _feed(self, event: s.StreamEvent, now: int) -> None:
        match event:
            case s.TextDelta(id=block_id, text=text):
                self._say(self._block("text", block_id, now), text)
            case s.ReasoningDelta(id=block_id, text=text):
                self._say(self._block("reasoning", block_id, now), text)
            case s.TextStart(id=block_id, metadata=metadata):
                self._block("text", block_id, now).metadata = metadata
            case s.ReasoningStart(id=block_id, metadata=metadata):
                self._block("reasoning", block_id, now).metadata = metadata
            case s.TextEnd(id=block_id, metadata=metadata):
                self._end(self._blocks.get(("text", block_id)), metadata, now)
            case s.ReasoningEnd(id=block_id, metadata=metadata):
                self._end(self._blocks.get(("reasoning", block_id)), metadata, now)
            case s.ToolInputStart(id=call_id, name=name, executed=executed):
                if call_id not in self._tools:
                    self._tool(call_id, name, executed=executed)
            case s.ToolInputDelta(id=call_id, text=text):
                self._raw.setdefault(call_id, []).append(text)
            case s.ToolInputEnd():
                pass
            case s.ToolCall():
                self._called(event, now)
            case s.ToolResult() | s.ToolFailed():
                self._hosted(event, now)
            case s.File(mime=mime, url=url):
                self._made(mime, url)
            case s.StartStep():
                self._step = StepStartPart(
                    id=self._part_id(),
                    session_id=self._message.session_id,
                    message_id=self._message.id,
                    snapshot=self._snapshot(),
                )
                self._record(self._step)
            case s.UsageCounted(usage=usage):
                self.usage = usage
            case s.FinishStep():
                self.finish, self.usage = event, event.usage or self.usage
            case s.StreamError(failure=failure, usage=usage):
                self.failure, self.usage = failure, usage or self.usage
            case s.Start() | s.Finish():
                pass

    # Blocks of text.

    def _block(self, kind: str, block_id: str, now: int) -> _Block:
        block = self._blocks.get((kind, block_id))
        if block is None:
            part = TextPart if kind == "text" else ReasoningPart
            block = self._blocks[kind, block_id] = _Block(part, self._part_id(), now)
        return block

    def _say(self, block: _Block, text: str) -> None:
        if not block.length:
            self._unrecorded[block.part_id] = block
        block.add(text)
        self.has_output = self.has_output or (block.kind is TextPart and not text.isspace())

    def _end(self, block: _Block | None, metadata: JsonObject | None, now: int) -> None:
        if block is None:
            return
        self._blocks = {key: one for key, one in self._blocks.items() if one is not block}
        if metadata is not None:
            block.metadata = metadata
        if not block.length and not block.metadata:
            return
        self._record_begun(block.part_id)
        self._send(block)
        self._put(block.part(self._message, end=now))

    def _send(self, block: _Block) -> None:
        if not block.unsent:
            return
        text = "".join(block.unsent)
        self._acts.append(
            Delta(
                session_id=self._message.session_id,
                directory=self._directory,
                message_id=self._message.id,
                part_id=block.part_id,
                field="text",
                delta=text,
                offset=block.sent,
                kind="text" if block.kind is TextPart else "reasoning",
            )
        )
        block.sent += len(text)
        block.unsent.clear()

    def _save(self, block: _Block, now: int) -> PartExtended:
        text = "".join(block.unsaved)
        event = PartExtended(message_id=self._message.id, part_id=block.part_id, offset=block.saved, text=text)
        block.saved += len(text)
        block.saved_at = now
        block.unsaved.clear()
        return event

    # Tool calls.

    def _tool(self, call_id: str, name: str, *, executed: bool) -> ToolPart:
        """The pending call with this id, or a new one: a provider may reuse the id of a complete call."""
        part = self._tools.get(call_id)
        if part is None or not isinstance(part.state, ToolPending):
            part = ToolPart(
                id=self._part_id(),
                session_id=self._message.session_id,
                message_id=self._message.id,
                call_id=call_id,
                tool=name,
                state=ToolPending(input={}, raw=""),
                metadata={"providerExecuted": True} if executed else None,
                provider=ToolProvider(executed=True) if executed else None,
            )
            self._tools[call_id] = self._unrecorded[part.id] = part
        return part

    def _called(self, event: s.ToolCall, now: int) -> None:
        arguments: JsonObject = event.input if isinstance(event.input, dict) else {"value": event.input}
        known = self._tools.get(event.id)
        if known is not None and not isinstance(known.state, ToolPending):
            if (known.tool, known.state.input) == (event.name, arguments):
                return  # The provider repeats a call.
            self._raw.pop(event.id, None)
        part = self._tool(event.id, event.name, executed=event.executed)
        metadata = dict(event.metadata or {})
        if event.executed:
            metadata["providerExecuted"] = True
            part = part.but(provider=ToolProvider(executed=True, metadata=event.metadata))
        raw = event.raw or self._raw_of(event.id) or None
        running = ToolRunning(input=arguments, raw=raw, time=RunningTime(start=now))
        part = self._with(part.but(tool=event.name, metadata=metadata or None), running)
        self._record(part)
        self._raw.pop(event.id, None)
        if not event.executed:
            self._calls.append(part)
            self.has_begun_tools = True

    def _hosted(self, event: s.ToolResult | s.ToolFailed, now: int) -> None:
        part = self._tools.get(event.id)
        if part is None:
            return
        match part.state:
            case ToolPending() if isinstance(event, s.ToolFailed):
                # The provider could not parse the call; the model reads the error and may try again.
                state = failed(part, now, event.error, {}).but(raw=self._raw_of(event.id) or None)
                self._record(self._with(part, state))
            case ToolRunning() if part.provider is not None and part.provider.executed:
                provider = part.provider.but(result_metadata=event.metadata)
                self._record(self._with(part.but(provider=provider), _result(part, event, now)))
            case _:
                pass  # Other calls are settled where they run, and a settled call does not change.

    def _with(self, part: ToolPart, state: ToolState) -> ToolPart:
        part = part.but(state=state)
        self._tools[part.call_id] = part
        return part

    def _raw_of(self, call_id: str) -> str:
        return "".join(self._raw.get(call_id, ()))

    def _made(self, mime: str, url: str) -> None:
        session_id, message_id = self._message.session_id, self._message.id
        self._record(FilePart(id=self._part_id(), session_id=session_id, message_id=message_id, mime=mime, url=url))
        self.has_output = True

    def _record(self, part: Part) -> None:
        self._record_begun(part.id)
        self._put(part)

    def _record_begun(self, part_id: str | None) -> None:
        """Record the beginning of a part after all that began before it; None records all that began.

        So parts are recorded in the order in which they began. A part that is on record changes nothing.
        """
        if part_id in self._seen:
            return
        while self._unrecorded:
            first = next(iter(self._unrecorded))
            begun = self._unrecorded.pop(first)
            self._put(begun.part(self._message) if isinstance(begun, _Block) else begun)
            if first == part_id:
                return

    def _put(self, part: Part) -> None:
        self._seen[part.id] = None
        self.has_output = self.has_output or isinstance(part, ToolPart)
        self._acts.append(PartRecorded(part=part))


def _result(part: ToolPart, event: s.ToolResult | s.ToolFailed, now: int) -> ToolState:
    """The final state of a hosted call."""
    if isinstance(event, s.ToolFailed):
        return failed(part, now, event.error, {})
    output = event.output if isinstance(event.output, str) else encode(event.output).decode()
    return completed(part, now, output, title=event.name, metadata={}).but(structured=event.output)


def interrupted(part: ToolPart, now: int, raw: str = "") -> ToolError:
    """The state of a call that will not be finished, with its output so far, which the model is shown."""
    return failed(part, now, INTERRUPTED, {"interrupted": True}).but(raw=raw or part.state.raw or None)
