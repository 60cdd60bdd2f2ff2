"""Files: what is inside, what is text, and that a write is whole or absent."""

import contextlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest
from confined import without_powers

from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files, path_steps
from turnkeeper.workspace.files import CheckedPath


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("project/a", True),
        ("project", True),
        ("project/missing/deep", True),
        ("project-two/a", False),
        ("other/a", False),
        ("project/out/a", False),
        ("project/in/a", True),
        ("way/a", True),
        ("project/loop/a", True),
    ],
)
def test_a_path_is_inside_by_where_its_links_lead(tmp_path: Path, path: str, expected: bool) -> None:
    for name in ("project/sub", "other", "project-two"):
        (tmp_path / name).mkdir(parents=True)
    os.symlink(tmp_path / "other", tmp_path / "project/out")
    os.symlink("sub", tmp_path / "project/in")
    os.symlink("project", tmp_path / "way")
    os.symlink("loop", tmp_path / "project/loop")
    assert files.is_inside(tmp_path / path, tmp_path / "project", tmp_path / "project") is expected


def test_a_worktree_widens_the_inside_unless_it_is_the_root(tmp_path: Path) -> None:
    assert files.is_inside(tmp_path / "b", tmp_path / "a", tmp_path)
    assert not files.is_inside(tmp_path / "b", tmp_path / "a", Path("/"))


def test_text_goes_back_as_it_came(tmp_path: Path) -> None:
    file = tmp_path / "a"
    for content in (b"", b"a\r\nb\n", b"\xef\xbb\xbfmark", b"caf\xe9 \xff"):
        file.write_bytes(content)
        read = files.read_text(file)
        assert read.encode(read.text) == content


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert files.read_bytes(tmp_path / "a", 5) == b"12345"
    with pytest.raises(Invalid, match="larger than 4 bytes"):
        files.read_bytes(tmp_path / "a", 4)


def test_devices_pipes_and_directories_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(Invalid):
            files.read_bytes(path, 10)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4711])
def test_a_write_keeps_the_mode(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "a"
    file.touch()
    file.chmod(mode)
    files.write_whole(file, b"x")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"x", mode)


def test_a_new_file_has_the_mode_that_the_user_gives_new_files(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    files.write_whole(tmp_path / "a", b"x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_reader_sees_the_old_content_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    with open(file, "rb") as reading:
        files.write_whole(file, b"brand new")
        assert reading.read() == b"old"
    assert file.read_bytes() == b"brand new"


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(Invalid, match="directory"):
        files.write_whole(tmp_path / "a", b"x")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(("mode", "name"), [(0o555, "new"), (0o644, "new"), (0o555, "below/new")])
def test_a_write_that_is_refused_names_the_whole_path(tmp_path: Path, mode: int, name: str) -> None:
    refused: list[str] = []

    def work() -> None:
        without_powers()
        try:
            files.write_whole(tmp_path / "closed" / name, b"x")
        except PermissionError as error:
            refused.append(str(error.filename))

    (tmp_path / "closed").mkdir(mode)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    (tmp_path / "closed").chmod(0o755)
    assert (refused, os.listdir(tmp_path / "closed")) == ([str(tmp_path / "closed" / name)], [])


async def test_who_holds_a_file_keeps_others_out_by_whatever_name(tmp_path: Path) -> None:
    os.symlink("a", tmp_path / "b")
    order: list[str] = []
    inside = anyio.Event()

    async def second() -> None:
        await inside.wait()
        async with files.holding(tmp_path / "b"):
            order.append("second")

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        async with files.holding(tmp_path / "a"):
            inside.set()
            for _ in range(10):
                await anyio.sleep(0)
            order.append("first")
    assert order == ["first", "second"]


async def test_files_are_held_apart(tmp_path: Path) -> None:
    async with files.holding(tmp_path / "a"), files.holding(tmp_path / "b"):
        pass


async def test_one_file_is_held_once_by_two_of_its_names(tmp_path: Path) -> None:
    os.symlink("a", tmp_path / "b")
    with anyio.fail_after(10):
        async with files.holding(tmp_path / "b", tmp_path / "a", tmp_path / "c", tmp_path / "a"):
            pass


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with files.replacing(link) as file:
        file.write(b"new")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")


def test_a_device_is_written_through_and_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "null"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    with files.replacing(device) as file:
        file.write(b"gone")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert os.listdir(tmp_path) == ["null"]


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with files.replacing(pipe) as file:
        file.write(b"heard")
    assert (os.read(reader, 100), stat.S_ISFIFO(pipe.stat().st_mode)) == (b"heard", True)
    os.close(reader)


def test_a_directory_cannot_be_replaced_by_a_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="directory"), files.replacing(tmp_path):
        pass


def test_a_checked_path_opens_the_file_that_was_checked_or_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ours")
    (tmp_path / "secret").write_bytes(b"theirs")
    path = CheckedPath.of(tmp_path / "a")
    assert files.read_bytes(path, 10) == b"ours"
    (tmp_path / "a").unlink()
    os.symlink(tmp_path / "secret", tmp_path / "a")
    for use in (lambda: files.read_bytes(path, 10), lambda: files.write_whole(path, b"x")):
        with pytest.raises(Invalid, match="replaced by a link"):
            use()
    assert (tmp_path / "secret").read_bytes() == b"theirs"


def test_a_checked_path_keeps_a_link_that_was_there_when_it_was_checked(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "link")
    path = CheckedPath.of(tmp_path / "link/new/file")
    files.write_whole(path, b"x")
    assert (tmp_path / "real/new/file").read_bytes() == b"x"
    assert files.entries(CheckedPath.of(tmp_path / "link")) == ["new/"]


def test_a_directory_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    for name in ("d", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(name.encode())
    path, listed = CheckedPath.of(tmp_path / "d/f"), CheckedPath.of(tmp_path / "d")
    (tmp_path / "d").rename(tmp_path / "before")
    os.symlink("elsewhere", tmp_path / "d")
    for use in (
        lambda: files.read_bytes(path, 10),
        lambda: files.write_whole(path, b"x"),
        lambda: files.entries(listed),
        lambda: files.require_unmoved(path),
    ):
        with pytest.raises(Invalid, match="replaced by a link"):
            use()
    assert (tmp_path / "elsewhere/f").read_bytes() == b"elsewhere"


def test_no_race_between_check_and_use_is_won(tmp_path: Path) -> None:
    """A program swaps a directory for a link, again and again, while its file is checked, read and written."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    for place, content in ((project / "d", b"ours"), (outside, b"theirs")):
        place.mkdir(parents=True)
        (place / "f").write_bytes(content)
    script = (
        "import os, sys\n"
        "while True:\n"
        "    os.rename('d', 'aside'); os.symlink(sys.argv[1], 'd')\n"
        "    os.unlink('d'); os.rename('aside', 'd')\n"
    )
    swapping = subprocess.Popen([sys.executable, "-c", script, str(outside)], cwd=project)
    try:
        for _ in range(400):
            try:
                path = CheckedPath.of(project / "d/f")
            except FileNotFoundError:
                continue
            if files.is_inside(path, project, project):
                with contextlib.suppress(Invalid, OSError):
                    assert files.read_bytes(path, 10) == b"ours"
                with contextlib.suppress(Invalid, OSError):
                    files.write_whole(path, b"ours")
    finally:
        swapping.kill()
        swapping.wait()
    assert sorted(os.listdir(outside)) == ["f"]
    assert (outside / "f").read_bytes() == b"theirs"


def test_processes_with_one_number_write_under_different_names(tmp_path: Path) -> None:
    """Every container has a process 1, and they may share a directory; so may one that was killed and its successor."""
    script = (
        "import os, pathlib, sys\n"
        "from turnkeeper.workspace import files\n"
        "with files.replacing(pathlib.Path(sys.argv[1])):\n"
        "    [name] = os.listdir()\n"
        "print(name.replace(str(os.getpid()), 'NUMBER'))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "file")]

    def name() -> str:
        said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60).stdout
        (tmp_path / "file").unlink()
        return said

    assert name() != name()


def test_names_are_spelt_as_they_are_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "Docs").mkdir()
    (tmp_path / "Docs/.env").touch()
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    (tmp_path / "Docs" / decomposed).touch()
    assert path_steps.spelled("docs/.ENV", str(tmp_path)) == "Docs/.env"
    assert path_steps.spelled(f"Docs/{composed}", str(tmp_path)) == f"Docs/{decomposed}"
    assert path_steps.spelled("docs/new/File", str(tmp_path)) == "Docs/new/File"


def test_a_file_system_that_tells_letters_apart_is_known(tmp_path: Path) -> None:
    place = tmp_path / "Letters"
    place.mkdir()
    assert path_steps.folds_case(str(place)) is (tmp_path / "lETTERS").exists()


def test_every_step_through_links_is_seen(tmp_path: Path) -> None:
    os.symlink("b", tmp_path / "a")
    os.symlink("/proc/self/cwd", tmp_path / "b")
    assert "/proc/self/" in list(path_steps.steps(str(tmp_path / "a/x")))
    os.symlink("loop", tmp_path / "loop")
    assert len(list(path_steps.steps(str(tmp_path / "loop")))) <= path_steps.LINKS_MAX
