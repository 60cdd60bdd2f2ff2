"""Fenced writer: held events are part of every decision and are written with the next append."""

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from narrow import of_type

from turnkeeper.core.history import History
from turnkeeper.core.next_action import Promote, promotion
from turnkeeper.model import event as e
from turnkeeper.model import stream as s
from turnkeeper.model.message import AssistantMessage, AssistantTime, TurnPath
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.status import IDLE
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run import fenced_writer
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.histories import Histories
from turnkeeper.run.taking import take_session
from turnkeeper.store.engine import StaleFence
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.testing.harness import Play, Stage, Told, stage
from turnkeeper.workspace.owner import this_process

ON_DISK_TOO = pytest.mark.parametrize("engine", ["memory", "sqlite"])


def an_answer(stage: Stage, session: str, parent: str) -> AssistantMessage:
    return AssistantMessage(
        id=stage.mint.message_id(),
        session_id=session,
        time=AssistantTime(created=1),
        parent_id=parent,
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=TurnPath(cwd="/", root="/"),
        cost=0,
        tokens=ZERO_TOKENS,
    )


async def begun(stage: Stage) -> tuple[FencedWriter, Histories, AssistantMessage]:
    """A session in which a turn is open, and who writes and follows it."""
    session = await stage.session()
    asked = await stage.say(session, "go", resume=False)
    histories = Histories(stage.tk.store)
    await histories.get(session)
    promote = partial(promotion, Promote(message_ids=(asked.message_id,)))
    writer = await take_session(stage.tk.store, session, this_process(), promote)
    message = an_answer(stage, session, asked.message_id)
    await writer.append(e.TurnStarted(message=message))
    return writer, histories, message


async def is_as_stored(stage: Stage, history: History) -> bool:
    """Whether a history that was followed is the one that a new process would read."""
    stored = await Histories(stage.tk.store).get(history.entries[0].message.session_id)
    return (list(history.entries), history.view.inbox) == (list(stored.entries), stored.view.inbox)


async def test_what_is_held_is_seen_by_who_decides_and_written_with_what_comes_next(play: Play) -> None:
    async with play(Scripted()) as stage:
        writer, histories, message = await begun(stage)
        writer.hold(e.TurnEnded(message=message.but(finish="stop")))
        known = await stage.tk.store.journal.view(writer.session_id)
        seen, history = await writer.view(), await histories.follow(writer)
        assert (known.turn is None, seen.turn is None) == (False, True)
        assert of_type(AssistantMessage, history.entries[-1].message).finish == "stop"
        length = await stage.tk.store.engine.length(writer.session_id)
        await writer.append(e.SessionTouched())
        assert [type(one) for one in (await stage.events(writer.session_id))[length:]] == [
            e.TurnEnded,
            e.SessionTouched,
        ]
        followed = await histories.follow(writer)
        assert followed.entries == history.entries, "what was lowered of it would be lowered again"
        assert await is_as_stored(stage, followed)


async def test_a_history_is_followed_without_a_look_at_the_log(play: Play) -> None:
    engine = Counting()
    async with play(Scripted(), store=engine) as stage:
        writer, histories, message = await begun(stage)
        await histories.follow(writer)
        engine.reads.clear()
        await writer.append(e.TurnEnded(message=message.but(finish="stop")))
        last = (await histories.follow(writer)).entries[-1]
        assert of_type(AssistantMessage, last.message).finish == "stop"
        assert not engine.reads
        await stage.say(writer.session_id, "and this", resume=False)
        assert len((await histories.follow(writer)).view.inbox) == 1
        assert engine.reads


class Counting(MemoryEngine):
    """An engine that notes which logs are read, and the types of the events of each append."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.appends: list[list[str]] = []

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        self.reads.append(log)
        return await super().read(log, after=after, limit=limit)

    async def append(self, log: str, after: int, entries: Sequence[bytes], *given: Any, **more: Any) -> None:
        self.appends.append([str(json.loads(entry)["type"]) for entry in entries])
        await super().append(log, after, entries, *given, **more)


@ON_DISK_TOO
async def test_a_history_with_held_events_is_right_again_if_others_wrote_before_they_were_written(play: Play) -> None:
    async with play(Scripted()) as stage:
        writer, histories, message = await begun(stage)
        writer.hold(e.TurnEnded(message=message.but(finish="stop")))
        await histories.follow(writer)
        await stage.say(writer.session_id, "wait", resume=False)
        await writer.append(begins := e.TurnStarted(message=an_answer(stage, writer.session_id, message.parent_id)))
        history = await histories.follow(writer)
        assert await is_as_stored(stage, history)
        assert [one.message.id for one in history.entries[1:]] == [message.id, begins.message.id]
        assert len(history.view.inbox) == 1


@ON_DISK_TOO
async def test_a_history_with_held_events_has_what_others_wrote_meanwhile(play: Play) -> None:
    async with play(Scripted()) as stage:
        writer, histories, message = await begun(stage)
        writer.hold(e.TurnEnded(message=message.but(finish="stop")))
        await histories.follow(writer)
        await stage.say(writer.session_id, "wait", resume=False)
        assert await writer.release((await writer.view()).seq - 1) is False
        history = await histories.follow(writer)
        assert await is_as_stored(stage, history)
        assert len(history.view.inbox) == 1


@ON_DISK_TOO
async def test_what_a_replaced_owner_holds_is_refused_also_if_it_no_longer_fits(play: Play) -> None:
    async with play(Scripted()) as stage:
        writer, _, message = await begun(stage)
        writer.hold(e.TurnEnded(message=message.but(finish="stop")))
        store = stage.tk.store
        successor = FencedWriter(store, writer.session_id, this_process(), writer.fence + 1)
        await successor.append(e.TurnEnded(message=message.but(finish="length")))
        for use in (writer.view, writer.flush, writer.release):
            with pytest.raises(StaleFence):
                await use()


async def test_more_than_is_remembered_is_read_from_the_log(play: Play) -> None:
    async with play(Scripted()) as stage:
        writer, histories, _ = await begun(stage)
        await histories.follow(writer)
        await writer.append(*[e.SessionTouched()] * fenced_writer.WRITTEN_MAX, e.SessionTouched())
        assert await is_as_stored(stage, await histories.follow(writer))


@pytest.mark.parametrize("is_checked", [True, False])
async def test_a_pen_that_is_laid_down_writes_what_it_holds(play: Play, is_checked: bool) -> None:
    async with play(Scripted()) as stage:
        writer, _, message = await begun(stage)
        writer.hold(e.TurnEnded(message=message.but(finish="stop")))
        assert await writer.release((await writer.view()).seq if is_checked else None) is True
        view = await stage.tk.store.journal.view(writer.session_id)
        assert (view.turn, view.status, view.owner) == (None, IDLE, None)


class Refusing(MemoryEngine):
    """An engine that refuses appends while it is full."""

    is_full = False

    async def append(self, log: str, after: int, entries: Sequence[bytes], *given: Any, **more: Any) -> None:
        if self.is_full:
            raise OSError("the disk is full")
        await super().append(log, after, entries, *given, **more)


async def test_what_could_not_be_written_is_still_held_and_what_was_to_follow_it_is_not(play: Play) -> None:
    engine = Refusing()
    async with play(Scripted(), store=engine) as stage:
        writer, _, message = await begun(stage)
        writer.hold(e.TurnEnded(message=message.but(finish="stop")))
        engine.is_full = True
        with pytest.raises(OSError, match="full"):
            await writer.append(e.SessionTouched())
        engine.is_full = False
        length = await stage.tk.store.engine.length(writer.session_id)
        await writer.release()
        assert [type(one) for one in (await stage.events(writer.session_id))[length:]] == [e.TurnEnded, e.StatusChanged]


def calls(text: str) -> list[list[s.StreamEvent]]:
    """An answer that comes all at once, as short ones do."""
    call = s.ToolCall(id=text, name="echo", input={"text": text})
    finish = s.FinishStep(reason="tool-calls", usage=s.Usage(input=1, output=1))
    return [[s.Start(), s.StartStep(), s.ToolInputStart(id=text, name="echo"), call, finish, s.Finish()]]


def says(text: str) -> list[list[s.StreamEvent]]:
    finish = s.FinishStep(reason="stop", usage=s.Usage(input=1, output=1))
    return [[s.Start(), s.StartStep(), s.TextDelta(id="t", text=text), s.TextEnd(id="t"), finish, s.Finish()]]


async def test_a_step_is_two_appends_the_call_before_it_runs_and_all_else_before_the_model_is_asked_again(
    play: Play,
) -> None:
    engine = Counting()
    async with play(Told(calls("a"), calls("b"), says("done")), store=engine) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        settled = ["part.recorded.1", "usage.recorded.1", "part.recorded.1", "turn.ended.1", "turn.started.1"]
        begin = engine.appends.index(["turn.started.1"])
        called = ["part.recorded.1"] * 3 + ["message.recorded.1"]  # The last has the tokens of the answer.
        assert engine.appends[begin + 1 : begin + 5] == [called, settled, called, settled]
        # The last answer is a text: its beginning, before the delta; then the rest.
        assert len(engine.appends) == begin + 7
        assert await stage.is_sound(session)


class Between(MemoryEngine):
    """A store in which something happens just after a fence was read, once."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def fence(self, log: str) -> int:
        fence = await super().fence(log)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return fence


async def test_an_owner_that_came_and_went_meanwhile_does_not_share_its_fence(tmp_path: Path) -> None:
    engine = Between()
    async with stage(engine, tmp_path / "place", Scripted()) as opened:
        session, store = await opened.session(), opened.tk.store
        used: list[int] = []

        async def comes_and_goes() -> None:
            writer = await take_session(store, session, this_process().but(runtime="other"))
            used.append(writer.fence)
            await writer.release()

        engine.meanwhile = comes_and_goes
        writer = await take_session(store, session, this_process())
        assert used == [1]
        assert writer.fence == 2
