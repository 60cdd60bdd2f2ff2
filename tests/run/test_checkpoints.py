"""Streaming: deltas reach subscribers in order, and text becomes durable in time without writing too much."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from narrow import of_type

from turnkeeper.core.limits import CHECKPOINT_CHARS
from turnkeeper.model import event as e
from turnkeeper.model import stream as s
from turnkeeper.model.notification import Delta
from turnkeeper.model.parts import TextPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.value import encode
from turnkeeper.providers.script import Gate
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.testing.harness import Play, Stage, Told, stage

ON_DISK_TOO = pytest.mark.parametrize("engine", ["memory", "sqlite"])
KEPT_MS = 500
"""Text older than this survives a kill."""


async def durable_text(stage: Stage, session: str) -> str:
    """What a process that starts now would find of the open text."""
    view = await stage.tk.store.journal.view(session)
    assert view.turn is not None
    return "".join(part.text for part in view.turn.parts.values() if isinstance(part, TextPart))


@ON_DISK_TOO
async def test_text_older_than_half_a_second_is_durable_though_no_more_comes(play: Play) -> None:
    gates = [Gate(), Gate()]
    async with play(_Open(gates)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await gates[0].wait_reached()
        assert await durable_text(stage, session) == ""
        for _ in range(2):
            await stage.time.asleep(0.25)
            stage.time.advance(KEPT_MS // 2)
        await stage.time.asleep(0.25)  # The ticker sleeps again, so it has written.
        assert await durable_text(stage, session) == "Hello"
        gates[0].open()
        await gates[1].wait_reached()
        for _ in range(2):
            await stage.time.asleep(0.25)
            stage.time.advance(KEPT_MS // 2)
        await stage.time.asleep(0.25)
        assert await durable_text(stage, session) == "Hello, world"
        gates[1].open()
        await stage.tk.wait(session)
        [(_, parts)] = await stage.turns(session)
        assert [part.text for part in parts if isinstance(part, TextPart)] == ["Hello, world"]


class _Open(Told):
    """Says two words in one block, and waits after each."""

    def __init__(self, gates: list[Gate]) -> None:
        super().__init__()
        self._gates = gates

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[s.StreamEvent], None]:
        yield [s.StartStep(), s.TextStart(id="t"), s.TextDelta(id="t", text="Hello")]
        await self._gates[0].pass_through()
        yield [s.TextDelta(id="t", text=", world")]
        await self._gates[1].pass_through()
        yield [s.TextEnd(id="t"), s.FinishStep(reason="stop")]


async def test_text_that_has_grown_large_is_durable_at_once(play: Play) -> None:
    gate = Gate()

    class Large(_Open):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[s.StreamEvent], None]:
            yield [s.StartStep(), s.TextDelta(id="t", text="x" * CHECKPOINT_CHARS)]
            yield [s.TextDelta(id="t", text="y")]
            await gate.pass_through()
            yield [s.FinishStep(reason="stop")]

    async with play(Large([])) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await gate.wait_reached()
        assert await durable_text(stage, session) == "x" * CHECKPOINT_CHARS
        gate.open()
        await stage.tk.wait(session)


@pytest.mark.parametrize("size", [4, 60])
async def test_what_is_written_for_a_stream_is_bounded_by_its_text(play: Play, size: int) -> None:
    count = 1000
    batches = [[s.TextDelta(id="t", text=f"{number:0{size}}")] for number in range(count)]
    answer: list[Sequence[s.StreamEvent]] = [[s.StartStep()], *batches, [s.FinishStep(reason="stop")]]
    async with play(Told(answer)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        events = await stage.events(session)
        streamed = [one for one in events if isinstance(one, e.PartExtended)]
        recorded = [one for one in events if isinstance(one, e.PartRecorded) and isinstance(one.part, TextPart)]
        said = "".join(batch[0].text for batch in batches)
        assert said.startswith("".join(one.text for one in streamed))
        written = sum(len(encode(one)) for one in (*streamed, *recorded))
        assert written <= 5 * count * size + 2048
        assert len(streamed) <= count * size / CHECKPOINT_CHARS + 1


class Stalls(MemoryEngine):
    """An engine whose disk stands still, once, at an entry that holds a word."""

    def __init__(self, word: bytes) -> None:
        super().__init__()
        self.gate, self._word = Gate(), word

    async def append(self, log: str, after: int, entries: Sequence[bytes], *given: Any, **named: Any) -> None:
        if any(self._word in entry for entry in entries):
            await self.gate.pass_through()
        await super().append(log, after, entries, *given, **named)


async def test_a_checkpoint_waits_until_what_it_builds_on_is_written(tmp_path: Path) -> None:
    answer: list[list[s.StreamEvent]] = [
        [s.StartStep(), s.TextDelta(id="a", text="one")],
        [
            s.ToolCall(id="stall", name="echo", input={"text": "x"}),
            s.TextDelta(id="a", text=" more"),
            s.TextEnd(id="a"),
            s.TextDelta(id="b", text="begun while the disk stood still"),
        ],
        [s.FinishStep(reason="tool-calls")],
    ]
    done: list[list[s.StreamEvent]] = [[s.StartStep(), s.TextDelta(id="x", text="end"), s.FinishStep(reason="stop")]]
    engine = Stalls(b'"stall"')
    async with stage(engine, tmp_path, Told(answer, done)) as opened:
        session = await opened.session()
        await opened.say(session, "go")
        await engine.gate.wait_reached()
        opened.time.advance(KEPT_MS)
        await anyio.wait_all_tasks_blocked()  # The ticker woke and found something to save.
        engine.gate.open()
        assert (await opened.tk.wait(session)).reason == "answered"
        assert await opened.is_sound(session)


async def test_deltas_come_in_order_after_their_part_and_before_it_is_closed(play: Play) -> None:
    answer: list[list[s.StreamEvent]] = [
        [s.StartStep(), s.TextDelta(id="a", text="one "), s.TextDelta(id="a", text="more ")],
        [s.ReasoningDelta(id="r", text="hm"), s.TextDelta(id="a", text="word")],
        [s.TextEnd(id="a"), s.ReasoningEnd(id="r"), s.FinishStep(reason="stop")],
    ]
    async with play(Told(answer)) as stage:
        session = await stage.session()
        async with stage.tk.subscribe(session_id=session) as notifications:
            await stage.ask(session, "go")
            told = []
            async for one in notifications:
                told.append(one)
                if not isinstance(one, Delta) and one.type == "session.idle":
                    break
    deltas = [one for one in told if isinstance(one, Delta)]
    assert [(one.offset, one.delta) for one in deltas] == [(0, "one more "), (9, "word"), (0, "hm")]
    assert deltas[0].part_id == deltas[1].part_id != deltas[2].part_id
    for part_id in {one.part_id for one in deltas}:
        places = [
            index
            for index, one in enumerate(told)
            if not isinstance(one, Delta)
            and one.type == "message.part.updated"
            and of_type(BasePart, one.properties["part"]).id == part_id
        ]
        own = [index for index, one in enumerate(told) if isinstance(one, Delta) and one.part_id == part_id]
        assert places[0] < own[0]
        assert own[-1] < places[-1]
