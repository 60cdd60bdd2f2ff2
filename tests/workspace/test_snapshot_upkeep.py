"""Snapshot upkeep: quota, retention, and removal that loses nothing that is kept."""

import os
import random
import shutil
import time
from pathlib import Path

import pytest
from snapshot_project import OTHER, SESSION, SnapshotProject

from turnkeeper.model.config import Config, SnapshotConfig
from turnkeeper.model.refusal import NotFound
from turnkeeper.workspace import paths, snapshot_upkeep
from turnkeeper.workspace.shadow_repository import ShadowRepository

DAY = 24 * 3600 * 1000
KIB = 1024


@pytest.fixture
def project(tmp_path: Path) -> SnapshotProject:
    return SnapshotProject(tmp_path)


def refs(project: SnapshotProject, shadow: ShadowRepository) -> set[str]:
    listing = project.git(f"--git-dir={shadow.place.git_dir}", "for-each-ref", "--format=%(refname)", at=project.home)
    return {name.removeprefix("refs/turnkeeper/") for name in listing.split()}


def fsck(project: SnapshotProject, shadow: ShadowRepository) -> None:
    project.git(f"--git-dir={shadow.place.git_dir}", "fsck", "--full", "--strict")


async def test_removal_keeps_every_tree_that_is_kept_and_nothing_else(project: SnapshotProject) -> None:
    project.write("borrowed", "committed\n")
    project.commit()
    shadow = await project.shadow()
    trees: dict[str, dict[str, bytes]] = {}
    for number in range(6):
        project.write(f"file{number}", os.urandom(20_000))
        tree = await shadow.capture(SESSION if number % 2 else OTHER)
        assert tree is not None
        trees[tree] = await project.listed(tree)
    [garbage] = await shadow.store([os.urandom(50_000)])
    await shadow.forget(OTHER)
    removed = await shadow.collect()
    assert removed.snapshots == 0
    assert removed.bytes_after < removed.bytes_before
    for tree in [*trees][1::2]:
        assert await project.listed(tree) == trees[tree]
    for tree in [*trees][:1]:
        with pytest.raises(NotFound):
            await shadow.changed(tree, [*trees][1])
    with pytest.raises(NotFound, match=garbage):
        await shadow.read([garbage])
    fsck(project, shadow)
    assert await shadow.capture(SESSION) == [*trees][-1]
    await shadow.collect()
    assert await project.listed([*trees][-1]) == trees[[*trees][-1]]


async def test_a_capture_after_a_removal_of_everything_holds_all_files(project: SnapshotProject) -> None:
    project.write("a", "one")
    tree = await project.capture()
    shadow = await project.shadow()
    await shadow.forget(SESSION)
    await shadow.collect()
    assert await shadow.capture(OTHER) == tree
    assert await project.listed(tree) == {"a": b"one"}


async def test_what_was_just_stored_is_not_removed(project: SnapshotProject) -> None:
    await project.capture()
    shadow = await project.shadow()
    [blob] = await shadow.store([b"for an undo"])
    project.now = int(os.stat(shadow.place.stored / blob[:2] / blob[2:]).st_mtime * 1000) + 1000
    await shadow.collect()
    assert await shadow.read([blob]) == {blob: b"for an undo"}


async def test_the_snapshots_of_idle_sessions_go(project: SnapshotProject) -> None:
    project.write("a", "1")
    shadow = await project.shadow()
    first = await shadow.capture(SESSION)
    await shadow.capture("ses_pending")
    project.now += 6 * DAY
    project.write("a", "2")
    second = await shadow.capture(OTHER)
    project.now += 2 * DAY
    project.pending = {"ses_pending"}
    assert (await shadow.collect()).snapshots == 1
    assert refs(project, shadow) == {f"ses_pending/{first}", f"{OTHER}/{second}"}


async def test_captures_stay_within_the_quota_and_the_newest_are_kept(project: SnapshotProject) -> None:
    quota = 600 * KIB
    config = Config(snapshot=SnapshotConfig(quota_bytes=quota))
    shadow = await project.shadow(config)
    random_bytes = random.Random(1)
    for number in range(30):
        project.now += DAY // 24
        content = random_bytes.randbytes(50_000)
        project.write("data", content)
        tree = await project.capture(config)
        assert await project.listed(tree) == {"data": content}
        assert snapshot_upkeep.disk_bytes(shadow.place.git_dir.parent) <= quota
        assert len(refs(project, shadow)) >= min(number + 1, 2)
    fsck(project, shadow)


async def test_packed_snapshots_make_room_and_the_newest_of_them_are_kept(project: SnapshotProject) -> None:
    quota = 900 * KIB
    config = Config(snapshot=SnapshotConfig(quota_bytes=quota))
    shadow = await project.shadow(config)
    trees = []
    for number in range(10):
        project.now += DAY // 24
        project.write("data", random.Random(number).randbytes(50_000))
        trees.append(await project.capture(config))
    await shadow.collect()
    assert {name.rpartition("/")[2] for name in refs(project, shadow)} == set(trees)
    project.now += DAY // 24
    project.write("more", random.Random(0.5).randbytes(250_000))
    assert await shadow.capture(SESSION) is not None
    assert snapshot_upkeep.disk_bytes(shadow.place.git_dir.parent) <= quota
    kept = {name.rpartition("/")[2] for name in refs(project, shadow)}
    assert [tree for tree in trees if tree in kept] == trees[-len(kept & set(trees)) :]
    assert len(kept & set(trees)) >= 3
    fsck(project, shadow)


@pytest.mark.parametrize("collects", [False, True])
async def test_a_session_with_a_pending_undo_keeps_its_snapshots_whatever_others_need(
    project: SnapshotProject, collects: bool
) -> None:
    quota = 600 * KIB
    config = Config(snapshot=SnapshotConfig(quota_bytes=quota))
    shadow = await project.shadow(config)
    undone = random.Random(2).randbytes(150_000)
    project.write("undone", undone)
    first = await shadow.capture("ses_pending")
    assert first is not None
    project.pending = {"ses_pending"}
    (project.top / "undone").unlink()
    for number in range(12):
        project.now += DAY // 24
        project.write("data", random.Random(number).randbytes(80_000))
        assert await shadow.capture(SESSION) is not None
    if collects:
        shadow.limits = shadow.limits.but(quota_bytes=100 * KIB)
        await shadow.collect()
    assert (await project.listed(first))["undone"] == undone
    assert f"ses_pending/{first}" in refs(project, shadow)
    fsck(project, shadow)


async def test_under_pressure_no_tree_goes_that_would_free_nothing_yet(project: SnapshotProject) -> None:
    config = Config(snapshot=SnapshotConfig(quota_bytes=400 * KIB))
    shadow = await project.shadow(config)
    project.now = time.time_ns() // 1_000_000
    for number in range(3):
        project.write(f"file{number}", random.Random(number).randbytes(60_000))
        assert await shadow.capture(SESSION) is not None
    kept = refs(project, shadow)
    project.write("more", random.Random(4).randbytes(200_000))
    assert await shadow.capture(SESSION) is None
    assert refs(project, shadow) == kept
    project.now += 3600 * 1000
    for number in range(3):
        (project.top / f"file{number}").unlink()
    assert await shadow.capture(SESSION) is not None
    assert refs(project, shadow) & kept < kept, "the oldest have gone"


async def test_a_removal_frees_what_no_snapshot_needs_if_the_quota_is_reached(project: SnapshotProject) -> None:
    quota = 600 * KIB
    config = Config(snapshot=SnapshotConfig(quota_bytes=quota))
    shadow = await project.shadow(config)
    project.write("large", random.Random(1).randbytes(450_000))
    assert await shadow.capture(SESSION) is not None
    await shadow.forget(SESSION)
    (project.top / "large").unlink()
    shadow.limits = shadow.limits.but(quota_bytes=300 * KIB)
    project.now += 3600 * 1000
    removed = await shadow.collect()
    assert removed.bytes_after < 300 * KIB < removed.bytes_before
    project.write("small", random.Random(2).randbytes(50_000))
    tree = await shadow.capture(SESSION)
    assert tree is not None
    assert set(await project.listed(tree)) == {"small"}
    fsck(project, shadow)


async def test_a_deleted_file_makes_room_for_the_next_capture(project: SnapshotProject) -> None:
    config = Config(snapshot=SnapshotConfig(quota_bytes=600 * KIB))
    shadow = await project.shadow(config)
    project.write("large", random.Random(1).randbytes(400_000))
    assert await shadow.capture(SESSION) is not None
    (project.top / "large").unlink()
    project.write("other", random.Random(2).randbytes(400_000))
    project.now += 3600 * 1000
    tree = await shadow.capture(SESSION)
    assert tree is not None
    assert set(await project.listed(tree)) == {"other"}


async def test_a_removed_index_is_made_anew_from_the_project_s_own(project: SnapshotProject) -> None:
    project.write("borrowed", random.Random(1).randbytes(5_000))
    project.commit()
    first = await project.capture()
    shadow = await project.shadow()
    (shadow.place.git_dir / "index").unlink()
    assert await project.capture() == first
    assert not [file for file in shadow.place.stored.rglob("*") if file.is_file() and file.stat().st_size > 1_000]


async def test_without_room_there_is_no_snapshot_and_one_warning(
    project: SnapshotProject, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(snapshot=SnapshotConfig(quota_bytes=200 * KIB))
    before = await project.capture(config)
    project.write("data", os.urandom(300_000))
    shadow = await project.shadow(config)
    assert await shadow.capture(SESSION) is None
    assert refs(project, shadow) == {f"{SESSION}/{before}"}  # What cannot fit is no reason to remove others.
    [warning] = caplog.records
    assert "its snapshots would take more than 204,800 bytes; run `turnkeeper snapshot gc`" in warning.getMessage()


async def test_a_tracked_file_that_is_large_against_the_quota_stays_as_it_was(project: SnapshotProject) -> None:
    config = Config(snapshot=SnapshotConfig(quota_bytes=800 * KIB, max_file_bytes=10))
    project.write("data", b"x" * 50)
    project.commit()
    first = await project.capture(config)
    project.write("data", b"y" * 101 * KIB)
    assert await project.capture(config) == first
    project.write("data", b"y" * 99 * KIB)
    assert await project.capture(config) != first


async def test_snapshots_of_files_that_are_gone_go_when_they_are_idle(project: SnapshotProject) -> None:
    project.write("a")
    await project.capture()
    shadow = await project.shadow()
    shutil.rmtree(project.top)
    await shadow.collect()
    assert len(refs(project, shadow)) == 1
    project.now += 8 * DAY
    await shadow.collect()
    assert snapshot_upkeep.places(paths.data(project.environ)) == []


async def test_objects_that_a_power_cut_left_empty_are_captured_again(project: SnapshotProject) -> None:
    project.write("a", "one")
    project.write("b", "two")
    tree = await project.capture()
    shadow = await project.shadow()
    blob = (await shadow.entries(tree, ["a"]))["a"].blob
    file = shadow.place.stored / blob[:2] / blob[2:]
    file.chmod(0o600)
    file.write_bytes(b"")
    await shadow.forget(SESSION)
    await shadow.collect()
    assert await project.listed(await project.capture()) == {"a": b"one", "b": b"two"}


async def test_usage_counts_what_is_kept(project: SnapshotProject) -> None:
    project.write("a", "1")
    await project.capture()
    project.write("a", "2")
    await project.capture()
    shadow = await project.shadow()
    await shadow.capture(OTHER)
    [place] = snapshot_upkeep.places(paths.data(project.environ))
    found = snapshot_upkeep.usage(place)
    assert (found.directory, found.sessions, found.snapshots) == (str(project.top), 2, 3)
    assert found.project_id == (await project.place()).id
    assert 0 < found.bytes < 2**20


@pytest.mark.soak
async def test_a_tree_of_ten_thousand_files_and_a_huge_one_stays_within_the_quota(project: SnapshotProject) -> None:
    for number in range(10_000):
        project.write(f"d{number // 100}/f{number}", f"{number}\n" * 50)
    project.commit()
    with (project.top / "huge").open("wb") as file:
        file.truncate(2**30)
    shadow = await project.shadow()
    for number in range(5):
        project.write(f"d{number}/f", os.urandom(1000))
        tree = await project.capture()
        assert "huge" not in await shadow.files(tree)
        assert len(await shadow.files(tree)) == 10_000 + number + 1
    assert snapshot_upkeep.disk_bytes(shadow.place.git_dir.parent) < 20 * 2**20
