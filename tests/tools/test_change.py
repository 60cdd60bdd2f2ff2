"""write and edit: files change whole, as they were asked to, and only if nobody else was faster."""

import os
import stat
from pathlib import Path

import anyio
import pytest
from desk import Desk

from turnkeeper.tools.tool import ToolFailure


async def test_a_new_file_is_written_with_its_directories(desk: Desk) -> None:
    output = await desk.run("write", filePath="a/b/c.txt", content="one\n")
    file = desk.directory / "a/b/c.txt"
    assert file.read_text() == "one\n"
    assert (output.title, output.output, output.metadata["exists"]) == ("a/b/c.txt", f"Wrote {file}.", False)
    assert desk.asked == [("edit", ["a/b/c.txt"], ["*"])]
    assert desk.discovered == [file]


async def test_the_user_is_shown_the_diff_before_anything_is_written(desk: Desk) -> None:
    file = desk.directory / "a.txt"
    file.write_text("one\ntwo\n")
    seen: list[str] = []
    desk.before_answer = lambda: seen.append(file.read_text())
    await desk.run("edit", filePath="a.txt", oldString="two", newString="2")
    patch = "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert seen == ["one\ntwo\n"]
    assert desk.shown == [
        {
            "filepath": str(file),
            "diff": patch,
            "filediff": {"file": "a.txt", "patch": patch, "additions": 1, "deletions": 1},
        }
    ]
    assert file.read_text() == "one\n2\n"


@pytest.mark.parametrize(
    ("tool", "arguments"), [("write", {"content": "x"}), ("edit", {"oldString": "one", "newString": "x"})]
)
async def test_a_change_by_someone_else_while_the_user_was_asked_is_not_overwritten(
    desk: Desk, tool: str, arguments: dict[str, object]
) -> None:
    file = desk.directory / "a.txt"
    file.write_text("one")
    desk.before_answer = lambda: file.write_text("one, by hand")
    with pytest.raises(ToolFailure, match="changed by someone else"):
        await desk.run(tool, filePath="a.txt", **arguments)
    assert file.read_text() == "one, by hand"


async def test_a_file_that_appeared_while_the_user_was_asked_is_not_overwritten(desk: Desk) -> None:
    file = desk.directory / "a.txt"
    desk.before_answer = lambda: file.write_text("mine")
    with pytest.raises(ToolFailure, match="changed by someone else"):
        await desk.run("write", filePath="a.txt", content="x")
    assert file.read_text() == "mine"


async def test_edits_of_one_file_made_at_once_all_happen(desk: Desk) -> None:
    file = desk.directory / "a.txt"
    file.write_text("".join(f"<{n}>\n" for n in range(10)))

    async def edit(n: int) -> None:
        await desk.run("edit", filePath="a.txt", oldString=f"<{n}>", newString=f"[{n}]")

    async with anyio.create_task_group() as calls:
        for n in range(10):
            calls.start_soon(edit, n)
    assert file.read_text() == "".join(f"[{n}]\n" for n in range(10))


async def test_mode_link_mark_and_line_endings_stay(desk: Desk) -> None:
    real, link = desk.directory / "real.sh", desk.directory / "link.sh"
    real.write_bytes(b"\xef\xbb\xbfone\r\ntw\xffo\r\n")
    real.chmod(0o750)
    os.symlink("real.sh", link)
    await desk.run("edit", filePath="link.sh", oldString="one\n", newString="1\n11\n")
    assert real.read_bytes() == b"\xef\xbb\xbf1\r\n11\r\ntw\xffo\r\n"
    await desk.run("write", filePath="link.sh", content="new\n")
    assert real.read_bytes() == b"\xef\xbb\xbfnew\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert link.is_symlink()
    assert sorted(os.listdir(desk.directory)) == ["link.sh", "real.sh"]


async def test_an_edit_says_how_many_places_changed(desk: Desk) -> None:
    (desk.directory / "a").write_text("x x x")
    assert (await desk.run("edit", filePath="a", oldString="x", newString="y", replaceAll=True)).output.startswith(
        "Changed 3 places in"
    )
    assert (desk.directory / "a").read_text() == "y y y"


async def test_an_edit_without_an_old_text_makes_a_file(desk: Desk) -> None:
    output = await desk.run("edit", filePath="new.txt", oldString="", newString="hello")
    assert (desk.directory / "new.txt").read_text() == "hello"
    assert output.output == f"Wrote {desk.directory / 'new.txt'}."


@pytest.mark.parametrize(
    ("old", "words"),
    [("zzz", "was not found"), ("x", "was found 2 times"), ("a\n1 2\nz", "far more than you gave")],
)
async def test_an_edit_that_is_unclear_says_what_to_do(desk: Desk, old: str, words: str) -> None:
    before = "x\nx\na\n1" + " " * 3000 + "2\nz\n"
    (desk.directory / "a").write_text(before)
    with pytest.raises(ToolFailure, match=words):
        await desk.run("edit", filePath="a", oldString=old, newString="new")
    assert (desk.directory / "a").read_text() == before


async def test_a_binary_file_is_not_edited(desk: Desk) -> None:
    (desk.directory / "a").write_bytes(b"a\0b")
    with pytest.raises(ToolFailure, match="binary"):
        await desk.run("edit", filePath="a", oldString="a", newString="b")


async def test_a_path_outside_the_project_is_asked_for_first(desk: Desk, tmp_path: Path) -> None:
    await desk.run("write", filePath=str(tmp_path / "out/x.txt"), content="x")
    assert desk.asked[0] == ("external_directory", [f"{tmp_path}/out/*"], [f"{tmp_path}/out/*"])
    assert desk.asked[1] == ("edit", ["../out/x.txt"], ["*"])


async def test_a_call_may_use_the_other_names_that_models_know(desk: Desk) -> None:
    await desk.run("write", path="a", content="x")
    await desk.run("edit", file_path="a", old_string="x", new_string="y")
    assert (desk.directory / "a").read_text() == "y"


async def test_the_diff_of_a_huge_change_is_bounded(desk: Desk) -> None:
    output = await desk.run("write", filePath="a", content="x" * 3_000_000)
    diff = output.metadata["diff"]
    assert isinstance(diff, str)
    assert len(diff) < 300_000
    assert (desk.directory / "a").stat().st_size == 3_000_000
