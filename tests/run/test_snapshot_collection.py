"""Old snapshots are removed once a day, while no session runs."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from snapshot_project import OTHER, SESSION, SnapshotProject

from turnkeeper.core.limits import SNAPSHOT_COLLECT_EVERY_S, SNAPSHOT_COLLECT_IDLE_S
from turnkeeper.mint import FixedMint, Mint
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.snapshot_collection import SnapshotCollection
from turnkeeper.testing.harness import StageOptions, VirtualTime, stage
from turnkeeper.workspace import snapshot_upkeep

DEADLINE_S = 60
DAY_MS = int(SNAPSHOT_COLLECT_EVERY_S * 1000)
IDLE_MS = int(SNAPSHOT_COLLECT_IDLE_S * 1000)


class World:
    """A project whose snapshots have the times of a clock that the test advances."""

    def __init__(self, project: SnapshotProject, mint: FixedMint) -> None:
        self.project, self.mint, self.time = project, mint, VirtualTime(mint)

    async def capture(self, session_id: str) -> None:
        self.project.now = self.mint.now()
        await (await self.project.shadow()).capture(session_id)

    async def kept(self) -> set[str]:
        place = (await self.project.shadow()).place
        return {one.session for one in snapshot_upkeep.kept_trees(place)}

    @asynccontextmanager
    async def process(self) -> AsyncIterator[SnapshotCollection]:
        """A process. Leaving the block waits until nothing is left to do."""
        async with stage("memory:", self.project.home / "elsewhere", Scripted(), mint=self.mint) as opened:
            with anyio.fail_after(DEADLINE_S):
                async with anyio.create_task_group() as group:
                    store = opened.tk.store
                    yield SnapshotCollection(store, self.project.snapshots, group, self.time.sleep)

    async def idle(self, ms: int = IDLE_MS) -> None:
        self.project.now = self.mint.now() + ms
        self.time.advance(ms)


@pytest.fixture
async def world(tmp_path: Path) -> World:
    found = World(SnapshotProject(tmp_path, has_git=False), Mint.fixed())
    await found.capture(SESSION)
    await found.idle(8 * DAY_MS)
    await found.capture(OTHER)
    return found


async def test_old_snapshots_go_after_a_minute_in_which_nothing_runs(world: World) -> None:
    async with world.process() as collection:
        with collection.paused():
            pass
        await world.time.asleep(SNAPSHOT_COLLECT_IDLE_S)
        assert await world.kept() == {SESSION, OTHER}
        await world.idle()
    assert await world.kept() == {OTHER}


async def test_a_session_that_begins_to_run_stops_the_removal(world: World) -> None:
    async with world.process() as collection:
        with collection.paused():
            pass
        await world.time.asleep(SNAPSHOT_COLLECT_IDLE_S)
        with collection.paused():
            await world.idle()
            await anyio.wait_all_tasks_blocked()
            assert await world.kept() == {SESSION, OTHER}
        await world.time.asleep(SNAPSHOT_COLLECT_IDLE_S)
        await world.idle()
    assert await world.kept() == {OTHER}


async def test_it_is_done_once_a_day_by_all_processes_together(world: World) -> None:
    place = (await world.project.shadow()).place
    for pause_ms, is_due in ((0, True), (DAY_MS // 2, False), (DAY_MS, True)):
        await world.idle(pause_ms)
        before = snapshot_upkeep.collected_at(place)
        async with world.process() as collection:
            with collection.paused():
                pass
            await world.time.asleep(SNAPSHOT_COLLECT_IDLE_S)
            await world.idle()
        assert snapshot_upkeep.collected_at(place) == (world.mint.now() if is_due else before)


async def test_a_runtime_plans_it_when_its_sessions_rest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    options = StageOptions(snapshots=True, environ={"HOME": str(home), "PATH": os.environ["PATH"]})
    script = Scripted().calls("echo", text="hi").then().says("Done.")
    async with stage("memory:", tmp_path / "project", script, options) as opened:
        session_id = (await opened.tk.create()).id
        await opened.tk.prompt(session_id, "go")
        with anyio.fail_after(DEADLINE_S):
            await opened.time.asleep(SNAPSHOT_COLLECT_IDLE_S)
