"""Killed at any write of the loop, a session is recovered: nothing acknowledged is lost, nothing is done twice.

What the recovered session shows is what an uninterrupted one shows, up to the turn that is marked as interrupted.
"""

import asyncio
from pathlib import Path

import pytest
from crashes import EVERY_WRITE, Crash, lines

from turnkeeper.core.handles import pieces
from turnkeeper.core.history import HistoryItem, compaction_of, visible
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import Part, ReasoningPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.run.recover import Recovery
from turnkeeper.store.crash import COMPACTIONS, WRITES
from turnkeeper.testing import loop_child
from turnkeeper.testing.appended import ACKNOWLEDGED, EFFECTS
from turnkeeper.testing.harness import Stage
from turnkeeper.testing.windowed import Windowed

RUN_POINTS = [*(f"run.{when}-{what}" for what in WRITES for when in ("before", "after")), "run.tool-begin"]
ROOM_POINTS = [f"run.{when}-{what}" for what in COMPACTIONS for when in ("before", "after")]

Shown = tuple[str, bool, tuple[tuple[str, str], ...]]
"""A message without what differs from run to run: its role, whether it was interrupted, and its parts."""


def shown(part: Part) -> tuple[str, str]:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return type(part).__name__, text
        case ToolPart(call_id=call_id, state=ToolCompleted(output=output)):
            return f"call {call_id}", output
        case ToolPart(call_id=call_id, state=ToolError()):
            return f"call {call_id}", "interrupted"
        case _:
            return type(part).__name__, ""


async def transcript(stage: Stage) -> list[Shown]:
    found = []
    for message in await stage.messages(loop_child.SESSION):
        parts = [part for part in message.parts if not isinstance(part, StepStartPart | StepFinishPart)]
        is_aborted = isinstance(message.info, AssistantMessage) and isinstance(message.info.error, AbortedFailure)
        found.append((type(message.info).__name__, is_aborted, tuple(shown(part) for part in parts)))
    return found


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Shown]:
    """What an uninterrupted life shows."""
    # An async fixture of this scope would keep a loop in this thread, in which no later test could run another.
    return asyncio.run(_whole(tmp_path_factory.mktemp("whole")))


async def _whole(directory: Path) -> list[Shown]:
    await loop_child.live(f"sqlite:{directory}/store", directory)
    async with loop_child.opened(f"sqlite:{directory}/store", directory) as stage:
        found = await transcript(stage)
    assert [role for role, _, _ in found] == [
        "UserMessage",
        *["AssistantMessage"] * 2,
        "UserMessage",
        "AssistantMessage",
    ]
    return found


def is_beginning(part: tuple[str, str], of: tuple[str, str]) -> bool:
    """Whether an interrupted part shows no more than the whole one, and the same as far as it goes."""
    return part[0] == of[0] and (part[1] == "interrupted" or of[1].startswith(part[1]))


def agrees(found: list[Shown], whole: list[Shown]) -> bool:
    """Whether a transcript is the whole one, or is it up to a turn marked as interrupted."""
    for one, other in zip(found, whole, strict=False):
        if one[1]:
            pairs = zip(one[2], other[2], strict=False)
            return len(one[2]) <= len(other[2]) and all(is_beginning(part, of) for part, of in pairs)
        if one != other:
            return False
    return len(found) == len(whole)


async def check(url: str, directory: Path, whole: list[Shown], policy: Recovery) -> None:
    """Recover as a new process does, let the client send again, and look at everything."""
    before = lines(directory / ACKNOWLEDGED)
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    async with loop_child.opened(url, directory, mint=later) as stage:
        kept = await prompts(stage)
        assert [one for one in before if one not in kept] == [], "an acknowledged prompt is lost"
        await stage.tk.runtime.failover.recover(policy)
        await stage.session(id=loop_child.SESSION)
        await loop_child.send(stage, directory)
        await stage.tk.wait(loop_child.SESSION)
        found = await transcript(stage)
        assert agrees(found, whole), found
        said = [part for role, _, parts in found if role == "UserMessage" for part in parts]
        assert said == [("TextPart", "one"), ("TextPart", "two")]
        assert found[-1][0] == "AssistantMessage", "a prompt is left without an answer"
        assert policy == "rest" or not found[-1][1], "a session that is to go on has stopped"
        assert await stage.is_sound(loop_child.SESSION)
    effects = lines(directory / EFFECTS)
    assert sorted(set(effects)) == sorted(effects), "something was done twice"


async def prompts(stage: Stage) -> set[str]:
    """The prompts that the store holds, promoted or not."""
    if not await stage.tk.store.engine.length(loop_child.SESSION):
        return set()
    view = await stage.tk.store.journal.view(loop_child.SESSION)
    return {one.message.id for one in view.inbox} | {one.info.id for one in await stage.messages(loop_child.SESSION)}


@pytest.mark.parametrize("point", RUN_POINTS)
async def test_killed_at_a_write_of_the_loop_a_session_is_recovered(
    tmp_path: Path, whole: list[Shown], crash_at: Crash, point: str
) -> None:
    policies: tuple[tuple[int, Recovery], ...] = ((1, "rest"), (2, "continue"), (9, "rest"))
    for hit, policy in policies:
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"sqlite:{directory}/store"
        reached = crash_at(point, hit, url, directory)
        assert reached or hit > 1, f"{point} is never reached"
        if reached:
            await check(url, directory, whole, policy)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "files"])
@pytest.mark.parametrize("policy", ["rest", "continue"])
@pytest.mark.parametrize("point", EVERY_WRITE)
async def test_killed_at_every_hit_of_a_write_of_the_loop_a_session_is_recovered(
    tmp_path: Path, whole: list[Shown], crash_at: Crash, point: str, policy: Recovery, engine: str
) -> None:
    for hit in range(1, 1000):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        if not crash_at(point, hit, url, directory):
            assert hit > 1
            return
        await check(url, directory, whole, policy)


async def check_growing(url: str, directory: Path, policy: Recovery) -> None:
    """Recover a session that was killed while room was made in it, and let it live to its end."""
    before = lines(directory / ACKNOWLEDGED)
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    async with loop_child.growing(url, directory, mint=later) as stage:
        kept = await prompts(stage)
        assert [one for one in before if one not in kept] == [], "an acknowledged prompt is lost"
        await stage.tk.runtime.failover.recover(policy)
        view = await stage.tk.store.journal.view(loop_child.SESSION)
        assert view.turn is None
        assert view.session.time.compacting is None, "it says that it is being compacted, and nobody does"
        await loop_child.grow(stage, directory)
        assert isinstance(stage.provider, Windowed)
        assert stage.provider.refused == 0
        messages = await stage.messages(loop_child.SESSION)
        asked = [message for message in messages if message.info.id in lines(directory / ACKNOWLEDGED)]
        assert len(asked) == loop_child.GROWING
        summaries = [m.info for m in messages if isinstance(m.info, AssistantMessage) and m.info.summary]
        assert summaries
        assert all(one.finish == "stop" for one in summaries if one.error is None)
        history = await stage.tk.runtime.history(loop_child.SESSION)
        first = visible(history.entries)[0]
        assert compaction_of(first) is not None, "the newest boundary is not in force"
        for message in messages:
            for piece in pieces(HistoryItem(message=message.info, parts=message.parts)):
                assert (await stage.tk.recall(loop_child.SESSION, piece.handle, limit=None)).text == piece.text
        assert await stage.is_sound(loop_child.SESSION)
    effects = lines(directory / EFFECTS)
    assert sorted(set(effects)) == sorted(effects), "something was done twice"


@pytest.mark.parametrize("point", ROOM_POINTS)
async def test_killed_while_room_is_made_a_session_goes_on_and_loses_nothing(
    tmp_path: Path, crash_at: Crash, point: str
) -> None:
    policies: tuple[tuple[int, Recovery], ...] = ((1, "rest"), (2, "continue"))
    for hit, policy in policies:
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"sqlite:{directory}/store"
        reached = crash_at(point, hit, url, directory, "growing")
        assert reached or hit > 1, f"{point} is never reached"
        if reached:
            await check_growing(url, directory, policy)
