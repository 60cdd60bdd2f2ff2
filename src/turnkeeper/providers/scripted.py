"""Scripted: the model that says what a test wrote. Deterministic, without network or time; shipped for plugin authors.

provider = Scripted().calls("bash", command="ls").then().says("two files")
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import assert_never

import anyio

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import (
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StartStep,
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
)
from turnkeeper.providers.answer import parse_input
from turnkeeper.providers.script import (
    Act,
    Calls,
    Cuts,
    Fails,
    Garbles,
    Hangs,
    Paces,
    Says,
    Script,
    ScriptedAnswer,
    Thinks,
    Waits,
    is_title,
    lost_connection,
    nonsense,
)

INPUT_PIECE = 24
"""How many characters of a call's input come at once."""


class Scripted(Script):
    """A Provider that plays a script and remembers what it was asked."""

    def __init__(self, *, is_title: Callable[[ModelRequest], bool] = is_title) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []
        self.closed = 0
        """How many answers were ended, by their last event or by their reader."""
        self._is_title = is_title
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The next answer of the script, each event by itself."""
        self.requests.append(request)
        answer = self.take(is_title=self._is_title(request))
        try:
            # Closed here and now: an inner generator left to itself is closed some time later.
            async with aclosing(self._play(answer)) as events:
                async for event in events:
                    yield [event]
        finally:
            self.closed += 1

    async def _play(self, answer: ScriptedAnswer) -> AsyncGenerator[StreamEvent, None]:
        yield Start(request_id=f"req_{len(self.requests)}")
        yield StartStep()
        pause_s = 0.0
        for number, act in enumerate(answer.acts):
            match act:
                case Waits(gate=gate):
                    await gate.pass_through()
                case Paces(seconds=pause_s):
                    pass
                case Hangs():
                    await anyio.sleep_forever()
                case Fails(failure=failure):
                    yield StreamError(failure=failure)
                    return
                case Cuts():
                    yield StreamError(failure=lost_connection())
                    return
                case Garbles(fault=fault):
                    yield StreamError(failure=nonsense(fault))
                    return
                case _:
                    for event in self._events(act, number):
                        await anyio.sleep(pause_s)
                        yield event
        is_paused = answer.finish == "pause"
        yield FinishStep(reason="stop" if is_paused else answer.finish, is_paused=is_paused, usage=answer.usage)
        yield Finish()

    def _events(self, act: Act, number: int) -> Iterator[StreamEvent]:
        match act:
            case Says(pieces=pieces):
                block = f"text-{number}"
                yield TextStart(id=block)
                yield from (TextDelta(id=block, text=piece) for piece in pieces)
                yield TextEnd(id=block)
            case Thinks(pieces=pieces, signature=signature):
                block = f"reasoning-{number}"
                yield ReasoningStart(id=block)
                yield from (ReasoningDelta(id=block, text=piece) for piece in pieces)
                yield ReasoningEnd(id=block, metadata={"scripted": {"signature": signature}} if signature else None)
            case Calls():
                yield from self._call(act)
            case Waits() | Paces() | Hangs() | Fails() | Cuts() | Garbles():
                raise AssertionError("these are played, not said")
            case _:
                assert_never(act)

    def _call(self, act: Calls) -> Iterator[StreamEvent]:
        self._calls += 1
        call_id, name, raw = act.id or f"call_{self._calls}", act.name, act.raw
        yield ToolInputStart(id=call_id, name=name, executed=act.executed)
        for start in range(0, len(raw), INPUT_PIECE):
            yield ToolInputDelta(id=call_id, text=raw[start : start + INPUT_PIECE])
        yield ToolInputEnd(id=call_id)
        understood, parsed = parse_input(raw)
        if not understood:
            yield ToolFailed(id=call_id, name=name, error=f"The input of {name} is not a JSON object: {raw!r}")
            return
        yield ToolCall(id=call_id, name=name, input=parsed, raw=raw, executed=act.executed)
        if act.executed:
            yield ToolResult(id=call_id, name=name, output=act.output)
