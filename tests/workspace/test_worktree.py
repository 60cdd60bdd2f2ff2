"""A new worktree has the files of a snapshot exactly, and a failure leaves nothing behind."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from snapshot_project import SnapshotProject

from turnkeeper.interop.opencode_v0.projects import git_root_commits
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.workspace.worktree import new_worktree


@pytest.fixture
def project(tmp_path: Path) -> SnapshotProject:
    made = SnapshotProject(tmp_path)
    made.write("kept.txt", "kept\n")
    made.write("gone.txt", "gone\n")
    made.write("d/link-to-be.txt", "text\n")
    made.commit()
    return made


def contents(top: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a directory but those of git: its mode and its bytes."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if name.split("/")[0] == ".git" or (path.is_dir() and not path.is_symlink()):
            continue
        mode = path.lstat().st_mode
        found[name] = (mode & 0o170111, os.readlink(path).encode() if path.is_symlink() else path.read_bytes())
    return found


def changed(project: SnapshotProject) -> None:
    """Change what git finds hard."""
    (project.top / "gone.txt").unlink()
    project.write("new \N{LATIN SMALL LETTER E WITH ACUTE}\n.txt", "a\r\nb\r\n")
    project.write(".gitattributes", "* text eol=lf filter=shout\n")
    project.git("config", "filter.shout.smudge", "tr a-z A-Z")
    project.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (project.top / "d/link-to-be.txt").unlink()
    (project.top / "d").rmdir()
    (project.top / "d").symlink_to("kept.txt")
    (project.top / "dangling").symlink_to("/nowhere/at/all")


async def test_what_a_sparse_checkout_leaves_out_is_left_out_of_it_and_not_deleted(
    project: SnapshotProject, tmp_path: Path
) -> None:
    project.git("sparse-checkout", "set", "other")
    project.write("d/new.txt", "new\n")
    project.git("add", "--sparse", "d/new.txt")
    project.git("sparse-checkout", "reapply")
    project.write("kept.txt", "changed\n")
    async with new_worktree(await project.shadow(), await project.capture(), tmp_path / "w", project.environ):
        assert contents(tmp_path / "w") == contents(project.top)
    assert project.git("status", "--porcelain", at=tmp_path / "w") == " M kept.txt\n"


@pytest.mark.parametrize("has_git", [True, False], ids=["repository", "no repository"])
async def test_it_has_the_files_of_the_snapshot_and_no_others(tmp_path: Path, has_git: bool) -> None:
    project = SnapshotProject(tmp_path, has_git=has_git)
    project.write("kept.txt", "kept\n")
    project.write("gone.txt", "gone\n")
    project.write("d/link-to-be.txt", "text\n")
    if has_git:
        project.commit()
        changed(project)
    else:
        project.write("run.sh", "#!/bin/sh\n").chmod(0o755)
        (project.top / "dangling").symlink_to("/nowhere/at/all")
    wanted = contents(project.top)
    tree = await project.capture()
    project.write("later.txt", "not in the snapshot\n")
    project.write("kept.txt", "changed since\n")
    target = tmp_path / "deep" / "second"
    async with new_worktree(await project.shadow(), tree, target, project.environ) as made:
        assert made == target
    assert contents(target) == wanted
    assert (target / ".git").exists() == has_git


async def test_the_repository_has_one_worktree_more_and_is_otherwise_as_it_was(
    project: SnapshotProject, tmp_path: Path
) -> None:
    hook = project.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    project.write("kept.txt", "changed\n")
    tree = await project.capture()
    before = {name: found for name, found in project.own_repository().items() if name not in ("status", "fsck")}
    async with new_worktree(await project.shadow(), tree, tmp_path / "second", project.environ) as made:
        pass
    after = project.own_repository()
    assert {name: found for name, found in after.items() if name in before} == before
    assert {name for name in after if name not in before} - {"status", "fsck"} == {
        name for name in after if name.startswith(".git/worktrees/second/")
    }
    assert project.git("status", "--porcelain", at=made) == " M kept.txt\n"
    assert project.git("rev-parse", "HEAD", at=made) == project.git("rev-parse", "HEAD")
    assert project.git("rev-parse", "--abbrev-ref", "HEAD", at=made) == "HEAD\n", "it is detached"
    assert not list(tmp_path.rglob("ran")), "no hook was run"
    project.git("fsck", "--strict")


def worktrees(project: SnapshotProject) -> str:
    return project.git("worktree", "list", "--porcelain")


@pytest.mark.parametrize("was_there", [True, False])
async def test_a_failure_of_what_follows_leaves_neither_a_directory_nor_a_worktree(
    project: SnapshotProject, tmp_path: Path, was_there: bool
) -> None:
    tree, target, before = await project.capture(), tmp_path / "second", worktrees(project)
    if was_there:
        target.mkdir()

    async def fail() -> None:
        async with new_worktree(await project.shadow(), tree, target, project.environ):
            assert worktrees(project) != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert target.exists() == was_there
    assert list(target.glob("*")) == []
    assert worktrees(project) == before
    assert not (project.top / ".git/worktrees").exists()


async def test_a_cancellation_leaves_nothing_either(project: SnapshotProject, tmp_path: Path) -> None:
    tree, target, before = await project.capture(), tmp_path / "second", worktrees(project)
    with anyio.CancelScope() as scope:
        async with new_worktree(await project.shadow(), tree, target, project.environ):
            scope.cancel()
            await anyio.sleep_forever()
    assert (target.exists(), worktrees(project)) == (False, before)


async def test_a_snapshot_that_is_not_kept_leaves_nothing(project: SnapshotProject, tmp_path: Path) -> None:
    tree, target, before = await project.capture(), tmp_path / "second", worktrees(project)
    shadow = await project.shadow()
    for wrong in ("0" * 40, "--help", tree):
        if wrong == tree:
            shutil.rmtree(shadow.place.git_dir)
        with pytest.raises(NotFound):
            async with new_worktree(shadow, wrong, target, project.environ):
                raise AssertionError("it was made")
        assert (target.exists(), worktrees(project)) == (False, before)


async def test_a_directory_of_others_is_refused_and_untouched(project: SnapshotProject, tmp_path: Path) -> None:
    tree, shadow = await project.capture(), await project.shadow()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for target, error in (
        (tmp_path / "full", Conflict),
        (tmp_path / "file", Conflict),
        (tmp_path / "file/below", Conflict),
        (project.top, Invalid),
        (project.top / "inside", Invalid),
        (project.top / ".git/inside", Invalid),
        (tmp_path / "elsewhere/.git/inside", Invalid),
        (Path("relative"), Invalid),
        (Path("/proc/nowhere"), Invalid),
        (tmp_path / "x\0y", Invalid),
        (tmp_path / "loop", Conflict),
        (tmp_path / "loop/below", Invalid),
    ):
        with pytest.raises(error):
            async with new_worktree(shadow, tree, target, project.environ):
                raise AssertionError("it was made")
    assert (tmp_path / "full/mine.txt").read_text() == (tmp_path / "file").read_text() == "mine"
    assert (project.top / "kept.txt").exists()


async def test_a_copy_is_not_made_inside_of_what_is_copied(tmp_path: Path) -> None:
    project = SnapshotProject(tmp_path, has_git=False)
    project.write("a.txt")
    tree = await project.capture()
    with pytest.raises(Invalid, match="would then contain a copy of itself"):
        async with new_worktree(await project.shadow(), tree, project.top / "inside", project.environ):
            raise AssertionError("it was made")
    assert not (project.top / "inside").exists()


async def test_a_repository_without_a_commit_has_no_worktrees(tmp_path: Path) -> None:
    project = SnapshotProject(tmp_path)
    project.write("a.txt")
    tree = await project.capture()
    with pytest.raises(NotFound, match="HEAD"):
        async with new_worktree(await project.shadow(), tree, tmp_path / "second", project.environ):
            raise AssertionError("it was made")
    assert not (tmp_path / "second").exists()


async def test_after_a_kill_a_second_try_works_or_says_what_to_do(project: SnapshotProject, tmp_path: Path) -> None:
    tree, target = await project.capture(), tmp_path / "second"
    # Killed while git added the worktree: the repository knows a directory that is empty or gone, and locks it.
    project.git("worktree", "add", "--lock", "--detach", "--no-checkout", str(target), "HEAD")
    shutil.rmtree(target)
    target.mkdir()
    async with new_worktree(await project.shadow(), tree, target, project.environ):
        assert contents(target) == contents(project.top)
    # Killed while files were written, or before there was a session.
    (target / "kept.txt").unlink()
    with pytest.raises(Conflict) as refused:
        async with new_worktree(await project.shadow(), tree, target, project.environ):
            pass
    command = str(refused.value).split("`")[1].split()
    assert command == ["git", "worktree", "remove", "--force", "--force", str(target)]
    project.git(*command[1:])
    async with new_worktree(await project.shadow(), tree, target, project.environ):
        assert contents(target) == contents(project.top)


def promises(project: SnapshotProject, missing: str) -> Path:
    """Remove an object, and name a program by which git would fetch it; what the program leaves if it runs."""
    trace = project.home / "ran"
    program = project.home / "program"
    program.write_text(f"#!/bin/sh\ntouch '{trace}'\nexit 1\n")
    program.chmod(0o755)
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", str(project.home)),
        ("remote.origin.uploadpack", str(program)),
    ):
        project.git("config", name, value)
    found = project.git("rev-parse", missing).strip()
    (project.top / ".git/objects" / found[:2] / found[2:]).unlink()
    return trace


@pytest.mark.parametrize("missing", ["HEAD", "HEAD^{tree}", "HEAD~1", ":kept.txt"])
async def test_an_object_that_is_missing_is_not_fetched(project: SnapshotProject, missing: str, tmp_path: Path) -> None:
    project.write(".gitattributes", "*.txt text\n")
    project.commit()
    trace = promises(project, missing)
    project.git("cat-file", "-e", project.git("rev-parse", missing, check=False).strip() or "HEAD", check=False)
    assert trace.exists(), "the program is one that git runs"
    trace.unlink()
    await project.place()
    git_root_commits(project.top)
    tree = await project.capture()
    with suppress(NotFound):
        async with new_worktree(await project.shadow(), tree, tmp_path / "other", project.environ):
            pass
    assert not trace.exists()
