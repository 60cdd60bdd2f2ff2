"""Killed at any point between an ask and its result, a call runs once or is named interrupted; no answer is lost."""

from collections import Counter
from pathlib import Path

import anyio
import pytest
from crashes import EVERY_WRITE, Crash, lines, on_engines

from turnkeeper.core.asks import waiting_calls
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model import event as e
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.store.crash import ASKS
from turnkeeper.testing import loop_child
from turnkeeper.testing.appended import EFFECTS
from turnkeeper.testing.harness import Stage

POINTS = [
    *(f"run.{when}-{what}" for what in (*ASKS[:3], "settle", "end") for when in ("before", "after")),
    "run.tool-begin",
]
RESUMED = [*POINTS, "run.before-leave", "run.after-leave"]
DEADLINE_S = 60


async def answer_all(stage: Stage) -> None:
    """Allow what is asked, from outside, until the session rests and asks nothing more."""
    async with stage.tk.subscribe() as heard:
        while True:
            for one in await stage.tk.permissions():
                await stage.tk.reply(one.id, "once")
            view = await stage.tk.store.journal.view(loop_child.SESSION)
            if view.owner is None and view.turn is None and not view.inbox:
                return
            async for told in heard:
                if isinstance(told, Notification) and told.type in ("permission.asked", "session.idle"):
                    break


async def check(url: str, directory: Path) -> None:
    """Recover as a new process does, answer what is asked, and look at what became of each call."""
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    with anyio.fail_after(DEADLINE_S):
        async with (
            loop_child.asking(url, directory, ask=None, mint=later) as stage,
            anyio.create_task_group() as beside,
        ):
            await stage.session(id=loop_child.SESSION)
            waited = [part.call_id for part in waiting_calls(await stage.tk.store.journal.view(loop_child.SESSION))]
            beside.start_soon(stage.tk.resume_taken_over, await stage.tk.take_over())
            await loop_child.send(stage, directory)
            await answer_all(stage)
            parts = [part for _, parts in await stage.turns(loop_child.SESSION) for part in parts]
            calls = {part.call_id: part.state for part in parts if isinstance(part, ToolPart)}
            events = await stage.events(loop_child.SESSION)
            assert await stage.is_sound(loop_child.SESSION)
    done = sorted(name for name, state in calls.items() if isinstance(state, ToolCompleted))
    effects = lines(directory / EFFECTS)
    assert set(waited) <= set(done), "a call that waited for the user was given up"
    assert sorted(set(effects)) == sorted(effects), "a call ran twice"
    assert set(done) <= set(effects), "a call is completed and did nothing"
    for name, state in calls.items():
        if name not in done:
            assert isinstance(state, ToolError)
            assert (state.metadata or {}).get("interrupted"), state.error
    asked = [(one.request.tool.call_id, one.request.permission) for one in events if isinstance(one, e.PermissionAsked)]
    twice = [name for (name, _), count in Counter(asked).items() if count > 1]
    assert twice == [], "the user was asked again for what they had answered"
    billed = [one.message_id for one in events if isinstance(one, e.UsageRecorded)]
    assert len(set(billed)) == len(billed), "a turn was billed twice"


@on_engines(POINTS)
async def test_killed_between_an_ask_and_its_result(tmp_path: Path, crash_at: Crash, point: str, engine: str) -> None:
    for hit in (1, 2, 3, 4):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        reached = crash_at(point, hit, url, directory, "asking")
        assert reached or hit > 1, f"{point} is never reached"
        if reached:
            await check(url, directory)


@on_engines(RESUMED)
async def test_killed_again_while_the_answer_is_taken_up(
    tmp_path: Path, crash_at: Crash, point: str, engine: str
) -> None:
    for hit in (1, 2, 3):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        assert crash_at("run.after-reply", hit, url, directory, "asking")
        crash_at(point, 1, url, directory, "recovering")
        await check(url, directory)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "files"])
@pytest.mark.parametrize("point", EVERY_WRITE)
async def test_killed_at_every_hit_between_an_ask_and_its_result(
    tmp_path: Path, crash_at: Crash, point: str, engine: str
) -> None:
    for hit in range(1, 1000):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        if not crash_at(point, hit, url, directory, "asking"):
            assert hit > 1
            return
        await check(url, directory)
