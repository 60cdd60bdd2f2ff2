"""The snapshots of one turn: when they are taken, and whose changes lie between them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from snapshot_project import SESSION, SnapshotProject

from turnkeeper.core.file_changes import TurnFiles
from turnkeeper.core.limits import SNAPSHOT_DELAY_S
from turnkeeper.run.turn_snapshots import TurnSnapshots
from turnkeeper.workspace.snapshots import ShadowRepository

DEADLINE_S = 60


@pytest.fixture
def project(tmp_path: Path) -> SnapshotProject:
    made = SnapshotProject(tmp_path, has_git=False)
    made.write("kept.txt", "kept\n")
    return made


async def at_once(seconds: float) -> None:
    """The model thinks for longer than the delay."""
    assert seconds == SNAPSHOT_DELAY_S
    await anyio.lowlevel.checkpoint()


async def never(seconds: float) -> None:
    """The turn ends, or calls, before the delay is over."""
    await anyio.sleep_forever()


class _Turn(TurnSnapshots):
    """Counts how many times a snapshot before the calls was taken."""

    taken = 0


@asynccontextmanager
async def a_turn(project: SnapshotProject, *, thinks: bool) -> AsyncIterator[_Turn]:
    """A turn that has begun; if the model thinks, after its early snapshot."""
    shadow = await project.shadow()

    async def opened() -> ShadowRepository:
        turn.taken += 1
        return shadow

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            if thinks:
                async with anyio.create_task_group() as early:
                    turn = _Turn(SESSION, opened, early, at_once)
                    turn.begin()
            else:
                turn = _Turn(SESSION, opened, group, never)
                turn.begin()
            yield turn


async def test_a_short_turn_takes_no_snapshot(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=False) as turn:
        assert await turn.finish() is None
    assert turn.taken == 0
    assert not (await project.shadow()).place.git_dir.exists()


async def test_a_turn_that_lasts_for_a_moment_has_one_tree_as_its_beginning_and_end(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=True) as turn:
        files = await turn.finish()
    tree = await project.capture()
    assert files == TurnFiles(before=tree, after=tree)
    assert turn.taken == 1


async def test_a_call_that_comes_at_once_takes_the_first_snapshot(project: SnapshotProject) -> None:
    recorded = []
    async with a_turn(project, thinks=False) as turn:

        async def record() -> None:
            recorded.append(turn.before)

        turn.record = record
        async with turn.call("prt_1"):
            assert recorded == [turn.before]
            project.write("made.txt")
        assert turn.needs_last
        files = await turn.finish()
    assert files is not None
    assert files.files == (str(project.top / "made.txt"),)
    assert turn.taken == 1


async def test_what_the_user_edits_while_the_model_thinks_is_not_the_turn_s(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=True) as turn:
        project.write("kept.txt", "edited by the user\n")
        async with turn.call("prt_1"):
            project.write("made.txt")
        files = await turn.finish()
    assert files is not None
    assert files.files == (str(project.top / "made.txt"),)


async def test_what_a_call_wrote_is_not_lost_by_another_that_begins_later(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=True) as turn:
        async with turn.call("prt_1"):
            project.write("first.txt")
            async with turn.call("prt_2"), turn.waiting("prt_2"):
                project.write("more.txt")
        async with turn.call("prt_3"):
            project.write("third.txt")
        files = await turn.finish()
    assert files is not None
    assert [Path(file).name for file in files.files] == ["first.txt", "more.txt", "third.txt"]


async def test_what_the_user_edits_while_the_only_call_waits_is_not_the_turn_s(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            async with turn.waiting("prt_1"):
                project.write("kept.txt", "edited by the user\n")
            project.write("made.txt")
        files = await turn.finish()
    assert files is not None
    assert files.files == (str(project.top / "made.txt"),)


async def test_a_call_that_is_stopped_while_it_waits_has_changed_nothing(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=False) as turn:
        with anyio.CancelScope() as scope:
            async with turn.call("prt_1"), turn.waiting("prt_1"):
                project.write("kept.txt", "edited by the user\n")
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        files = await turn.finish()
    assert files is not None
    assert files.files == ()
