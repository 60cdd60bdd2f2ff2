"""Snapshots survive kills, damage, each other and a git that fails; and a turn never fails for them."""

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import PIPE

import anyio
import pytest
import snapshot_child
from anyio import to_thread
from snapshot_project import OTHER, SESSION, SnapshotProject

from turnkeeper.core.limits import SNAPSHOT_AGAIN_S, SNAPSHOT_NEW_FILES_MAX, SNAPSHOT_S
from turnkeeper.model.config import Config
from turnkeeper.model.refusal import NotFound
from turnkeeper.workspace.snapshots import ShadowRepository, Snapshots

# Each git process adds a byte to $COUNT. From the one with the number $AT on the process that started it is killed.
KILLING_GIT = """#!/bin/sh
printf x >> "$COUNT"
[ $(wc -c < "$COUNT") -ge $AT ] || exec {git} "$@"
case $HOW in
    before) kill -9 $PPID ;;
    meanwhile) kill -9 $PPID; exec {git} "$@" ;;
    after) {git} "$@"; kill -9 $PPID ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> SnapshotProject:
    return SnapshotProject(tmp_path)


def fake_git(project: SnapshotProject, script: str) -> dict[str, str]:
    """The variables of a process that finds this script as its git."""
    folder = project.home / "bin"
    folder.mkdir()
    (folder / "git").write_text(script.replace("{git}", shutil.which("git") or "git"))
    (folder / "git").chmod(0o755)
    return {**project.environ, "PATH": f"{folder}:{project.environ['PATH']}"}


def child(project: SnapshotProject, environ: dict[str, str], *arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, snapshot_child.__file__, str(project.top), *arguments]
    search = ":".join(path for path in sys.path if path)
    return subprocess.Popen(command, env={**environ, "PYTHONPATH": search}, stdout=PIPE, stderr=PIPE)


async def ended(running: "subprocess.Popen[bytes]") -> bytes:
    """Wait for a process; what it said on standard error."""
    return (await to_thread.run_sync(partial(running.communicate, timeout=120)))[1]


async def sound(project: SnapshotProject) -> None:
    """The files are captured as they are, and git finds no fault with the shadow repository."""
    fresh = Snapshots(project.environ, lambda: project.now)
    shadow = await fresh.of(await project.place(), Config())
    assert shadow is not None
    tree = await shadow.capture(SESSION)
    assert tree is not None
    assert project.entries(shadow, tree) == project.expected()
    project.git(f"--git-dir={shadow.place.git_dir}", "fsck", "--full", "--strict")


async def killed_at_every_git(project: SnapshotProject, how: str, *, every: int = 1) -> int:
    """Kill a process that makes a shadow repository and captures, at its first git process, its second, and so on."""
    project.write(".gitattributes", "*.txt text\n")
    project.write("a.txt", "one\n")
    project.write("b", "one\n")
    project.commit()
    environ = fake_git(project, KILLING_GIT) | {"COUNT": str(project.home / "count"), "HOW": how}
    await project.place()
    for at in range(1, 40, every):
        shutil.rmtree(project.home / "data", ignore_errors=True)
        (project.home / "count").unlink(missing_ok=True)
        project.write("b", "one\n")
        running = child(project, {**environ, "AT": str(at)}, "b", "2")
        errors = await ended(running)
        if running.returncode == 0:
            return at
        assert running.returncode == -signal.SIGKILL, errors
        await sound(project)
    raise AssertionError("the child is killed for ever")


async def test_a_process_killed_at_some_of_its_git_processes_breaks_nothing(project: SnapshotProject) -> None:
    assert await killed_at_every_git(project, "before", every=3) > 8


@pytest.mark.soak
@pytest.mark.parametrize("how", ["before", "meanwhile", "after"])
async def test_a_process_killed_at_any_git_process_breaks_nothing(project: SnapshotProject, how: str) -> None:
    assert await killed_at_every_git(project, how) > 8


@pytest.mark.parametrize("how", ["before", "after"])
async def test_a_removal_killed_at_any_git_process_loses_nothing_that_is_kept(
    project: SnapshotProject, how: str
) -> None:
    kept: dict[str, dict[str, bytes]] = {}
    environ = fake_git(project, KILLING_GIT) | {"COUNT": str(project.home / "count"), "HOW": how}
    project.write("a", "one\n")
    project.commit()
    shadow = await project.shadow()
    at, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        at += 1
        for number in range(2):
            project.write(f"file{number}", f"{at} {number}\n" * 100)
            tree = await project.capture()
            kept[tree] = await project.listed(tree)
        (project.home / "count").unlink(missing_ok=True)
        running = child(project, {**environ, "AT": str(at)}, "file0", "0")
        await ended(running)
        code = running.returncode
        assert [await project.listed(tree) for tree in kept] == list(kept.values())
    assert (code, at) == (0, 3)
    project.git(f"--git-dir={shadow.place.git_dir}", "fsck", "--full", "--strict")


async def test_a_git_process_that_outlives_its_parent_holds_the_lock(project: SnapshotProject) -> None:
    project.write("b", "one\n")
    await project.capture()
    lock = (await project.shadow()).place.git_dir.with_suffix(".lock")
    os.mkfifo(project.home / "go")
    script = """#!/bin/sh
case "$*" in *update-index*) kill -9 $PPID; read line < "$HOME/go" ;; esac
exec {git} "$@"
"""
    running = child(project, fake_git(project, script), "b", "1")
    assert await to_thread.run_sync(partial(running.wait, timeout=120)) == -signal.SIGKILL
    with lock.open() as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (project.home / "go").write_text("on\n")
        await ended(running)
    await sound(project)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "index": lambda git_dir: (git_dir / "index").write_bytes(b"DIRC garbage"),
    "cut index": lambda git_dir: os.truncate(git_dir / "index", 40),
    "index.lock": lambda git_dir: (git_dir / "index.lock").write_bytes(b""),
    "HEAD": lambda git_dir: (git_dir / "HEAD").unlink(),
    "empty HEAD": lambda git_dir: (git_dir / "HEAD").write_bytes(b""),
    "config": lambda git_dir: (git_dir / "config").write_bytes(b"[core\n"),
    "objects": lambda git_dir: shutil.rmtree(git_dir / "objects"),
    "stored": lambda git_dir: shutil.rmtree(git_dir / "stored"),
    "everything": lambda git_dir: git_dir.rename(git_dir.with_name("elsewhere")).with_name(git_dir.name).mkdir(),
    "a file": lambda git_dir: git_dir.rename(git_dir.with_name("elsewhere")).with_name(git_dir.name).write_text(""),
    "half made": lambda git_dir: git_dir.rename(git_dir.with_suffix(".new")),
    "removed": lambda git_dir: shutil.rmtree(git_dir),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_shadow_repository_is_made_anew(project: SnapshotProject, damage: str) -> None:
    project.write("a", "one\n")
    project.commit()
    shadow = await project.shadow()
    await project.capture()
    project.write("b", "two\n")
    DAMAGES[damage](shadow.place.git_dir)
    assert project.entries(shadow, await project.capture()) == project.expected()
    await sound(project)


async def test_an_index_with_a_wrong_byte_is_made_anew(project: SnapshotProject) -> None:
    project.write("a", "one\n")
    shadow = await project.shadow()
    tree = await project.capture()
    blob = bytes.fromhex((await shadow.entries(tree, ["a"]))["a"].blob)
    index = shadow.place.git_dir / "index"
    index.write_bytes(index.read_bytes().replace(blob, bytes(20)[:-1] + b"x"))
    await sound(project)


async def test_a_new_beginning_is_warned_of_once(project: SnapshotProject, caplog: pytest.LogCaptureFixture) -> None:
    project.write("a")
    shadow = await project.shadow()
    tree = await project.capture()
    (shadow.place.git_dir / "HEAD").unlink()
    await project.capture()
    await project.capture()
    [warning] = caplog.records
    assert (warning.levelno, "begun anew" in warning.getMessage()) == (logging.WARNING, True)
    assert (shadow.place.git_dir.with_suffix(".broken") / "index").exists()
    assert await project.capture() == tree


async def test_sessions_and_processes_capture_one_worktree_at_once(project: SnapshotProject) -> None:
    for number in range(20):
        project.write(f"file{number}")
    project.commit()
    await project.place()
    children = [child(project, project.environ, name, "4") for name in ("x", "y")]
    found: list[str | None] = []

    async def captured(name: str) -> None:
        shadow = await project.shadow()
        for number in range(3):
            project.write(name, str(number))
            tree = await shadow.capture(name)
            assert tree is not None
            entry = (await shadow.entries(tree, [name]))[name]
            assert await shadow.read([entry.blob]) == {entry.blob: str(number).encode()}
            found.append(tree)

    async with anyio.create_task_group() as group:
        for name in (SESSION, OTHER, "ses_3"):
            group.start_soon(captured, name)
        for running in children:
            group.start_soon(ended, running)
    assert [running.returncode for running in children] == [0, 0]
    assert len(found) == 9
    await sound(project)


async def test_without_git_there_are_no_snapshots_and_one_warning(
    project: SnapshotProject, caplog: pytest.LogCaptureFixture
) -> None:
    place = await project.place()
    project.environ["PATH"] = str(project.home)
    assert [await project.snapshots.of(place, Config()) for _ in range(3)] == [None, None, None]
    assert [record.getMessage() for record in caplog.records] == [
        f"no snapshots of {str(project.top)!r}: git is not installed;"
        " without it changes of files are neither shown nor undone"
    ]


async def test_a_git_that_fails_costs_the_snapshot_and_one_warning(
    project: SnapshotProject, caplog: pytest.LogCaptureFixture
) -> None:
    place = await project.place()
    environ = fake_git(project, '#!/bin/sh\necho "x" >> "$HOME/asked"\necho "cannot, sorry" >&2\nexit 128\n')
    shadow = await Snapshots(environ, lambda: project.now).of(place, Config())
    assert shadow is not None
    assert await shadow.capture(SESSION) is None
    asked = (project.home / "asked").read_text()
    assert await shadow.capture(SESSION) is None
    assert (project.home / "asked").read_text() == asked  # It is not asked again at once.
    project.now += int(SNAPSHOT_AGAIN_S * 1000)
    assert await shadow.capture(SESSION) is None
    assert (project.home / "asked").read_text() != asked
    assert [record.getMessage() for record in caplog.records] == [f"no snapshot of {str(project.top)!r}: cannot, sorry"]
    with pytest.raises(NotFound, match="no snapshots of"):
        await shadow.read(["1" * 40])


async def test_a_cancelled_capture_ends_its_git(project: SnapshotProject) -> None:
    place = await project.place()
    pipe = project.home / "pipe"
    os.mkfifo(pipe)
    environ = fake_git(project, '#!/bin/sh\nexec 3> "$HOME/pipe"\necho started >&3\nexec sleep 600\n')
    shadow = await Snapshots(environ, lambda: project.now).of(place, Config())
    assert shadow is not None
    output = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    async with anyio.create_task_group() as group:
        group.start_soon(shadow.capture, SESSION)
        await anyio.wait_readable(output)
        assert os.read(output, 100) == b"started\n"
        group.cancel_scope.cancel()
    with anyio.fail_after(SNAPSHOT_S / 2):  # It would end by itself, but later.
        await anyio.wait_readable(output)
    assert os.read(output, 100) == b""  # The process is gone, and with it the last writer of the pipe.
    os.close(output)
    assert await ShadowRepository(shadow.place, project.environ, lambda: project.now).capture(SESSION) is not None


async def test_the_home_directory_is_never_captured(project: SnapshotProject, caplog: pytest.LogCaptureFixture) -> None:
    project.top = project.home
    assert await project.snapshots.of(await project.place(), Config()) is None
    project.top = project.home.parent
    assert await project.snapshots.of(await project.place(), Config()) is None
    assert len(caplog.records) == 2


async def test_a_directory_with_very_many_files_is_not_captured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = SnapshotProject(tmp_path, has_git=False)
    (plain.top / "many").mkdir()
    for number in range(SNAPSHOT_NEW_FILES_MAX + 1):
        (plain.top / "many" / str(number)).touch()
    shadow = await plain.shadow()
    assert await shadow.capture(SESSION) is None
    plain.write(".gitignore", "many/\n")
    plain.now += int(SNAPSHOT_AGAIN_S * 1000)
    assert await shadow.capture(SESSION) is not None
    assert [record.getMessage() for record in caplog.records] == [
        f"no snapshot of {str(plain.top)!r}:"
        " it has more than 20,000 files that no repository tracks; ignore some in .gitignore"
    ]


async def test_a_branch_with_very_many_other_files_is_captured(project: SnapshotProject) -> None:
    shadow = await project.shadow()
    project.commit()
    before = await shadow.capture(SESSION)
    project.git("checkout", "-q", "-b", "many")
    (project.top / "many").mkdir()
    for number in range(SNAPSHOT_NEW_FILES_MAX + 1):
        (project.top / "many" / str(number)).touch()
    project.commit()
    project.write("new", "1")
    after = await shadow.capture(SESSION)
    assert before is not None
    assert after is not None
    assert len(await shadow.changed(before, after)) == SNAPSHOT_NEW_FILES_MAX + 2
