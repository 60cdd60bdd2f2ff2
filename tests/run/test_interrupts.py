"""Interrupted at any moment, a turn leaves a closed log that replays to the same view, and the next prompt works."""

from collections import Counter
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from turnkeeper.core.projector import project
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolPending, ToolRunning
from turnkeeper.providers.scripted import Scripted
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.testing.harness import EachSession, Play, Stage, StageOptions, a_tool, stage
from turnkeeper.tools.tool import ToolContext

ROUNDS_MAX = 2000


class Works:
    """A tool that works for a while, reports what it does, and is told apart by its call."""

    def __init__(self) -> None:
        self.begun: Counter[tuple[str, str]] = Counter()

    async def __call__(self, text: str, context: ToolContext) -> str:
        self.begun[context.message_id, context.call_id] += 1
        await context.progress(title="begun", metadata={"output": "half"})
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        return "whole"


def busy_script() -> Scripted:
    """Thoughts, words, two calls at once, an attempt that fails and is tried again, and an answer."""
    script = Scripted().thinks("Hm.").says("I will look.").calls("works", text="a").calls("works", text="b").then()
    return script.says("Half").fails(503).then().says("All is well.").then().says("Still here.").forever()


async def is_closed(stage: Stage, session: str) -> bool:
    """Whether nothing is open, in the view and in every message, and the log says the same."""
    store = stage.tk.store
    view = await store.journal.view(session)
    assert (view.turn, view.owner) == (None, None)
    assert project(await store.journal.read(session)) == view
    for message in await stage.messages(session):
        if isinstance(message.info, AssistantMessage):
            assert message.info.time.completed is not None
            assert message.info.finish is not None or message.info.error is not None
        for part in message.parts:
            assert not (isinstance(part, ToolPart) and isinstance(part.state, ToolPending | ToolRunning))
            assert not (isinstance(part, TextPart | ReasoningPart) and part.time and part.time.end is None)
    return True


async def rest(stage: Stage, session: str, scope: anyio.CancelScope) -> None:
    """Let nobody wait for more once the session rests."""
    await stage.tk.wait(session)
    scope.cancel()


async def go_on(stage: Stage, session: str) -> None:
    """The next prompt is answered."""
    outcome = await stage.ask(session, "Are you there?")
    assert (outcome.kind, outcome.reason) == ("rested", "answered")
    assert await is_closed(stage, session)


class GivesWay(MemoryEngine):
    """An engine that lets others run before a write and after it, as one that waits for a disk does."""

    async def append(self, *given: Any, **named: Any) -> None:
        for _ in range(2):
            await anyio.lowlevel.checkpoint()
        await super().append(*given, **named)
        for _ in range(2):
            await anyio.lowlevel.checkpoint()


async def test_interrupted_after_any_number_of_steps_a_turn_is_closed_and_the_session_goes_on(tmp_path: Path) -> None:
    works = Works()
    stopped = 0
    options = StageOptions(tools=(a_tool("works", works),), in_a_hurry=True)
    async with stage(GivesWay(), tmp_path, EachSession(busy_script), options) as opened:
        for steps in range(ROUNDS_MAX):
            session = await opened.session()
            await opened.say(session, "go")
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()  # Every task that can take a step takes one.
            was_running = await opened.tk.stop(session)
            assert await is_closed(opened, session)
            if steps % 3 == 0:
                await go_on(opened, session)
            if not was_running:
                break
            stopped += 1
        assert stopped > 20, "a turn has more moments than that"
        assert stopped < ROUNDS_MAX - 1
        assert set(works.begun.values()) == {1}
        assert not (await opened.tk.doctor()).problems


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_interrupted_after_any_event_a_turn_on_disk_is_closed_and_the_session_goes_on(play: Play) -> None:
    works = Works()
    async with play(EachSession(busy_script), tools=(a_tool("works", works),), in_a_hurry=True) as stage:
        stopped = 0
        for seq in range(5, ROUNDS_MAX, 2):
            session = await stage.session()
            await stage.say(session, "go")
            async with anyio.create_task_group() as group:
                group.start_soon(rest, stage, session, group.cancel_scope)
                async for recorded in stage.tk.tail(session):
                    if recorded.seq >= seq:
                        stopped += session in stage.tk.runtime.active
                        await stage.tk.stop(session)
            assert await is_closed(stage, session)
            if stopped < (seq - 3) // 2:
                break
            await go_on(stage, session)
        assert stopped > 10
        assert set(works.begun.values()) == {1}
        assert not (await stage.tk.doctor()).problems
