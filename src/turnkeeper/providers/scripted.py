"""Scripted: a fake provider that streams the answers of a script, without network or clock; shipped for plugin authors.

provider = Scripted().calls("bash", command="ls").then().says("two files")
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import assert_never

import anyio

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import Finish, FinishStep, Start, StartStep, StreamError, StreamEvent
from turnkeeper.providers.answer import AnswerStream
from turnkeeper.providers.script import (
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
"""Characters of a tool call's input in one delta."""


class Scripted(Script):
    """A Provider that plays a script and records the requests it received."""

    def __init__(self, *, is_title: Callable[[ModelRequest], bool] = is_title) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []
        self.closed = 0
        """Number of answers that ended, by their last event or because the consumer closed the stream."""
        self._is_title = is_title
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Play the next answer of the script, one event a portion."""
        self.requests.append(request)
        answer = self.take(is_title=self._is_title(request))
        try:
            # Closed explicitly: an inner generator that is only dropped is closed at some later time.
            async with aclosing(self._play(answer)) as events:
                async for event in events:
                    yield [event]
        finally:
            self.closed += 1

    async def _play(self, answer: ScriptedAnswer) -> AsyncGenerator[StreamEvent, None]:
        yield Start(request_id=f"req_{len(self.requests)}")
        yield StartStep()
        stream = AnswerStream()
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
                case Says() | Thinks() | Calls():
                    self._write(act, number, stream)
                    for event in stream.take():
                        await anyio.sleep(pause_s)
                        yield event
                case _:
                    assert_never(act)
        is_paused = answer.finish == "pause"
        yield FinishStep(reason="stop" if is_paused else answer.finish, is_paused=is_paused, usage=answer.usage)
        yield Finish()

    def _write(self, act: Says | Thinks | Calls, number: int, stream: AnswerStream) -> None:
        match act:
            case Says(pieces=pieces):
                block = f"text-{number}"
                stream.open_text(block)
                for piece in pieces:
                    stream.text(block, piece)
                stream.close_text(block)
            case Thinks(pieces=pieces, signature=signature):
                block = f"reasoning-{number}"
                stream.open_reasoning(block)
                for piece in pieces:
                    stream.reasoning(block, piece)
                stream.close_reasoning(block, {"scripted": {"signature": signature}} if signature else None)
            case Calls(name=name, raw=raw, executed=executed):
                self._calls += 1
                call_id = act.id or f"call_{self._calls}"
                stream.open_call(call_id, name, executed=executed)
                for start in range(0, len(raw), INPUT_PIECE):
                    stream.call_input(call_id, raw[start : start + INPUT_PIECE])
                stream.close_call(call_id)
                if executed:
                    stream.result(call_id, name, act.output)
