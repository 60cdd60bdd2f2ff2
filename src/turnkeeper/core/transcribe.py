"""Transcribe: stream events in, facts and live deltas out. The Scribe keeps the open turn's blocks and calls.

It does nothing by itself: the shell feeds it what the provider said, appends the events it gives back and publishes
the deltas, in that order. Every part is recorded when it begins, text as empty and a call as pending, however much of
it arrived in the same packet. The deltas of a text add up to it. It is recorded whole when it closes; in between, text
becomes durable piece by piece (``checkpoint``).
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from turnkeeper.core.limits import CHECKPOINT_CHARS
from turnkeeper.core.lowering import INTERRUPTED
from turnkeeper.model import stream as s
from turnkeeper.model.event import Event, PartExtended, PartRecorded
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Delta
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import (
    RunningTime,
    SettledTime,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolProvider,
    ToolRunning,
    ToolState,
)
from turnkeeper.model.value import JsonObject, encode

ScribeOutput: TypeAlias = Event | Delta

NO_RESULT = "[The provider gave no result of this call in the same answer]"


class _Block:
    """Text or reasoning that is still being said."""

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
        """The part as it stands; while open, without the text that has not been saved yet."""
        text = "".join(self.pieces) if end is not None else ""
        return self.kind(
            id=self.part_id,
            session_id=message.session_id,
            message_id=message.id,
            text=text,
            metadata=self.metadata,
            time=Span(start=self.start, end=end),
        )


class Scribe:
    """What came of one attempt at a turn, as it comes."""

    def __init__(self, message: AssistantMessage, directory: str, part_id: Callable[[], str]) -> None:
        self._message, self._directory, self._part_id = message, directory, part_id
        self._blocks: dict[tuple[str, str], _Block] = {}
        self._tools: dict[str, ToolPart] = {}
        self._raw: dict[str, list[str]] = {}
        self._unrecorded: dict[str, _Block | ToolPart] = {}  # In the order in which they began, which is kept.
        self._acts: list[ScribeOutput] = []
        self._calls: list[ToolPart] = []
        self._seen: dict[str, None] = {}
        self.finish: s.FinishStep | None = None
        self.failure: Failure | None = None
        self.usage: s.Usage | None = None
        self.has_begun_tools = False
        self.has_output = False
        """Whether something was said or called; what was only thought is not for the user."""

    @property
    def recorded(self) -> Iterable[str]:
        """Ids of the parts this attempt recorded, in order."""
        return self._seen

    @property
    def has_open(self) -> bool:
        """Whether something is still being said."""
        return bool(self._blocks)

    def has_called(self, tool: str) -> bool:
        """Whether the answer has a call of this tool."""
        return any(part.tool == tool for part in self._tools.values())

    def feed(self, events: Iterable[s.StreamEvent], now: int) -> list[ScribeOutput]:
        """Take in what the provider said at once; what is to be appended and published for it, in order."""
        for event in events:
            self._feed(event, now)
        self._settle_batch(now)
        acts, self._acts = self._acts, []
        return acts

    def calls(self) -> list[ToolPart]:
        """Calls that became complete since last asked, recorded as running: start them."""
        calls, self._calls = self._calls, []
        return calls

    def checkpoint(self, now: int, *, age_ms: int = 0) -> list[Event]:
        """What to append so that text said until now (and at least ``age_ms`` ago) survives a kill."""
        return [
            self._save(block, now)
            for block in self._blocks.values()
            if block.part_id not in self._unrecorded and block.unsaved and now - block.saved_at >= age_ms
        ]

    def close(self, now: int) -> list[ScribeOutput]:
        """End what is still open: text as far as it came, calls that never became complete."""
        for block in list(self._blocks.values()):
            self._end(block, None, now)
        for call_id, part in list(self._tools.items()):
            hosted = part.provider is not None and part.provider.executed
            if hosted and isinstance(part.state, ToolRunning) and self.finish is not None:
                # The answer is whole: the provider gives the result in its next answer, or never.
                self._record(self._with(part, _without_result(part, part.state, now)))
            elif isinstance(part.state, ToolPending) or (hosted and isinstance(part.state, ToolRunning)):
                self._record(self._with(part, interrupted(part, now, self._raw_of(call_id))))
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
                self._record(self._new(StepStartPart))
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

    def _settle_batch(self, now: int) -> None:
        """After a batch: record what began in it and is still open, send its text, save what has grown large."""
        self._record_begun(None)
        for block in self._blocks.values():
            self._send(block)
            if block.length - block.saved >= CHECKPOINT_CHARS:
                self._acts.append(self._save(block, now))

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
        """The call that is being written under this id: a provider may use an id again once a call is complete."""
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
                return  # Said twice, meant once.
            self._raw.pop(event.id, None)
        part = self._tool(event.id, event.name, executed=event.executed)
        running = ToolRunning(
            input=arguments, raw=event.raw or self._raw_of(event.id) or None, time=RunningTime(start=now)
        )
        metadata = dict(event.metadata or {})
        if event.executed:
            metadata["providerExecuted"] = True
        part = part.but(tool=event.name, metadata=metadata or None)
        if event.executed:
            part = part.but(provider=ToolProvider(executed=True, metadata=event.metadata))
        part = self._with(part, running)
        self._record(part)
        self._raw.pop(event.id, None)
        if not event.executed:
            self._calls.append(part)
            self.has_begun_tools = True

    def _hosted(self, event: s.ToolResult | s.ToolFailed, now: int) -> None:
        part = self._tools.get(event.id)
        if part is None:
            return
        hosted = part.provider is not None and part.provider.executed
        match part.state:
            case ToolPending() if isinstance(event, s.ToolFailed):
                # The provider could not make sense of what the model wrote; the model is told, and may try again.
                time = SettledTime(start=now, end=now)
                state = ToolError(input={}, raw=self._raw_of(event.id) or None, error=event.error, time=time)
                self._record(self._with(part, state))
            case ToolRunning() as running if hosted:
                self._record(self._with(_resulted(part, event), _result(running, event, now)))
            case _:
                pass  # Our own calls are settled by who runs them, and a settled one stays as it is.

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

    def _new(self, kind: type[StepStartPart]) -> StepStartPart:
        return kind(id=self._part_id(), session_id=self._message.session_id, message_id=self._message.id)

    def _record(self, part: Part) -> None:
        self._record_begun(part.id)
        self._put(part)

    def _record_begun(self, part_id: str | None) -> None:
        """Record the beginning of a part and of all that began before it; None: of all that began.

        So the order of parts is the order in which they began. A part that was never announced begins now, behind all
        others; one whose beginning is on record changes nothing.
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


def _resulted(part: ToolPart, event: s.ToolResult | s.ToolFailed) -> ToolPart:
    provider = part.provider or ToolProvider(executed=True)
    return part.but(provider=provider.but(result_metadata=event.metadata))


def _result(running: ToolRunning, event: s.ToolResult | s.ToolFailed, now: int) -> ToolState:
    """What became of a call that the provider ran itself."""
    time = SettledTime(start=running.time.start, end=now)
    if isinstance(event, s.ToolFailed):
        return ToolError(input=running.input, raw=running.raw, error=event.error, time=time)
    return ToolCompleted(
        input=running.input,
        raw=running.raw,
        output=event.output if isinstance(event.output, str) else encode(event.output).decode(),
        title=event.name,
        metadata={},
        time=time,
        structured=event.output,
    )


def _without_result(part: ToolPart, running: ToolRunning, now: int) -> ToolCompleted:
    """How a hosted call is settled that an otherwise whole answer has no result of."""
    return ToolCompleted(
        input=running.input,
        raw=running.raw,
        output=NO_RESULT,
        title=part.tool,
        metadata={},
        time=SettledTime(start=running.time.start, end=now),
    )


def interrupted(part: ToolPart, now: int, raw: str = "") -> ToolError:
    """How a call that will never be finished is settled; what it had put out so far is kept for the model."""
    state = part.state
    start = state.time.start if isinstance(state, ToolRunning) else now
    metadata = dict(state.metadata or {}) if isinstance(state, ToolRunning) else {}
    return ToolError(
        input=state.input,
        raw=(raw or getattr(state, "raw", None)) or None,
        error=INTERRUPTED,
        metadata={**metadata, "interrupted": True},
        time=SettledTime(start=start, end=now),
    )
