"""Waiting for a session: run here, run by another process, left by a dead one, or not there at all."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from turnkeeper.model import event as e
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import BUSY, IDLE, Owner
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.coordinator import Outcome
from turnkeeper.testing.harness import Stage, stage
from turnkeeper.workspace.owner import this_process

DEADLINE_S = 60


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage("memory:", tmp_path / "place", Scripted().says("yes").forever()) as ready:
        yield ready


@pytest.fixture
def living() -> Owner:
    """Another runtime that lives: it is in this process, so that it stays alive as long as the test."""
    return this_process().but(runtime="another")


@pytest.fixture
def dead() -> Owner:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(DEADLINE_S)
    return this_process().but(pid=ended.pid, started="1")


async def run_by(on: Stage, owner: Owner) -> str:
    """A session that this process is said to run."""
    session_id = await on.session()
    await on.tk.store.journal.append(session_id, e.StatusChanged(status=BUSY, owner=owner))
    return session_id


async def test_a_session_that_another_process_runs_is_waited_for(on: Stage, living: Owner) -> None:
    session_id = await run_by(on, living)
    outcomes: list[Outcome] = []

    async def wait() -> None:
        outcomes.append(await on.tk.wait(session_id))

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert outcomes == []
            assert not await on.tk.is_abandoned(session_id)
            await on.tk.store.journal.append(session_id, e.StatusChanged(status=IDLE))
    assert outcomes == [Outcome(kind="rested")]


async def test_a_prompt_to_a_session_that_another_process_runs_can_be_waited_for(on: Stage, living: Owner) -> None:
    session_id = await run_by(on, living)
    outcomes: list[Outcome] = []

    async def wait() -> None:
        outcomes.append(await on.tk.wait(session_id))

    await on.say(session_id, "go")  # The run that it starts here is refused: another process has the session.
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            while session_id in on.tk.running:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            assert outcomes == []
            await on.tk.store.journal.append(session_id, e.StatusChanged(status=IDLE))
    assert [(one.kind, one.is_busy) for one in outcomes] == [("rested", False)]


async def test_a_session_whose_process_died_is_abandoned_until_it_is_run(on: Stage, dead: Owner) -> None:
    session_id = await run_by(on, dead)
    with anyio.fail_after(DEADLINE_S):
        outcome = await on.tk.wait(session_id)
    assert (outcome.kind, outcome.is_busy) == ("abandoned", False)
    assert f"process {dead.pid}" in outcome.reason
    assert "resume=True" in outcome.reason
    assert await on.tk.is_abandoned(session_id)
    assert await on.tk.status(session_id) == BUSY
    assert (await on.tk.run(session_id, resume=True)).kind == "rested"
    assert not await on.tk.is_abandoned(session_id)
    assert (await on.tk.wait(session_id)).kind == "rested"
    assert await on.tk.status(session_id) == IDLE


async def test_a_session_that_is_ours_and_not_run_is_abandoned(on: Stage) -> None:
    session_id = await run_by(on, on.tk.runtime.owner)
    with anyio.fail_after(DEADLINE_S):
        assert (await on.tk.wait(session_id)).kind == "abandoned"
    assert await on.tk.is_abandoned(session_id)


async def test_an_unknown_session_is_not_waited_for(on: Stage) -> None:
    for act in (on.tk.wait, on.tk.is_abandoned, on.tk.stop, on.tk.wait_upkeep):
        with pytest.raises(NotFound, match="ses_typo"):
            await act("ses_typo")
