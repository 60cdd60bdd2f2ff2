"""Snapshots: what a capture holds, what differs between two, and what is read from them."""

import os
import stat
from pathlib import Path

import pytest
from snapshot_project import OTHER, SESSION, SnapshotProject

from turnkeeper.model.config import Config
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import FileDiff
from turnkeeper.workspace.snapshots import TreeEntry


@pytest.fixture
def project(tmp_path: Path) -> SnapshotProject:
    return SnapshotProject(tmp_path)


async def test_a_capture_holds_committed_changed_and_new_files(project: SnapshotProject) -> None:
    project.write("a.txt", "one\n")
    project.write("b/c.txt", "two\n")
    project.commit()
    project.write("a.txt", "changed\n")
    project.write("new/d.txt", "three\n")
    tree = await project.capture()
    assert await project.listed(tree) == {"a.txt": b"changed\n", "b/c.txt": b"two\n", "new/d.txt": b"three\n"}


async def test_a_capture_is_what_git_itself_would_stage(project: SnapshotProject) -> None:
    project.write("a.txt", "one\n")
    project.write("run.sh", "echo\n").chmod(0o755)
    (project.top / "link").symlink_to("a.txt")
    project.commit()
    project.write("other", "x")
    project.write("a.txt", "two\n")
    (project.top / "run.sh").chmod(0o644)
    shadow = await project.shadow()
    assert project.entries(shadow, await project.capture()) == project.expected()


async def test_the_own_repository_of_a_project_is_not_touched(project: SnapshotProject) -> None:
    project.write("a.txt", "one\n")
    project.write("b.txt", "two\n")
    project.commit()
    project.write("a.txt", "staged\n")
    project.git("add", "a.txt")
    project.write("a.txt", "changed\n")
    await project.place()  # It stores the project's id in the repository.
    before = project.own_repository()
    first = await project.capture()
    project.write("c.txt", "three\n")
    # What is staged already is in the project's objects; storing it again must not even touch them.
    project.write("a.txt", "staged\n")
    second = await project.capture()
    shadow = await project.shadow()
    await shadow.diff(first, second)
    await shadow.store([b"one\n"])
    await shadow.forget(SESSION)
    (project.top / "c.txt").unlink()
    project.write("a.txt", "changed\n")
    assert project.own_repository() == before


async def test_two_captures_of_the_same_files_are_one_tree(project: SnapshotProject) -> None:
    project.write("a.txt")
    first = await project.capture()
    os.utime(project.top / "a.txt", (1, 1))
    assert await project.capture() == first


async def test_the_names_that_changed_are_sorted_and_relative_to_the_top(project: SnapshotProject) -> None:
    project.write("z/gone", "1")
    project.write("same", "1")
    project.write("b c", "1")
    before = await project.capture()
    (project.top / "z/gone").unlink()
    project.write("b c", "2")
    project.write("a\nb", "1")
    after = await project.capture()
    shadow = await project.shadow()
    assert await shadow.changed(before, after) == ("a\nb", "b c", "z/gone")
    assert await shadow.changed(after, after) == ()


async def test_a_diff_shows_whole_files_in_the_style_of_clients(project: SnapshotProject) -> None:
    project.write("a.txt", "".join(f"{n}\n" for n in range(12)))
    before = await project.capture()
    project.write("a.txt", "".join(f"{n}\n" for n in range(12) if n != 1) + "end")
    project.write("b.bin", b"\0\1")
    after = await project.capture()
    [text, binary] = await (await project.shadow()).diff(before, after)
    assert binary == FileDiff(file="b.bin", patch="", additions=0, deletions=0, status="added")
    head = f"Index: a.txt\n{'=' * 67}\n--- a.txt\t\n+++ a.txt\t\n"
    rest = "".join(f" {n}\n" for n in range(2, 12))
    patch = f"{head}@@ -1,12 +1,12 @@\n 0\n-1\n{rest}+end\n\\ No newline at end of file\n"
    assert text == FileDiff(file="a.txt", patch=patch, additions=1, deletions=1, status="modified")


async def test_a_diff_of_some_names_has_no_others(project: SnapshotProject) -> None:
    before = await project.capture()
    project.write("a", "1\n")
    project.write("b", "1\n")
    project.write(":c", "1\n")
    after = await project.capture()
    shadow = await project.shadow()
    assert [one.file for one in await shadow.diff(before, after, [":c", "b", "missing"])] == [":c", "b"]
    assert await shadow.diff(before, after, []) == ()


async def test_a_file_that_became_a_link_is_one_difference(project: SnapshotProject) -> None:
    project.write("a", "1\n")
    project.write("b", "1\n")
    before = await project.capture()
    (project.top / "a").unlink()
    (project.top / "a").symlink_to("b")
    project.write("b", "2\n")
    after = await project.capture()
    link, file = await (await project.shadow()).diff(before, after)
    assert (link.file, link.status, link.additions, link.deletions) == ("a", "modified", 1, 1)
    assert link.patch is not None
    assert link.patch.count("@@ ") == 2
    assert (file.file, file.additions) == ("b", 1)


async def test_entries_tell_mode_and_blob_and_leave_out_what_is_missing(project: SnapshotProject) -> None:
    project.write("a", "text")
    project.write("run", "text").chmod(0o755)
    (project.top / "link").symlink_to("a")
    project.write("d/e", "text")
    shadow = await project.shadow()
    tree = await project.capture()
    blob, target = await shadow.store([b"text", b"a"])
    assert await shadow.entries(tree, ["a", "run", "link", "d/e", "d", "missing"]) == {
        "a": TreeEntry(mode="100644", blob=blob),
        "run": TreeEntry(mode="100755", blob=blob),
        "link": TreeEntry(mode="120000", blob=target),
        "d/e": TreeEntry(mode="100644", blob=blob),
    }


async def test_stored_contents_are_read_byte_for_byte(project: SnapshotProject) -> None:
    await project.capture()
    shadow = await project.shadow()
    contents = [b"", b"a\r\nb", b"\0\xff\n\n", b"x" * 100_000]
    blobs = await shadow.store(contents)
    assert await shadow.read(blobs) == dict(zip(blobs, contents, strict=True))


async def test_what_is_no_longer_kept_is_refused_by_name(project: SnapshotProject) -> None:
    tree = await project.capture()
    shadow = await project.shadow()
    missing = "1" * 40
    with pytest.raises(NotFound, match=missing):
        await shadow.read([missing])
    with pytest.raises(NotFound, match=missing):
        await shadow.changed(tree, missing)
    with pytest.raises(NotFound, match="--upload-pack"):
        await shadow.entries("--upload-pack", ["a"])


async def test_a_merge_takes_both_changes_or_none(project: SnapshotProject) -> None:
    await project.capture()
    shadow = await project.shadow()
    base, ours, theirs, other, binary = await shadow.store(
        [b"1\r\n2\r\n3\r\n4\r\n", b"A\r\n2\r\n3\r\n4\r\n", b"1\r\n2\r\n3\r\nB\r\n", b"C\r\n2\r\n3\r\n4\r\n", b"\0"]
    )
    merged = await shadow.merge(base, ours, theirs)
    assert merged is not None
    assert await shadow.read([merged]) == {merged: b"A\r\n2\r\n3\r\nB\r\n"}
    assert await shadow.merge(base, ours, other) is None
    assert await shadow.merge(base, ours, binary) is None


async def test_each_session_keeps_its_own_trees(project: SnapshotProject) -> None:
    project.write("a")
    shadow = await project.shadow()
    tree = await shadow.capture(SESSION)
    assert await shadow.capture(OTHER) == tree
    await shadow.forget(SESSION)
    refs = project.git(f"--git-dir={shadow.place.git_dir}", "for-each-ref", "--format=%(objecttype) %(refname)")
    assert refs == f"tree refs/turnkeeper/{OTHER}/{tree}\n"


async def test_snapshots_can_be_switched_off(project: SnapshotProject) -> None:
    assert await project.snapshots.of(await project.place(), Config(snapshot=False)) is None


async def test_nobody_else_can_read_snapshots(project: SnapshotProject) -> None:
    project.write("a")
    await project.capture()
    place = (await project.shadow()).place
    assert [stat.S_IMODE(path.stat().st_mode) for path in (place.git_dir, place.git_dir.parent)] == [0o700, 0o700]


async def test_what_was_captured_is_found_after_the_repository_is_made_or_removed(project: SnapshotProject) -> None:
    project.write("a.txt", "committed\n")
    project.commit()
    project.write("a.txt", "edited\n")
    inside = await project.capture()
    (project.top / ".git").rename(project.home / "gone")
    project.write("a.txt", "without\n")
    outside = await project.capture()
    assert (await project.listed(inside), await project.listed(outside)) == (
        {"a.txt": b"edited\n"},
        {"a.txt": b"without\n"},
    )
    project.git("init", "-q")
    project.commit()
    assert await project.listed(inside) == {"a.txt": b"edited\n"}, "also before the new project is captured"
    again = await project.capture()
    assert await (await project.shadow()).changed(inside, again) == ("a.txt",)
    assert await project.listed(inside) == {"a.txt": b"edited\n"}
