"""The snapshots of one turn: when they are taken, and whose changes lie between them."""

import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from confined import unprivileged
from snapshot_project import OTHER, SESSION, SnapshotProject

from turnkeeper.core.file_changes import TurnFiles
from turnkeeper.core.limits import SNAPSHOT_DELAY_S, SNAPSHOT_FILE_BYTES_MAX
from turnkeeper.model.parts import PatchPart
from turnkeeper.run.turn_snapshots import TurnSnapshots
from turnkeeper.testing.builders import an_assistant
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
async def a_turn(
    project: SnapshotProject, *, thinks: bool, session_id: str = SESSION, callers: Sequence[str] = ()
) -> AsyncIterator[_Turn]:
    """A turn that has begun; if the model thinks, after its early snapshot."""
    shadow = await project.shadow()

    async def opened() -> ShadowRepository:
        turn.taken += 1
        return shadow

    async def waiting() -> Sequence[str]:
        return callers

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            if thinks:
                async with anyio.create_task_group() as early:
                    turn = _Turn(session_id, opened, early, at_once, waiting)
                    turn.begin()
            else:
                turn = _Turn(session_id, opened, group, never, waiting)
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


def test_files_of_a_folder_that_cannot_be_entered_any_more_are_named(project: SnapshotProject) -> None:
    async def close_a_folder() -> TurnFiles | None:
        async with a_turn(project, thinks=False) as turn:
            async with turn.call("prt_1"):
                project.write("a/b/one.txt", "changed\n")
                project.write("made.txt")
                (project.top / "a/b").chmod(0)
            return await turn.finish()

    async def open_it() -> TurnFiles | None:
        async with a_turn(project, thinks=False) as turn:
            async with turn.call("prt_1"):
                (project.top / "a/b").chmod(0o700)
            return await turn.finish()

    project.write("a/b/one.txt")
    project.write("a/b/c/two.txt")
    project.write("a/kept.txt")
    closed = unprivileged(lambda: anyio.run(close_a_folder))
    opened = unprivileged(lambda: anyio.run(open_it))
    assert closed is not None
    assert opened is not None
    assert (only_names(closed.files), closed.unrecorded) == (
        ["made.txt"],
        ("a/b/ (it cannot be entered, so what changed in it is not known)",),
    )
    assert opened.files == ()
    assert opened.unrecorded == ("a/b/one.txt (the snapshot before the turn had an older version of it)",)


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


def only_names(files: Sequence[str]) -> list[str]:
    return [Path(file).name for file in files]


async def test_what_was_there_and_in_no_snapshot_is_not_taken_for_made_by_the_turn(project: SnapshotProject) -> None:
    project.write(".gitignore", ".env\nbuild/\nlogs/*.log\n")
    for name in (".env", "build/out.bin", "logs/a.log", "logs/kept.txt"):
        project.write(name, "before\n")
    project.git("init", "-q", "nested")
    project.write("nested/inner.txt", "before\n")
    project.write("large.bin", b"x" * (SNAPSHOT_FILE_BYTES_MAX + 1))
    elsewhere = project.home / "elsewhere.txt"
    elsewhere.write_text("before\n")
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            (project.top / ".env").rename(project.top / "env.txt")
            (project.top / "build").rename(project.top / "out")
            elsewhere.rename(project.top / "moved.txt")
            project.write("logs/a.log.new", "other\n").rename(project.top / "logs/a.log")
            project.write(".gitignore", "")
            shutil.rmtree(project.top / "nested/.git")
            project.write("nested/new.txt", "other\n")
            project.write("large.bin", b"x")
            project.write("made/new.txt")
        files = await turn.finish()
    assert files is not None
    assert sorted(file.removeprefix(f"{project.top}/") for file in files.files) == [".gitignore", "made/new.txt"]
    named = [one.split(" ")[0] for one in files.unrecorded]
    hidden = ["env.txt", "large.bin", "logs/a.log", "moved.txt", "nested/inner.txt", "nested/new.txt", "out/out.bin"]
    assert named == hidden


async def test_a_copy_that_keeps_times_may_be_the_only_one_left(project: SnapshotProject) -> None:
    elsewhere = project.home / "elsewhere.txt"
    elsewhere.write_text("before\n")
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            shutil.copy2(elsewhere, project.top / "copied.txt")
            os.utime(project.top / "copied.txt", (1_700_000_000, 1_700_000_000))
            elsewhere.unlink()
        files = await turn.finish()
    assert files is not None
    assert (files.files, len(files.unrecorded)) == ((), 1)
    [patch] = files.patch(an_assistant(SESSION, "msg_2", "msg_1"), lambda: "prt_2")
    assert isinstance(patch, PatchPart)
    assert patch.unrecorded == ("copied.txt (it is older than the turn, which may have moved or copied it)",)


async def test_a_captured_file_that_is_renamed_is_the_turn_s(project: SnapshotProject) -> None:
    project.write("more.txt", "more\n")
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            (project.top / "kept.txt").rename(project.top / "renamed.txt")
            (project.top / "more.txt").rename(project.top / "longer.txt")
            with (project.top / "longer.txt").open("a") as file:
                file.write("written in place\n")
        files = await turn.finish()
    assert files is not None
    assert (only_names(files.files), files.unrecorded) == (
        ["kept.txt", "longer.txt", "more.txt", "renamed.txt"],
        (),
    )


async def test_a_repository_that_is_moved_away_is_not_taken_for_made_by_the_turn(tmp_path: Path) -> None:
    project = SnapshotProject(tmp_path)
    project.write("kept.txt")
    project.commit()
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            (project.top / ".git").rename(project.top / ".gitold")
            project.write(".git", "gitdir: elsewhere\n")
            project.write("made.txt")
        files = await turn.finish()
    assert files is not None
    assert only_names(files.files) == ["made.txt"]
    assert ".gitold/HEAD" in [one.split(" ")[0] for one in files.unrecorded]


async def test_an_older_version_in_the_snapshot_is_not_what_the_turn_found(project: SnapshotProject) -> None:
    project.write("log.txt", "first\n")
    await project.capture()
    project.write("log.txt", b"x" * (SNAPSHOT_FILE_BYTES_MAX + 1))
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            project.write("log.txt", "second\n")
        files = await turn.finish()
    assert files is not None
    assert files.files == ()
    assert files.unrecorded == ("log.txt (the snapshot before the turn had an older version of it)",)


async def test_what_no_snapshot_can_hold_is_named(project: SnapshotProject) -> None:
    project.git("init", "-q", "nested")
    project.git("init", "-q", "untouched")
    project.write("untouched/inner.txt")
    project.write("untouched.bin", b"x" * (SNAPSHOT_FILE_BYTES_MAX + 1))
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            project.write("nested/inner.txt")
            project.git("init", "-q", "cloned")
            project.write("grown.bin", b"x" * (SNAPSHOT_FILE_BYTES_MAX + 1))
            project.write(b"latin-\xe9.txt")
        files = await turn.finish()
    assert files is not None
    assert files.files == ()
    assert files.unrecorded == (
        "cloned/ (it is a repository of its own)",
        "grown.bin (it is too large or cannot be read)",
        "latin-\\xe9.txt (its name is not UTF-8)",
        "nested/ (it is a repository of its own)",
    )


async def test_what_no_snapshot_had_and_is_deleted_is_named(project: SnapshotProject) -> None:
    for name in ("removed", "emptied", "replaced"):
        project.git("init", "-q", name)
        project.write(f"{name}/inner.txt")
    project.write("huge.bin", b"x" * (SNAPSHOT_FILE_BYTES_MAX + 1))
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1"):
            (project.top / "huge.bin").unlink()
            (project.top / "emptied/inner.txt").unlink()
            for name in ("removed", "replaced"):
                shutil.rmtree(project.top / name)
            project.write("replaced")
        files = await turn.finish()
    assert files is not None
    assert files.files == (str(project.top / "replaced"),)
    assert files.unrecorded == (
        "emptied/ (it is a repository of its own)",
        "huge.bin (it is gone, and no snapshot had it)",
        "removed/ (it is gone, and no snapshot had it)",
        "replaced/ (it is gone, and no snapshot had it)",
    )


async def test_a_call_that_names_its_files_changes_no_others(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1", is_command=False):
            turn.wrote(project.top / "made.txt")
            project.write("made.txt")
            project.write("kept.txt", "edited by the user\n")
        files = await turn.finish()
    assert files is not None
    assert (only_names(files.files), files.during, files.unrecorded) == (["made.txt"], (), ())


async def test_what_changed_while_a_command_ran_is_marked(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=False) as turn:
        async with turn.call("prt_1", is_command=False):
            turn.wrote(project.top / "made.txt")
            project.write("made.txt")
        async with turn.call("prt_2"):
            project.write("kept.txt", "edited by somebody\n")
        files = await turn.finish()
    assert files is not None
    assert (only_names(files.files), only_names(files.during)) == (["kept.txt", "made.txt"], ["kept.txt"])


async def test_what_another_session_wrote_while_a_command_ran_is_not_the_turn_s(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=False) as turn, a_turn(project, thinks=False, session_id=OTHER) as other:
        async with turn.call("prt_1"):
            async with other.call("prt_2", is_command=False):
                other.wrote(project.top / "other.txt")
                project.write("other.txt")
            project.write("made.txt")
        files = await turn.finish()
        others = await other.finish()
    assert files is not None
    assert others is not None
    assert only_names(files.files) == ["made.txt"]
    assert files.unrecorded == ("other.txt (another session wrote it at the same time)",)
    assert only_names(others.files) == ["other.txt"]


async def test_what_a_session_wrote_for_a_call_that_waits_for_it_is_the_turn_s_too(project: SnapshotProject) -> None:
    async with (
        a_turn(project, thinks=False) as turn,
        a_turn(project, thinks=False, session_id=OTHER, callers=(SESSION,)) as child,
    ):
        async with turn.call("prt_1"):
            async with child.call("prt_2"):
                project.write("made.txt")
            made = await child.finish()
        files = await turn.finish()
    assert made is not None
    assert files is not None
    assert (only_names(made.files), only_names(files.files), files.unrecorded) == (["made.txt"], ["made.txt"], ())


async def test_of_two_commands_at_a_time_the_one_that_ends_first_has_the_changes(project: SnapshotProject) -> None:
    async with a_turn(project, thinks=False) as turn, a_turn(project, thinks=False, session_id=OTHER) as other:
        async with turn.call("prt_1"), other.call("prt_2"):
            project.write("made.txt")
        files = await turn.finish()
        project.write("later.txt")
        others = await other.finish()
    assert files is not None
    assert others is not None
    assert (only_names(files.files), only_names(others.files)) == (["made.txt"], ["later.txt"])
