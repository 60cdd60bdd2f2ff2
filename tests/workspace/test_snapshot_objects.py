"""Snapshot objects: a snapshot with its files, and the difference of two, as values."""

from hashlib import sha256
from pathlib import Path

from snapshot_project import SESSION, SnapshotProject

from turnkeeper.model.session import FileDiff, Summary
from turnkeeper.model.value import encode
from turnkeeper.workspace import snapshot_objects
from turnkeeper.workspace.snapshot_objects import Snapshot, SnapshotFile, SnapshotTime


async def test_a_snapshot_is_a_value_whose_files_are_read_when_wanted(tmp_path: Path) -> None:
    project = SnapshotProject(tmp_path)
    project.write("a.txt", "one\n")
    project.write("b.bin", b"\xff\0")
    project.write(b"\xff", "no name for JSON")
    shadow = await project.shadow()
    made = await snapshot_objects.create(shadow, session_id=SESSION, message_id="msg_1", now=5)
    assert made == Snapshot(
        id=await project.capture(), session_id=SESSION, message_id="msg_1", time=SnapshotTime(created=5)
    )
    files = await snapshot_objects.files(shadow, made)
    assert files == (
        SnapshotFile(path="a.txt", content="one\n", hash=sha256(b"one\n").hexdigest()),
        SnapshotFile(path="b.bin", content=None, hash=sha256(b"\xff\0").hexdigest()),
    )
    assert encode(files)


async def test_the_difference_of_two_snapshots_adds_up(tmp_path: Path) -> None:
    project = SnapshotProject(tmp_path)
    project.write("a", "1\n2\n")
    shadow = await project.shadow()
    before = await snapshot_objects.create(shadow, session_id=SESSION, message_id="msg_1", now=5)
    project.write("a", "1\n3\n4\n")
    project.write("b", "1\n")
    after = await snapshot_objects.create(shadow, session_id=SESSION, message_id="msg_2", now=6)
    assert before is not None
    assert after is not None
    found = await snapshot_objects.diff(shadow, before, after)
    assert (found.additions, found.deletions, found.files) == (3, 1, 2)
    assert found == Summary(additions=3, deletions=1, files=2, diffs=await shadow.diff(before.id, after.id))
    assert all(isinstance(one, FileDiff) and one.patch for one in found.diffs or ())
