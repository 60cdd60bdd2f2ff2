"""Restore: files are put back atomically, only if they are what was planned, and never outside of the project."""

import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha1
from pathlib import Path

import pytest

from turnkeeper.model.refusal import Conflict, Invalid
from turnkeeper.model.restore import OTHER_MODE, FileRestore, FileState, RestoreKind
from turnkeeper.workspace.exchange import exchange
from turnkeeper.workspace.files import CheckedPath
from turnkeeper.workspace.restore import DiskFile, Restorer, read
from turnkeeper.workspace.restored_file import BEHIND_A_LINK, CHANGED, FOLDER, OPEN, READ_ONLY

FILE, PROGRAM, LINK = "100644", "100755", "120000"


def blob(content: bytes) -> str:
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Plan:
    """Restores and their contents."""

    def __init__(self) -> None:
        self.files: list[FileRestore] = []
        self.contents: dict[str, bytes] = {}

    def add(
        self, file: str, now: tuple[str, bytes] | None, to: tuple[str, bytes] | None, kind: RestoreKind = "restore"
    ) -> "Plan":
        states = [FileState(mode=one[0], blob=blob(one[1])) if one is not None else None for one in (now, to)]
        self.files.append(FileRestore(file=file, kind=kind, now=states[0], to=states[1]))
        if to is not None:
            self.contents[blob(to[1])] = to[1]
        return self

    async def read(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        return {name: self.contents[name] for name in blobs if name in self.contents}

    async def apply(
        self,
        root: Path,
        keep: Path | None = None,
        crash: Callable[[str], None] = lambda _: None,
        *,
        exchanges: bool = True,
    ) -> dict[str, str]:
        how = exchange if exchanges else no_exchange
        return await Restorer(root, self.read, keep, crash, exchange=how).restore(self.files)


def no_exchange(_one: str, _other: str, _parent: int) -> bool:
    """A file system on which two names cannot be exchanged."""
    return False


def tree(root: Path) -> dict[str, str]:
    """Every file and link with its content, and folders that are empty."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_text()
        elif not any(path.iterdir()):
            found[f"{name}/"] = ""
    return found


def write(root: Path, **contents: str) -> None:
    for name, content in contents.items():
        (root / name).write_text(content)


async def test_files_are_replaced_created_and_deleted(tmp_path: Path) -> None:
    write(tmp_path, a="old", b="made")
    plan = (
        Plan().add("a", (FILE, b"old"), (FILE, b"new")).add("b", (FILE, b"made"), None).add("x/y/c", None, (FILE, b"c"))
    )
    assert await plan.apply(tmp_path) == {}
    assert tree(tmp_path) == {"a": "new", "x/y/c": "c"}
    assert await plan.apply(tmp_path) == {}, "done twice is done once"
    assert tree(tmp_path) == {"a": "new", "x/y/c": "c"}


async def test_what_is_unchanged_or_in_conflict_is_not_touched(tmp_path: Path) -> None:
    write(tmp_path, a="old", b="old")
    plan = Plan().add("a", (FILE, b"old"), None, "conflict").add("b", (FILE, b"old"), None, "unchanged")
    assert await plan.apply(tmp_path) == {}
    assert tree(tmp_path) == {"a": "old", "b": "old"}


async def test_a_file_that_is_not_what_was_planned_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, edited="others", made="others", kept="others")
    (tmp_path / "mode").write_text("old")
    (tmp_path / "mode").chmod(0o755)
    plan = (
        Plan()
        .add("edited", (FILE, b"old"), (FILE, b"new"))
        .add("made", None, (FILE, b"new"))
        .add("kept", (FILE, b"old"), None)
        .add("gone", (FILE, b"old"), (FILE, b"new"))
        .add("mode", (FILE, b"old"), (FILE, b"new"))
    )
    assert await plan.apply(tmp_path) == dict.fromkeys(["kept", "edited", "gone", "made", "mode"], CHANGED)
    assert tree(tmp_path) == {"edited": "others", "made": "others", "kept": "others", "mode": "old"}


async def test_others_who_write_at_the_last_moment_are_noticed(tmp_path: Path) -> None:
    write(tmp_path, a="old")

    def meanwhile(point: str) -> None:
        if point == "restore.file-written":
            write(tmp_path, a="others", b="others")

    plan = Plan().add("a", (FILE, b"old"), (FILE, b"new")).add("b", None, (FILE, b"new"))
    assert await plan.apply(tmp_path, crash=meanwhile) == {"a": CHANGED, "b": CHANGED}
    assert tree(tmp_path) == {"a": "others", "b": "others"}


async def test_the_bits_of_a_file_stay_but_for_the_executable_one(tmp_path: Path) -> None:
    write(tmp_path, secret="old", program="old")
    (tmp_path / "secret").chmod(0o640)
    (tmp_path / "program").chmod(0o750)
    plan = (
        Plan()
        .add("secret", (FILE, b"old"), (PROGRAM, b"new"))
        .add("program", (PROGRAM, b"old"), (FILE, b"new"))
        .add("fresh", None, (PROGRAM, b"new"))
    )
    assert await plan.apply(tmp_path) == {}
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("secret", "program")}
    assert modes == {"secret": 0o750, "program": 0o640}
    assert (tmp_path / "fresh").stat().st_mode & stat.S_IXUSR


async def test_links_are_made_and_replaced_and_never_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.write_text("precious")
    (root / "a").symlink_to(outside)
    (root / "b").symlink_to(outside)
    target = os.fsencode(outside)
    plan = (
        Plan()
        .add("a", (LINK, target), (FILE, b"file"))
        .add("b", (LINK, target), None)
        .add("c", None, (LINK, b"no/such"))
        .add("d", None, (LINK, target))
    )
    assert await plan.apply(root) == {}
    assert tree(root) == {"a": "file", "c": "-> no/such", "d": f"-> {outside}"}
    assert outside.read_text() == "precious"


async def test_a_file_and_a_link_to_it_are_put_back_together(tmp_path: Path) -> None:
    write(tmp_path, made="made", changed="new")
    for name, target in (("a", "made"), ("b", "changed"), ("c", "changed"), ("z", "back")):
        (tmp_path / name).symlink_to(target)
    plan = Plan().add("made", (FILE, b"made"), None).add("a", (LINK, b"made"), None)
    plan.add("changed", (FILE, b"new"), (FILE, b"old")).add("b", (LINK, b"changed"), (LINK, b"made"))
    plan.add("c", (LINK, b"changed"), (FILE, b"file"))
    plan.add("back", None, (FILE, b"back")).add("z", None, (LINK, b"back"))  # A kill came after the link.
    assert await plan.apply(tmp_path) == {}
    assert tree(tmp_path) == {"changed": "old", "b": "-> made", "c": "file", "back": "back", "z": "-> back"}


async def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    write(outside, a="precious", b="precious")
    (root / "sub").symlink_to(outside)
    plan = (
        Plan()
        .add("sub/a", (FILE, b"precious"), (FILE, b"new"))
        .add("sub/b", (FILE, b"precious"), None)
        .add("sub/c", None, (FILE, b"new"))
        .add("sub/deep/d", None, (FILE, b"new"))
    )
    left = await plan.apply(root)
    assert set(left) == {"sub/a", "sub/b", "sub/c", "sub/deep/d"}
    assert tree(outside) == {"a": "precious", "b": "precious"}
    assert read(root, ["sub/a"]) == {"sub/a": DiskFile(OTHER_MODE, b"", "sub")}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a file open")
@pytest.mark.parametrize("to", [(FILE, b"earlier"), None])
async def test_a_file_that_a_program_has_open_for_writing_is_left_alone(
    tmp_path: Path, to: tuple[str, bytes] | None
) -> None:
    write(tmp_path, a="now", b="now")
    plan = Plan().add("a", (FILE, b"now"), to).add("b", (FILE, b"now"), to)
    with (tmp_path / "a").open("a") as late, (tmp_path / "b").open():  # Reading it is no reason.
        assert await plan.apply(tmp_path) == {"a": OPEN}
        late.write(", and more")
    assert tree(tmp_path) == {"a": "now, and more"} | ({"b": "earlier"} if to is not None else {})


@pytest.mark.parametrize(
    "name", ["../a", "/a", "a/../../b", "", "a//b", "./a", ".git/hooks/x", "sub/.GIT/config", "a\0b"]
)
async def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid):
        CheckedPath.below(tmp_path, name)
    root = tmp_path / "root"
    root.mkdir()
    assert set(await Plan().add(name, None, (FILE, b"x")).apply(root)) == {name}
    assert tree(tmp_path) == {"root/": ""}


async def test_folders_that_become_empty_go_and_others_stay(tmp_path: Path) -> None:
    for name in ("x/y/one", "x/z/two", "work/here/three"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("made")
    (tmp_path / "x/z/other").write_text("others")
    plan = Plan()
    for name in ("x/y/one", "x/z/two", "work/here/three"):
        plan.add(name, (FILE, b"made"), None)
    assert await plan.apply(tmp_path, keep=tmp_path / "work/here") == {}
    assert tree(tmp_path) == {"x/z/other": "others", "work/here/": ""}


async def test_a_file_takes_the_place_of_a_folder_and_a_folder_that_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_text("made")
    (tmp_path / "c").write_text("made")
    plan = (
        Plan()
        .add("a", None, (FILE, b"was"))
        .add("a/b", (FILE, b"made"), None)
        .add("c", (FILE, b"made"), None)
        .add("c/d", None, (FILE, b"was"))
    )
    assert await plan.apply(tmp_path) == {}
    assert tree(tmp_path) == {"a": "was", "c/d": "was"}


async def test_a_folder_in_which_others_keep_files_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_text("made")
    (tmp_path / "a/other").write_text("others")
    plan = Plan().add("a", None, (FILE, b"was")).add("a/b", (FILE, b"made"), None)
    assert set(await plan.apply(tmp_path)) == {"a"}
    assert tree(tmp_path) == {"a/other": "others"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
async def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, a="old")
    (tmp_path / "a").chmod(0o444)
    assert await Plan().add("a", (FILE, b"old"), (FILE, b"new")).apply(tmp_path) == {"a": READ_ONLY}


async def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    assert await Plan().add("a", None, (FILE, b"new")).apply(tmp_path) == {"a": CHANGED}
    assert read(tmp_path, ["a"]) == {"a": DiskFile(OTHER_MODE, b"")}


async def test_what_a_killed_process_left_beside_a_file_goes(tmp_path: Path) -> None:
    write(tmp_path, a="old")
    plan = Plan().add("a", (FILE, b"old"), (FILE, b"new"))
    leftover = tmp_path / f".turnkeeper-restore-{sha1(b'a').hexdigest()}"
    leftover.symlink_to(tmp_path / "victim")
    assert await plan.apply(tmp_path) == {}
    assert tree(tmp_path) == {"a": "new"}


async def test_a_content_that_is_no_longer_stored_leaves_the_file(tmp_path: Path) -> None:
    write(tmp_path, a="old")
    plan = Plan().add("a", (FILE, b"old"), (FILE, b"new"))
    plan.contents.clear()
    left = await plan.apply(tmp_path)
    assert "no longer stored" in left["a"]
    assert tree(tmp_path) == {"a": "old"}


def test_files_are_read_as_git_sees_them(tmp_path: Path) -> None:
    write(tmp_path, a="text", b="program")
    (tmp_path / "b").chmod(0o700)
    (tmp_path / "c").symlink_to("a")
    (tmp_path / "d").mkdir()
    assert read(tmp_path, ["a", "b", "c", "d", "e", "a/x", "no/x"]) == {
        "a": DiskFile(FILE, b"text"),
        "b": DiskFile(PROGRAM, b"program"),
        "c": DiskFile(LINK, b"a"),
    }


WRITES_LATE = ["restore.file-written", "restore.file-linked", "restore.file-replaced"]


@pytest.mark.parametrize("point", WRITES_LATE)
@pytest.mark.parametrize("to", [(FILE, b"new"), None])
@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("exchanges", [True, False])
async def test_what_is_written_into_a_file_at_the_last_moment_is_not_lost(
    tmp_path: Path, point: str, to: tuple[str, bytes] | None, is_old: bool, exchanges: bool
) -> None:
    write(tmp_path, a="old")
    if is_old:  # Otherwise two writes may have the same time.
        os.utime(tmp_path / "a", (1, 1))
    descriptor = os.open(tmp_path / "a", os.O_WRONLY)
    reached = []

    def meanwhile(at: str) -> None:
        if at == point:
            reached.append(os.pwrite(descriptor, b"EDI", 0))

    left = await Plan().add("a", (FILE, b"old"), to).apply(tmp_path, crash=meanwhile, exchanges=exchanges)
    os.close(descriptor)
    if reached:
        assert left == {"a": CHANGED}
        assert tree(tmp_path) == {"a": "EDI"}
    else:
        assert to is None


@pytest.mark.parametrize("point", WRITES_LATE)
@pytest.mark.parametrize("saved", ["file", "link", "folder"])
async def test_what_is_saved_as_a_new_file_at_the_last_moment_is_not_lost(
    tmp_path: Path, point: str, saved: str
) -> None:
    """As editors do it: they write another file and give it the name."""
    write(tmp_path, a="old")
    os.utime(tmp_path / "a", (1, 1))
    expected = {"file": {"a": "mine"}, "link": {"a": "-> mine"}, "folder": {"a/in": "mine"}}[saved]

    def meanwhile(at: str) -> None:
        if at != point:
            return
        match saved:
            case "file":
                write(tmp_path, b="mine")
            case "link":
                (tmp_path / "b").symlink_to("mine")
            case _:
                (tmp_path / "b").mkdir()
                (tmp_path / "b/in").write_text("mine")
                (tmp_path / "a").unlink()
        (tmp_path / "b").rename(tmp_path / "a")

    left = await Plan().add("a", (FILE, b"old"), (FILE, b"new")).apply(tmp_path, crash=meanwhile)
    assert tree(tmp_path) == expected
    # What is saved after the new file has its place is a change of that one, and no conflict.
    assert left == ({} if point == "restore.file-replaced" else {"a": CHANGED})


async def test_what_was_written_into_a_file_comes_back_also_if_the_new_one_is_deleted(tmp_path: Path) -> None:
    write(tmp_path, a="old")
    descriptor = os.open(tmp_path / "a", os.O_WRONLY)

    def meanwhile(at: str) -> None:
        if at == "restore.file-replaced":
            os.pwrite(descriptor, b"EDI", 0)
            (tmp_path / "a").unlink()

    plan = Plan().add("a", (FILE, b"old"), (FILE, b"new"))
    assert await plan.apply(tmp_path, crash=meanwhile) == {"a": CHANGED}
    os.close(descriptor)
    assert tree(tmp_path) == {"a": "EDI"}


async def test_what_is_saved_while_an_older_one_is_put_back_has_the_name(tmp_path: Path) -> None:
    """Somebody writes into the old file, and somebody else saves the file as a new one."""
    write(tmp_path, a="old")
    descriptor = os.open(tmp_path / "a", os.O_WRONLY)

    def meanwhile(at: str) -> None:
        if at == "restore.after-file":
            os.pwrite(descriptor, b"EDI", 0)
            write(tmp_path, b="saved")
            (tmp_path / "b").rename(tmp_path / "a")

    plan = Plan().add("a", (FILE, b"old"), (FILE, b"new"))
    assert await plan.apply(tmp_path, crash=meanwhile) == {"a": CHANGED}
    os.close(descriptor)
    assert sorted(tree(tmp_path).values()) == ["EDI", "saved"]
    assert (tmp_path / "a").read_text() == "saved"


async def test_a_file_that_others_delete_at_the_last_moment_stays_deleted(tmp_path: Path) -> None:
    write(tmp_path, a="old")

    def meanwhile(at: str) -> None:
        if at == "restore.file-linked":
            (tmp_path / "a").unlink()

    plan = Plan().add("a", (FILE, b"old"), (FILE, b"new"))
    assert await plan.apply(tmp_path, crash=meanwhile) == {"a": CHANGED}
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("to", [(FILE, b"new"), None])
async def test_what_was_written_into_a_file_before_a_kill_comes_back(
    tmp_path: Path, to: tuple[str, bytes] | None
) -> None:
    """The process was killed between giving the new file its name and the look at the old one."""
    digest = sha1(b"a").hexdigest()
    write(tmp_path, **{f".turnkeeper-restore-{digest}-old": "EDI"})
    if to is not None:
        write(tmp_path, a="new")
    plan = Plan().add("a", (FILE, b"old"), to)
    assert await plan.apply(tmp_path) == {"a": CHANGED}
    assert tree(tmp_path) == {"a": "EDI"}
    write(tmp_path, **{f".turnkeeper-restore-{digest}-old": "old", "a": "old"})
    assert await plan.apply(tmp_path) == {}
    assert tree(tmp_path) == ({} if to is None else {"a": "new"})


async def test_many_files_go_and_come_in_batches_and_tell_how_far_they_are(tmp_path: Path) -> None:
    plan, told = Plan(), []
    for number in range(150):
        write(tmp_path, **{f"gone{number}": "made"})
        plan.add(f"gone{number}", (FILE, b"made"), None).add(f"x/{number % 7}/f", None, (FILE, b"new"))
    plan.files = list({one.file: one for one in plan.files}.values())
    restorer = Restorer(tmp_path, plan.read, progress=lambda *done: told.append(done))
    assert await restorer.restore(plan.files) == {}
    assert len(tree(tmp_path)) == 7
    assert told == [(64, 157), (128, 157), (150, 157), (157, 157)]


async def test_a_root_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    plan = Plan().add("a", None, (FILE, b"new")).add("b", (FILE, b"old"), None)
    with pytest.raises(Conflict, match="it is not there"):
        await plan.apply(tmp_path / "away")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("is_outside", [True, False])
async def test_a_folder_takes_the_place_of_a_link_to_a_folder_and_back(tmp_path: Path, is_outside: bool) -> None:
    root, target = tmp_path / "root", tmp_path / "outside" if is_outside else tmp_path / "root/t"
    root.mkdir()
    target.mkdir()
    (target / "y").write_text("precious")
    (root / "link").symlink_to(target)
    there, back = Plan(), Plan()
    link, made = (LINK, os.fsencode(target)), (FILE, b"important")
    there.add("link", link, None).add("link/y", None, made)
    back.add("link", None, link).add("link/y", made, None)
    assert await there.apply(root) == {}
    assert (root / "link/y").read_text() == "important"
    assert not (root / "link").is_symlink()
    assert await back.apply(root) == {}
    assert os.readlink(root / "link") == str(target)
    assert (target / "y").read_text() == "precious"


async def test_what_was_in_a_folder_is_gone_once_a_link_is_in_its_place(tmp_path: Path) -> None:
    """A restore was cut off after it had made the link. Only that link counts: one of others is a conflict."""
    (tmp_path / "t").mkdir()
    (tmp_path / "t/y").write_text("precious")
    (tmp_path / "link").symlink_to("t")
    (tmp_path / "other").symlink_to("t")
    plan = Plan().add("link/y", (FILE, b"made"), None).add("link", None, (LINK, b"t"))
    plan.add("other/y", (FILE, b"made"), None).add("other", None, (LINK, b"elsewhere"))
    assert await plan.apply(tmp_path) == {"other": CHANGED, "other/y": BEHIND_A_LINK}
    assert tree(tmp_path) == {"link": "-> t", "other": "-> t", "t/y": "precious"}


async def test_an_empty_folder_makes_room_for_a_file_and_another_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b/other").write_text("others")
    plan = Plan().add("a", None, (FILE, b"was")).add("b", None, (FILE, b"was"))
    assert await plan.apply(tmp_path) == {"b": FOLDER}
    assert tree(tmp_path) == {"a": "was", "b/other": "others"}


async def test_a_root_that_became_a_link_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "root").symlink_to("copy")
    with pytest.raises(Conflict, match="has become a link"):
        await Plan().add("a", None, (FILE, b"new")).apply(tmp_path / "root")
    assert list((tmp_path / "copy").iterdir()) == []
