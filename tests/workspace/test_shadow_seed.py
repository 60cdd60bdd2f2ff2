"""Seed: what a snapshot takes from the index and the objects of the project's own repository."""

import os
from pathlib import Path

import pytest
from snapshot_project import SnapshotProject


@pytest.fixture
def project(tmp_path: Path) -> SnapshotProject:
    return SnapshotProject(tmp_path)


@pytest.mark.parametrize("autocrlf", ["false", "input", "true"])
async def test_files_that_the_project_stores_otherwise_are_captured_as_on_the_disk(
    project: SnapshotProject, autocrlf: str
) -> None:
    project.git("config", "--global", "filter.up.clean", "tr a-z A-Z")
    project.git("config", "--global", "filter.up.smudge", "tr A-Z a-z")
    project.git("config", "--global", "core.autocrlf", autocrlf)
    project.write(".gitattributes", "*.bin filter=up\n*.txt text eol=crlf\n*.raw -text\n*.id ident\n")
    contents = {
        "a.bin": b"abc\n",
        "a.txt": b"one\r\ntwo\r\n",
        "a.raw": b"a\r\n",
        "a.c": b"a\r\n",
        "a.id": b"$Id: 1234 $\n",
        "same": b"a\n",
    }
    for name, content in contents.items():
        # Git looks again into files that are as new as its index; these are to be believed.
        os.utime(project.write(name, content), (1, 1))
    project.commit()
    found = await project.listed(await project.capture())
    assert {name: found[name] for name in contents} == contents


async def test_marks_of_the_index_hide_no_change(project: SnapshotProject) -> None:
    for name in ("assumed", "skipped", "gone", "plain"):
        project.write(name, "1")
    project.commit()
    project.git("update-index", "--assume-unchanged", "assumed")
    project.git("update-index", "--skip-worktree", "skipped", "gone")
    (project.top / "gone").unlink()
    project.write("intended", "1")
    project.git("add", "-N", "intended")
    await project.capture()
    for name in ("assumed", "skipped", "intended"):
        project.write(name, "2")
    assert await project.listed(await project.capture()) == {
        "assumed": b"2",
        "skipped": b"2",
        "intended": b"2",
        "plain": b"1",
    }


async def test_what_a_sparse_checkout_leaves_out_is_in_no_snapshot(project: SnapshotProject) -> None:
    for name in ("kept/a", "left/a", "left/b"):
        project.write(name, "1")
    project.commit()
    project.git("sparse-checkout", "set", "kept")
    before = await project.capture()
    assert await project.listed(before) == {"kept/a": b"1"}
    project.write("left/a", "2")
    after = await project.capture()
    assert await project.listed(after) == {"kept/a": b"1", "left/a": b"2"}
    (project.top / "left/a").unlink()
    assert await project.capture() == before


async def test_an_unfinished_merge_is_captured_as_on_the_disk(project: SnapshotProject) -> None:
    project.write("a", "1\n")
    project.write("b", "1\n")
    project.commit()
    project.git("checkout", "-qb", "side")
    project.write("a", "2\n")
    project.git("rm", "-q", "b")
    project.commit()
    project.git("checkout", "-q", "main")
    project.write("a", "3\n")
    project.write("b", "3\n")
    project.commit()
    project.git("merge", "-q", "side", check=False)
    (project.top / "b").unlink()
    found = await project.listed(await project.capture())
    assert found == {"a": (project.top / "a").read_bytes()}
    assert b"<<<<<<<" in found["a"]


@pytest.mark.parametrize("setting", ["core.splitIndex", "core.untrackedCache", "feature.manyFiles"])
async def test_any_kind_of_index_is_a_seed(project: SnapshotProject, setting: str) -> None:
    project.write("a", "1")
    project.write("b/c", "1")
    project.commit()
    project.git("config", setting, "true")
    project.write("d", "1")
    project.git("add", "d")
    project.git("status")
    shadow = await project.shadow()
    assert project.entries(shadow, await project.capture()) == project.expected()


async def test_a_repository_with_long_hashes_is_a_source(tmp_path: Path) -> None:
    project = SnapshotProject(tmp_path, has_git=False)
    project.git("init", "-q", "--object-format=sha256")
    project.write("a", "1")
    project.commit()
    tree = await project.capture()
    assert len(tree) == 64
    assert await project.listed(tree) == {"a": b"1"}


async def test_a_snapshot_outlives_the_objects_that_it_need_not_borrow(project: SnapshotProject) -> None:
    project.write("a", "1")
    project.commit()
    project.write("a", "2")
    project.git("add", "a")
    tree = await project.capture()
    project.write("a", "3")
    project.git("add", "a")
    after = await project.capture()
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "-q", "--prune=now")
    assert await (await project.shadow()).changed(tree, after) == ("a",)
    assert (await project.listed(after))["a"] == b"3"
