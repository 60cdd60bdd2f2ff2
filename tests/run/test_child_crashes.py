"""Killed at any write, a session finds what its children did: no child and no prompt is run twice, and none is lost."""

from collections import Counter
from pathlib import Path

import anyio
import pytest
from crashes import EVERY_WRITE, Crash, lines, on_engines

from turnkeeper.core.child_tasks import task_of
from turnkeeper.core.open_calls import is_open
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolState
from turnkeeper.run.recover import Recovery
from turnkeeper.store.crash import CHILDREN, WRITES
from turnkeeper.testing import family_life
from turnkeeper.testing.appended import EFFECTS
from turnkeeper.testing.harness import Stage

POINTS = [*(f"run.{when}-{what}" for what in (*WRITES, *CHILDREN) for when in ("before", "after")), "run.tool-begin"]
WAITED_FOR = [point for point in POINTS if not point.endswith("deliver")]
"""What a life without background work reaches."""
DEADLINE_S = 120


class Found:
    """What a process finds in the store of a dead one."""

    def __init__(self) -> None:
        self.finished: set[str] = set()
        """Child Sessions that have answered, and whose calls wait."""
        self.begun: set[str] = set()
        """Calls whose child task is recorded and that are not settled."""


async def look(stage: Stage) -> Found:
    found = Found()
    if not await stage.tk.store.engine.length(family_life.ROOT):
        return found
    view = await stage.tk.store.journal.view(family_life.ROOT)
    for part in view.turn.parts.values() if view.turn is not None else ():
        task = task_of(view, part)
        if isinstance(part, ToolPart) and is_open(part) and task is not None and not task.background:
            found.begun.add(part.call_id)
            if await stage.tk.store.engine.length(task.session_id):
                turns = await stage.turns(task.session_id)
                child = await stage.tk.store.journal.view(task.session_id)
                if child.turn is None and turns and turns[-1][0].finish == "stop":
                    found.finished.add(part.call_id)
    return found


async def states(stage: Stage) -> dict[str, ToolState]:
    if not await stage.tk.store.engine.length(family_life.ROOT):
        return {}
    turns = await stage.turns(family_life.ROOT)
    return {part.call_id: part.state for _, parts in turns for part in parts if isinstance(part, ToolPart)}


async def check_children(stage: Stage, directory: Path) -> None:
    """No child, no prompt and no work was given twice, and nothing is open."""
    children = await stage.tk.children(family_life.ROOT, recursive=True)
    prompts: list[str] = []
    for one in (family_life.ROOT, *(child.id for child in children)):
        messages = await stage.messages(one)
        prompts += [
            part.text
            for message in messages
            if isinstance(message.info, UserMessage)
            for part in message.parts
            if isinstance(part, TextPart)
        ]
        view = await stage.tk.store.journal.view(one)
        assert (view.children, view.inbox) == ((), ()), "something still waits"
        assert (view.turn, view.owner) == (None, None), "something is still open"
        billed = [event.message_id for event in await stage.events(one) if isinstance(event, e.UsageRecorded)]
        assert len(set(billed)) == len(billed), "a turn was billed twice"
    assert not (await stage.tk.doctor()).problems
    assert [text for text, count in Counter(prompts).items() if count > 1] == [], "a prompt was given twice"
    effects = lines(directory / EFFECTS)
    assert sorted(set(effects)) == sorted(effects), "a child did its work twice"


async def check(url: str, directory: Path, policy: Recovery) -> None:
    """Recover as a new process does, let the client send again, and look at everything."""
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    with anyio.fail_after(DEADLINE_S):
        async with family_life.opened(url, directory, mint=later) as stage:
            found = await look(stage)
            await family_life.recover(stage, policy)
            calls = await states(stage)
            await family_life.send(stage)
            await family_life.rest(stage)
            await check_children(stage, directory)
            messages = await stage.messages(family_life.ROOT)
            last = messages[-1].info
    for name in found.finished:
        state = calls[name]
        assert isinstance(state, ToolCompleted), f"the result of a finished child was not taken: {state}"
        assert "It is done." in state.output
    for name in found.begun if policy == "continue" else ():
        assert isinstance(calls[name], ToolCompleted), "a child that may go on was given up"
    for state in calls.values():
        assert isinstance(state, ToolCompleted) or (isinstance(state, ToolError) and state.metadata), state
    reported = [
        part.text
        for message in messages
        for part in message.parts
        if isinstance(part, TextPart) and part.synthetic and part.text.startswith("<task")
    ]
    is_in_background = isinstance(calls.get(family_life.BACKGROUND), ToolCompleted)
    assert len(reported) == is_in_background or not calls, "a background task is reported once"
    assert isinstance(last, AssistantMessage)
    assert policy == "rest" or not isinstance(last.error, AbortedFailure), "a session that is to go on has stopped"


@on_engines(POINTS)
async def test_killed_at_a_write_a_session_finds_what_its_children_did(
    tmp_path: Path, crash_at: Crash, point: str, engine: str
) -> None:
    policies: tuple[tuple[int, Recovery], ...] = ((1, "rest"), (2, "continue"), (4, "rest"), (5, "continue"))
    for hit, policy in policies:
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        reached = crash_at(point, hit, url, directory, "family")
        assert reached or hit > 1, f"{point} is never reached"
        if reached:
            await check(url, directory, policy)


@on_engines(["run.before-settle", "run.after-settle", "run.before-end", "run.before-deliver"])
async def test_killed_again_while_it_finds_what_its_children_did(
    tmp_path: Path, crash_at: Crash, point: str, engine: str
) -> None:
    for hit in (1, 3):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        assert crash_at("run.after-admit", 1 + hit, url, directory, "family")
        crash_at(point, 1, url, directory, "family-recovering")
        await check(url, directory, "continue")


async def check_subtasks(url: str, directory: Path, policy: Recovery) -> None:
    """Recover a session that was killed while it ran subtasks, and let it live to its end."""
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    with anyio.fail_after(DEADLINE_S):
        async with family_life.opened(url, directory, mint=later) as stage:
            found = await look(stage)
            await family_life.recover(stage, policy)
            await family_life.send_subtasks(stage)
            await family_life.rest(stage)
            await check_children(stage, directory)
            calls = await states(stage)
            children = await stage.tk.children(family_life.ROOT)
            messages = await stage.messages(family_life.ROOT)
    assert len(children) <= len(family_life.WAITED_FOR)
    for name in found.begun if policy == "continue" else found.finished:
        assert isinstance(calls[name], ToolCompleted), "a child that may go on was given up"
    asked = [message for message in messages if isinstance(message.info, UserMessage)]
    if all(isinstance(state, ToolCompleted) for state in calls.values()):
        assert len(calls) == len(children) == len(asked) == 2
        assert [part.text for part in messages[-1].parts if isinstance(part, TextPart)] == ["I see."]


@on_engines(WAITED_FOR)
async def test_killed_while_it_runs_subtasks_a_session_runs_each_of_them_once(
    tmp_path: Path, crash_at: Crash, point: str, engine: str
) -> None:
    policies: tuple[tuple[int, Recovery], ...] = ((1, "rest"), (2, "continue"), (3, "continue"))
    for hit, policy in policies:
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        reached = crash_at(point, hit, url, directory, "subtasks")
        assert reached or hit > 1, f"{point} is never reached"
        if reached:
            await check_subtasks(url, directory, policy)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "files"])
@pytest.mark.parametrize("policy", ["rest", "continue"])
@pytest.mark.parametrize("point", EVERY_WRITE)
async def test_killed_at_every_hit_of_a_write_a_session_finds_what_its_children_did(
    tmp_path: Path, crash_at: Crash, point: str, policy: Recovery, engine: str
) -> None:
    for hit in range(1, 1000):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        if not crash_at(point, hit, url, directory, "family"):
            assert hit > 1
            return
        await check(url, directory, policy)


async def test_a_parent_that_is_run_before_its_children_has_them_go_on_by_their_policy(
    tmp_path: Path, crash_at: Crash
) -> None:
    url = f"sqlite:{tmp_path}/store"
    handed_on = len(family_life.WAITED_FOR) + 1
    assert crash_at("run.tool-begin", handed_on + 1, url, tmp_path, "family"), "no child has begun its work"
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    with anyio.fail_after(DEADLINE_S):
        async with family_life.opened(url, tmp_path, mint=later) as stage:
            found = await look(stage)
            left = await stage.tk.runtime.failover.take_over("continue")
            await stage.tk.run(family_life.ROOT)
            calls = await states(stage)
            await stage.tk.resume_taken_over(left)
            await family_life.rest(stage)
            await check_children(stage, tmp_path)
    assert found.begun
    for name in found.begun:
        assert isinstance(calls[name], ToolCompleted), "a child that may go on was given up"
