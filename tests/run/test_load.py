"""Many sessions at once, with subscribers that are slow or gone: nothing grows without bound and nothing is lost."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from turnkeeper.bus import Overflow
from turnkeeper.model import event as e
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.parts import TextPart
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import EachSession, Play, Stage

SESSIONS = 128
QUEUE = 256
WORDS = " ".join(f"word{number}" for number in range(40))


def a_script() -> Scripted:
    return Scripted().says(WORDS).calls("echo", text="x").then().says("Done.")


async def everything(stage: Stage, session: str, heard: dict[str, list[int]], begun: anyio.Event) -> None:
    """Follow a session's durable events until it rests."""
    begun.set()
    async for recorded in stage.tk.tail(session):
        heard.setdefault(session, []).append(recorded.seq)
        if isinstance(recorded.event, e.StatusChanged) and recorded.event.owner is None:
            return


async def leaves(stage: Stage, taken: int) -> None:
    """Listen to a few things and go, without a word."""
    async with stage.tk.subscribe(size=QUEUE) as notifications:
        async for _ in notifications:
            taken -= 1
            if not taken:
                return


async def collect(notifications: AsyncIterator[Notification | Delta], into: list[object]) -> None:
    async for one in notifications:
        into.append(one)


async def test_128_sessions_run_at_once_and_slow_or_absent_subscribers_cost_nobody_anything(play: Play) -> None:
    provider = EachSession(a_script)
    heard: dict[str, list[int]] = {}
    async with play(provider) as stage, stage.tk.subscribe(size=QUEUE) as slow:
        sessions = [await stage.session() for _ in range(SESSIONS)]
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(leaves, stage, number + 1)
            for session in sessions:
                begun = anyio.Event()
                group.start_soon(everything, stage, session, heard, begun)
                await begun.wait()
            for session in sessions:
                await stage.say(session, "go")
            assert len(stage.tk.runtime.active) > SESSIONS // 2, "they run side by side"
            for session in sessions:
                assert (await stage.tk.wait(session)).kind == "rested"
        assert stage.tk.runtime.active == frozenset()
        for session in sessions:
            view = await stage.tk.store.journal.view(session)
            assert heard[session] == list(range(1, view.seq + 1)), "every event once, in order"
            (_, parts), (last, _) = await stage.turns(session)
            assert [part.text for part in parts if isinstance(part, TextPart)] == [WORDS]
            assert last.finish == "stop"
        queued: list[object] = []
        with pytest.raises(Overflow):  # It fell behind, was told so, and held no more than it asked for.
            await collect(slow, queued)
        assert len(queued) <= QUEUE
        assert not (await stage.tk.doctor()).problems


async def test_a_subscriber_that_falls_behind_loses_deltas_before_anything_durable(play: Play) -> None:
    long = " ".join([WORDS] * 20)
    async with play(Scripted().says(long)) as stage:
        session = await stage.session()
        async with stage.tk.subscribe(size=QUEUE) as slow, stage.tk.subscribe(size=10_000) as quick:
            await stage.ask(session, "go")
            heard = [await kept(slow), await kept(quick)]
        assert heard[0].pop("deltas") < heard[1].pop("deltas") == len(long.split())
        assert heard[0] == heard[1]


async def kept(notifications: AsyncIterator[Notification | Delta]) -> dict[str, Any]:
    """What a subscriber heard until the session rested: how many deltas, and what else."""
    deltas, durable = 0, []
    async for one in notifications:
        if isinstance(one, Delta):
            deltas += 1
        else:
            durable.append((one.type, one.seq))
            if one.type == "session.idle":
                break
    return {"deltas": deltas, "durable": durable}
