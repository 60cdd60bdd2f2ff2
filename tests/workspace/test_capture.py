"""Capture: which files a snapshot holds, byte for byte, whatever the project does to git."""

import os
import socket
import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snapshot_project import SESSION, SnapshotProject

from turnkeeper.core.limits import SNAPSHOT_S
from turnkeeper.model.config import Config, SnapshotConfig
from turnkeeper.workspace.capture import stage
from turnkeeper.workspace.git_work import in_thread
from turnkeeper.workspace.shadow import ShadowGit
from turnkeeper.workspace.snapshots import Snapshots

SMALL = Config(snapshot=SnapshotConfig(max_file_bytes=100))


@pytest.fixture
def project(tmp_path: Path) -> SnapshotProject:
    return SnapshotProject(tmp_path)


@pytest.fixture
def plain(tmp_path: Path) -> SnapshotProject:
    return SnapshotProject(tmp_path, has_git=False)


async def names(project: SnapshotProject, config: Config | None = None) -> set[str]:
    return set(await project.listed(await project.capture(config)))


async def test_every_rule_for_ignored_files_of_the_project_and_its_user_holds(project: SnapshotProject) -> None:
    project.write(".gitignore", "a\n/sub/*.log\n")
    project.write("sub/.gitignore", "!keep.log\nb\n")
    (project.top / ".git/info").mkdir(exist_ok=True)
    (project.top / ".git/info/exclude").write_text("c\n")
    (project.home / "ignored").write_text("d\n!c2\n")
    project.git("config", "--global", "core.excludesFile", "~/ignored")
    for name in ("a", "sub/x.log", "sub/keep.log", "sub/b", "b", "c", "sub/c", "d", "e"):
        project.write(name)
    assert await names(project) == {".gitignore", "sub/.gitignore", "sub/keep.log", "b", "e"}


async def test_the_default_file_of_ignored_names_holds(project: SnapshotProject) -> None:
    (project.home / ".config/git").mkdir(parents=True)
    (project.home / ".config/git/ignore").write_text("*.tmp\n")
    project.write("a.tmp")
    project.write("a")
    assert await names(project) == {"a"}


async def test_a_captured_file_that_is_ignored_later_leaves_the_snapshot(project: SnapshotProject) -> None:
    project.write("a")
    project.write("b")
    project.write("c")
    assert await names(project) == {"a", "b", "c"}
    project.write(".gitignore", "a\n")
    assert await names(project) == {".gitignore", "b", "c"}
    (project.top / ".git/info").mkdir(exist_ok=True)
    (project.top / ".git/info/exclude").write_text("b\n")
    assert await names(project) == {".gitignore", "c"}
    (project.top / ".gitignore").unlink()
    assert await names(project) == {"a", "c"}


async def test_an_ignored_file_that_the_project_tracks_is_captured(project: SnapshotProject) -> None:
    project.write(".gitignore", "kept\n")
    project.write("kept", "1")
    project.git("add", "-f", "kept")
    project.commit()
    assert await names(project) == {".gitignore", "kept"}
    project.write("kept", "2")
    project.write(".gitignore", "kept\nother\n")
    assert (await project.listed(await project.capture()))["kept"] == b"2"


async def test_a_large_file_is_left_out_unless_the_project_tracks_it(project: SnapshotProject) -> None:
    project.write("tracked", "x" * 200)
    project.commit()
    project.write("new", "x" * 101)
    project.write("small", "x" * 100)
    assert await names(project, SMALL) == {"tracked", "small"}
    project.write("tracked", "y" * 300)
    assert (await project.listed(await project.capture(SMALL)))["tracked"] == b"y" * 300


async def test_a_captured_file_that_becomes_too_large_stays_as_it_was(project: SnapshotProject) -> None:
    project.write("log", "short")
    first = await project.capture(SMALL)
    project.write("log", "x" * 101)
    assert await project.capture(SMALL) == first
    project.write("log", "x" * 99)
    assert (await project.listed(await project.capture(SMALL)))["log"] == b"x" * 99


async def test_a_directory_without_a_repository_is_captured_by_the_same_means(plain: SnapshotProject) -> None:
    plain.write(".gitignore", "*.o\n")
    plain.write("a.c", "int\n")
    plain.write("a.o")
    first = await plain.capture()
    assert await plain.listed(first) == {".gitignore": b"*.o\n", "a.c": b"int\n"}
    plain.write("a.c", "long\n")
    assert await (await plain.shadow()).changed(first, await plain.capture()) == ("a.c",)
    assert sorted(entry.name for entry in plain.top.iterdir()) == [".gitignore", "a.c", "a.o"]


async def test_a_nested_repository_is_left_out_and_hinders_nothing(project: SnapshotProject) -> None:
    project.write("a")
    for name in ("empty", "full"):
        project.git("init", "-q", str(project.top / name))
        project.write(f"{name}/inner")
    project.git("add", "-A", at=project.top / "full")
    project.git("commit", "-qm", "inner", at=project.top / "full")
    project.write("not/.git/HEAD", "no repository")
    project.write("not/file")
    assert await names(project) == {"a", "not/file"}


async def test_the_commit_of_a_submodule_is_left_out(project: SnapshotProject) -> None:
    other = project.home / "other"
    project.git("init", "-q", str(other))
    (other / "inner").write_text("x")
    project.git("add", "-A", at=other)
    project.git("commit", "-qm", "inner", at=other)
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    project.commit()
    first = await project.capture()
    assert {line.partition("\t")[2] for line in project.entries(await project.shadow(), first)} == {".gitmodules"}
    (project.top / "sub/inner").write_text("y")
    project.git("commit", "-qam", "more", at=project.top / "sub")
    assert await project.capture() == first


async def test_no_attribute_changes_a_byte_and_no_filter_runs(project: SnapshotProject) -> None:
    trace = project.home / "ran"
    project.git("config", "--global", "filter.lfs.clean", f"touch {trace}; tr a-z A-Z")
    project.git("config", "--global", "filter.lfs.required", "true")
    project.write(
        ".gitattributes", "*.bin filter=lfs\n*.id ident\n*.txt text eol=crlf\n*.u16 working-tree-encoding=UTF-16\n"
    )
    contents = {
        "a.bin": b"abc\n",
        "a.id": b"$Id: 1234 $\n",
        "a.txt": b"one\r\ntwo\n",
        "a.u16": "häh\n".encode("utf-16"),
        "other": b"a\r\nb\n",
    }
    for name, content in contents.items():
        project.write(name, content)
    found = await project.listed(await project.capture())
    assert {name: found[name] for name in contents} == contents
    assert not trace.exists()


async def test_unusual_names_are_captured(project: SnapshotProject) -> None:
    unusual = [
        *("a\nb", "tab\tx", ":colon", ":(top)x", "-dash", "--", "sp ace", " lead", "trail ", '"quoted"', "back\\slash"),
        *("*", "[x]", "?", "#x", "!x", "ü", "e\u0301", "x~1", "git~1", "con", "a/:b", "...", ".gitx", "$HOME", "%s"),
    ]
    for name in unusual:
        project.write(name, name)
    found = await project.listed(await project.capture())
    assert found == {name: name.encode() for name in unusual}
    for name in unusual:
        project.write(name, name * 2)
    assert await project.listed(await project.capture()) == {name: (name * 2).encode() for name in unusual}


async def test_a_name_that_is_not_utf_8_is_captured_and_not_told_as_changed(project: SnapshotProject) -> None:
    before = await project.capture()
    project.write(b"\xff\xfe", "x")
    project.write("a", "x")
    after = await project.capture()
    assert await project.listed(after) == {"a": b"x", os.fsdecode(b"\xff\xfe"): b"x"}
    shadow = await project.shadow()
    assert await shadow.changed(before, after) == ("a",)
    assert [one.file for one in await shadow.diff(before, after)] == ["a"]


async def test_a_change_of_case_is_a_change_of_names(project: SnapshotProject) -> None:
    project.write("Read", "x")
    project.commit()
    before = await project.capture()
    (project.top / "Read").rename(project.top / "READ")
    assert await (await project.shadow()).changed(before, await project.capture()) == ("READ", "Read")


async def test_links_are_captured_and_never_followed(project: SnapshotProject) -> None:
    outside = project.home / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (project.top / "dir").symlink_to(outside)
    (project.top / "file").symlink_to(outside / "secret")
    (project.top / "loop").symlink_to("loop")
    tree = await project.capture()
    assert await project.listed(tree) == {
        "dir": os.fsencode(outside),
        "file": os.fsencode(outside / "secret"),
        "loop": b"loop",
    }


async def test_a_directory_replaced_by_a_link_and_back(project: SnapshotProject) -> None:
    files = [f"{n}" for n in range(200)] + ["x"]
    for name in files:
        project.write(f"d/{name}", "1")
    project.commit()
    first = await project.capture()
    (project.top / "d").rename(project.top / "e")
    (project.top / "d").symlink_to("e")
    second = await project.listed(await project.capture())
    assert second == {"d": b"e"} | {f"e/{name}": b"1" for name in files}
    project.write("e/x", "2")
    assert (await project.listed(await project.capture()))["e/x"] == b"2"
    (project.top / "d").unlink()
    (project.top / "e").rename(project.top / "d")
    project.write("d/x", "1")
    assert await project.capture() == first


async def test_a_file_replaced_by_a_directory_and_back(project: SnapshotProject) -> None:
    project.write("a", "1")
    project.write("b/c", "1")
    first = await project.capture()
    (project.top / "a").unlink()
    (project.top / "b/c").unlink()
    (project.top / "b").rmdir()
    project.write("a/x", "1")
    project.write("b", "1")
    assert set(await project.listed(await project.capture())) == {"a/x", "b"}
    (project.top / "a/x").unlink()
    (project.top / "a").rmdir()
    (project.top / "b").unlink()
    project.write("a", "1")
    project.write("b/c", "1")
    assert await project.capture() == first


async def test_pipes_and_sockets_are_left_out(project: SnapshotProject) -> None:
    project.write("a", "1")
    project.write("b", "1")
    await project.capture()
    os.mkfifo(project.top / "pipe")
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryDirectory(dir="/tmp") as short:
        (Path(short) / "top").symlink_to(project.top)  # The path of a socket must be short.
        server.bind(f"{short}/top/socket")
    (project.top / "a").unlink()
    os.mkfifo(project.top / "a")
    assert await names(project) == {"b"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
async def test_an_unreadable_file_stays_as_it_was(project: SnapshotProject) -> None:
    project.write("a", "1")
    project.write("b", "1")
    await project.capture()
    project.write("a", "22").chmod(0)
    project.write("b", "22")
    project.write("c", "1").chmod(0)
    assert await project.listed(await project.capture()) == {"a": b"1", "b": b"22"}


async def test_files_that_change_while_they_are_captured_hinder_no_others(project: SnapshotProject) -> None:
    for name in ("gone", "a", "b"):
        project.write(name, "1")
    await project.capture()
    (project.top / "gone").unlink()
    os.mkfifo(project.top / "pipe")
    project.write("a", "22")
    shadow = await project.shadow()

    def staged(git: ShadowGit) -> None:
        with git.locked():
            stage(git, [b"gone", b"a", b"pipe", b".git/config", b"never"])

    await in_thread(60, lambda work: staged(ShadowGit(shadow.place, project.environ, work)))
    assert project.git(f"--git-dir={shadow.place.git_dir}", "ls-files").split() == ["a", "b"]
    assert (await project.listed(await project.capture()))["a"] == b"22"


async def test_a_linked_worktree_has_its_own_snapshots(project: SnapshotProject) -> None:
    project.write("a", "1")
    project.commit()
    main = await project.shadow()
    linked = project.home / "linked"
    project.git("worktree", "add", "-q", str(linked))
    project.top = linked
    project.write("b", "1")
    assert await project.listed(await project.capture()) == {"a": b"1", "b": b"1"}
    assert (await project.shadow()).place.git_dir.parent == main.place.git_dir.parent
    assert (await project.shadow()).place.git_dir != main.place.git_dir


async def test_a_capture_below_the_top_holds_the_whole_worktree(project: SnapshotProject) -> None:
    project.write("a", "1")
    project.write("sub/b", "1")
    top, project.top = project.top, project.top / "sub"
    assert (await project.shadow()).root == top
    assert await names(project) == {"a", "sub/b"}


async def test_own_data_inside_a_project_is_left_out(project: SnapshotProject) -> None:
    project.environ["TURNKEEPER_DATA"] = str(project.top / "my data [1]")
    project.write(".gitignore", "!/my*\n")
    project.write("my data [1]/turnkeeper.db")
    project.write("a")
    await project.capture()
    assert await names(project) == {".gitignore", "a"}


async def test_a_store_that_the_project_tracks_is_left_out_also_after_the_index_was_lost(
    project: SnapshotProject,
) -> None:
    project.snapshots = Snapshots(project.environ, lambda: project.now, store=(project.top / "u.db",))
    project.write("u.db")
    project.write("u.db.notes")
    project.commit()
    shadow = await project.shadow()
    assert {one.partition("\t")[2] for one in project.entries(shadow, await project.capture())} == {"u.db.notes"}
    (shadow.place.git_dir / "index").unlink()
    project.write("u.db", "more\n")
    assert {one.partition("\t")[2] for one in project.entries(shadow, await project.capture())} == {"u.db.notes"}


async def test_files_that_are_all_gone_with_their_directory_are_not_captured_as_deleted(
    project: SnapshotProject,
) -> None:
    project.write("a")
    shadow = await project.shadow()
    assert await shadow.capture(SESSION) is not None
    project.top.rename(project.home / "elsewhere")
    assert await shadow.capture(SESSION) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root can enter every directory")
async def test_directories_that_cannot_be_entered_hinder_no_capture(project: SnapshotProject) -> None:
    closed = [project.write(f"{'long' * 50}{number}/a").parent for number in range(500)]
    project.write("b", "1")
    for place in closed:
        place.chmod(0)
    found = await names(project)
    for place in closed:
        place.chmod(0o700)
    assert found == {"b"}


NAME = st.sampled_from(["a", "b", "c d", "é", "x.py", "-x", "UP"])
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)
STEP = st.tuples(st.sampled_from(["write", "write", "remove", "link", "run"]), PATH, st.binary(max_size=20))


def _do(top: Path, step: tuple[str, str, bytes]) -> None:
    """One change of a random tree. What is in its way, a file or a directory, makes it do nothing."""
    action, name, content = step
    path = top / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if action == "remove":
            path.unlink()
        elif action == "link":
            path.symlink_to(content.hex() or "x")
        else:
            path.write_bytes(content)
            path.chmod(0o755 if action == "run" else 0o644)
    except (FileExistsError, NotADirectoryError, IsADirectoryError, FileNotFoundError, OSError):
        pass


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, max_size=8), st.lists(st.lists(STEP, max_size=6), min_size=1, max_size=3))
async def test_captures_of_random_trees_are_what_git_would_stage(
    tmp_path_factory: pytest.TempPathFactory,
    committed: list[tuple[str, str, bytes]],
    rounds: list[list[tuple[str, str, bytes]]],
) -> None:
    project = SnapshotProject(tmp_path_factory.mktemp("random"))
    for step in committed:
        _do(project.top, step)
    project.commit()
    shadow = await project.shadow()
    for steps in rounds:
        for step in steps:
            _do(project.top, step)
        tree = await shadow.capture(SESSION)
        assert tree is not None
        assert project.entries(shadow, tree) == project.expected()


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
async def test_a_folder_with_a_pipe_that_git_would_wait_for_is_left_out(project: SnapshotProject, name: str) -> None:
    project.write("a")
    project.write("sub/b")
    os.mkfifo(project.top / "sub" / name)
    with anyio.fail_after(SNAPSHOT_S / 2):
        assert "a" in await names(project)


async def test_a_pipe_at_the_top_is_named_at_once(project: SnapshotProject, caplog: pytest.LogCaptureFixture) -> None:
    project.write("a")
    os.mkfifo(project.top / ".gitignore")
    with anyio.fail_after(SNAPSHOT_S / 2):
        assert await (await project.shadow()).capture(SESSION) is None
    assert "git waits for the named pipe '.gitignore'" in caplog.text
