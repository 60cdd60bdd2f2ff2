"""write and edit: files change whole, as they were asked to, and only if nobody else was faster."""

import os
import stat
from pathlib import Path

import anyio
import pytest
from desk import Desk

from turnkeeper.cli.part_lines import counts
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
    desk.know("a.txt")
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
    desk.know("a.txt")
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
    desk.know("a.txt")

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
    desk.know("link.sh")
    await desk.run("edit", filePath="link.sh", oldString="one\n", newString="1\n11\n")
    assert real.read_bytes() == b"\xef\xbb\xbf1\r\n11\r\ntw\xffo\r\n"
    await desk.run("write", filePath="link.sh", content="new\n")
    assert real.read_bytes() == b"\xef\xbb\xbfnew\r\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert link.is_symlink()
    assert sorted(os.listdir(desk.directory)) == ["link.sh", "real.sh"]


async def test_an_edit_says_how_many_places_changed(desk: Desk) -> None:
    (desk.directory / "a").write_text("x x x")
    desk.know("a")
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
    desk.know("a")
    with pytest.raises(ToolFailure, match=words):
        await desk.run("edit", filePath="a", oldString=old, newString="new")
    assert (desk.directory / "a").read_text() == before


async def test_a_binary_file_is_not_edited(desk: Desk) -> None:
    (desk.directory / "a").write_bytes(b"a\0b")
    desk.know("a")
    with pytest.raises(ToolFailure, match="binary"):
        await desk.run("edit", filePath="a", oldString="a", newString="b")


async def test_a_path_outside_the_project_is_asked_for_first(desk: Desk, tmp_path: Path) -> None:
    await desk.run("write", filePath=str(tmp_path / "out/x.txt"), content="x")
    assert desk.asked[0] == ("external_directory", [f"{tmp_path}/out/*"], [f"{tmp_path}/out/*"])
    assert desk.asked[1] == ("edit", [f"{tmp_path}/out/x.txt"], ["*"])


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


# --- The guard: what is changed was read before -------------------------------------------------------------------

CHANGING: list[tuple[str, dict[str, object]]] = [
    ("write", {"filePath": "a.txt", "content": "two\n"}),
    ("edit", {"filePath": "a.txt", "oldString": "one", "newString": "two"}),
    ("multiedit", {"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "two"}]}),
    ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch"}),
]


@pytest.mark.parametrize(("tool", "arguments"), CHANGING)
async def test_a_file_is_changed_only_as_it_was_read(desk: Desk, tool: str, arguments: dict[str, object]) -> None:
    file = desk.directory / "a.txt"
    file.write_text("one\n")
    with pytest.raises(ToolFailure, match=r"was not read in this session yet. Read it before you change it."):
        await desk.run(tool, **arguments)
    await desk.run("read", filePath="a.txt")
    file.write_text("one\nmore\n")
    with pytest.raises(ToolFailure, match="has changed since it was read"):
        await desk.run(tool, **arguments)
    assert file.read_text() == "one\nmore\n"
    assert [permission for permission, _, _ in desk.asked] == ["read"]
    file.write_text("one\n")
    await desk.run(tool, **arguments)
    assert file.read_text() == "two\n"


@pytest.mark.parametrize(("tool", "arguments"), CHANGING)
async def test_a_file_may_be_read_by_one_name_and_changed_by_another(
    desk: Desk, tool: str, arguments: dict[str, object]
) -> None:
    (desk.directory / "real.txt").write_text("one\n")
    os.symlink("real.txt", desk.directory / "a.txt")
    await desk.run("read", filePath="real.txt")
    await desk.run(tool, **arguments)
    assert (desk.directory / "real.txt").read_text() == "two\n"
    assert (desk.directory / "a.txt").is_symlink()


async def test_what_the_session_wrote_itself_counts_as_read(desk: Desk) -> None:
    await desk.run("write", filePath="a.txt", content="one\n")
    await desk.run("edit", filePath="a.txt", oldString="one", newString="two")
    await desk.run("multiedit", filePath="a.txt", edits=[{"oldString": "two", "newString": "three"}])
    patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n-three\n+four\n*** End Patch"
    await desk.run("apply_patch", patchText=patch)
    await desk.run("write", filePath="b.txt", content="five\n")
    assert (desk.directory / "b.txt").read_text() == "five\n"


async def test_a_part_of_a_file_that_was_read_counts(desk: Desk) -> None:
    (desk.directory / "a.txt").write_text("1\n2\n3\n")
    await desk.run("read", filePath="a.txt", offset=3, limit=1)
    await desk.run("edit", filePath="a.txt", oldString="3", newString="4")
    assert (desk.directory / "a.txt").read_text() == "1\n2\n4\n"


# --- Encodings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoded", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-sig", "latin-1"], ids=lambda name: str(name)
)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_the_encoding_of_a_file_stays(desk: Desk, encoded: str, end: str) -> None:
    def form(text: str) -> bytes:
        content = text.replace("\n", end)
        return b"\xfe\xff" + content.encode("utf-16-be") if encoded == "utf-16-be-sig" else content.encode(encoded)

    file = desk.directory / "a.txt"
    file.write_bytes(form("café\nnaïve\n"))
    assert "1: café\n2: naïve" in (await desk.run("read", filePath="a.txt")).output
    await desk.run("edit", filePath="a.txt", oldString="café", newString="thé")
    assert file.read_bytes() == form("thé\nnaïve\n")
    await desk.run("multiedit", filePath="a.txt", edits=[{"oldString": "thé\n", "newString": "à\nla\n"}])
    assert file.read_bytes() == form("à\nla\nnaïve\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n-la\n+là\n*** End Patch"
    await desk.run("apply_patch", patchText=patch)
    assert file.read_bytes() == form("à\nlà\nnaïve\n")
    output = await desk.run("write", filePath="a.txt", content="à\nnouveau\n")
    assert file.read_bytes() == form("à\nnouveau\n")
    assert "-là" in str(output.metadata["diff"])


async def test_a_character_that_the_encoding_lacks_is_refused_by_edit_and_said_by_write(desk: Desk) -> None:
    file = desk.directory / "a.txt"
    file.write_bytes("café\n".encode("latin-1"))
    desk.know("a.txt")
    with pytest.raises(ToolFailure, match=r"is encoded in ISO-8859-1, and ISO-8859-1 has no character '€'"):
        await desk.run("edit", filePath="a.txt", oldString="café", newString="5 €")
    output = await desk.run("write", filePath="a.txt", content="5 €\n")
    assert "It was in ISO-8859-1 and is in UTF-8 now" in output.output
    assert file.read_text("utf-8") == "5 €\n"


async def test_a_file_that_only_pretends_to_be_utf_16_is_binary(desk: Desk) -> None:
    (desk.directory / "a").write_bytes(b"\xff\xfe\0\0a\0\0\0")
    with pytest.raises(ToolFailure, match="binary"):
        await desk.run("read", filePath="a")


# --- multiedit ----------------------------------------------------------------------------------------------------


async def test_all_edits_are_made_in_order(desk: Desk) -> None:
    (desk.directory / "a").write_text("one\ntwo\none\n")
    desk.know("a")
    edits = [
        {"oldString": "two", "newString": "2"},
        {"oldString": "one", "newString": "1", "replaceAll": True},
        {"oldString": "1\n2", "newString": "x"},
    ]
    output = await desk.run("multiedit", filePath="a", edits=edits)
    assert (desk.directory / "a").read_text() == "x\n1\n"
    assert output.output == f"Made 3 edits in {desk.directory / 'a'}."
    assert [permission for permission, _, _ in desk.asked] == ["edit"]


async def test_one_edit_that_cannot_be_made_undoes_all(desk: Desk) -> None:
    (desk.directory / "a").write_text("one\n")
    desk.know("a")
    edits = [{"oldString": "one", "newString": "two"}, {"oldString": "one", "newString": "three"}]
    with pytest.raises(ToolFailure, match="Edit 2 of 2: oldString was not found"):
        await desk.run("multiedit", filePath="a", edits=edits)
    assert (desk.directory / "a").read_text() == "one\n"
    assert desk.asked == []


async def test_several_edits_may_begin_with_a_new_file(desk: Desk) -> None:
    edits = [{"oldString": "", "newString": "one\n"}, {"oldString": "one", "newString": "two"}]
    await desk.run("multiedit", filePath="new/a", edits=edits)
    assert (desk.directory / "new/a").read_text() == "two\n"


# --- apply_patch --------------------------------------------------------------------------------------------------


def enveloped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def test_a_patch_adds_updates_moves_and_deletes(desk: Desk) -> None:
    for name, content in {"a.py": "def f():\n    return 1\n", "b.py": "old\n", "c.py": "gone\n"}.items():
        (desk.directory / name).write_text(content)
        desk.know(name)
    patch = enveloped(
        "*** Add File: d/new.py",
        "+first",
        "+second",
        "*** Update File: a.py",
        "@@ def f():",
        "-    return 1",
        "+    return 2",
        "*** Update File: b.py",
        "*** Move to: e/moved.py",
        "-old",
        "+new",
        "*** Delete File: c.py",
    )
    output = await desk.run("apply_patch", patchText=patch)
    found = {str(file.relative_to(desk.directory)): file.read_text() for file in desk.directory.rglob("*.py")}
    assert found == {"d/new.py": "first\nsecond\n", "a.py": "def f():\n    return 2\n", "e/moved.py": "new\n"}
    assert output.output.splitlines()[1:] == ["A d/new.py", "M a.py", "M e/moved.py", "D c.py"]
    assert desk.asked == [("edit", ["d/new.py", "a.py", "b.py", "e/moved.py", "c.py"], ["*"])]
    listed = output.metadata["files"]
    assert isinstance(listed, list)
    kinds = [(one["relativePath"], one["type"], one["additions"], one["deletions"]) for one in listed]
    assert kinds == [
        ("d/new.py", "add", 2, 0),
        ("a.py", "update", 1, 1),
        ("b.py", "move", 1, 1),
        ("c.py", "delete", 0, 1),
    ]
    assert counts(str(output.metadata["diff"])) == (4, 3)


async def test_a_patch_of_which_one_file_does_not_fit_changes_nothing(desk: Desk) -> None:
    (desk.directory / "a").write_text("one\n")
    (desk.directory / "b").write_text("two\n")
    desk.know("a", "b")
    patch = enveloped("*** Update File: a", "-one", "+1", "*** Update File: b", "-three", "+3")
    with pytest.raises(ToolFailure, match=r"does not fit '.*/b': these lines were not found from line 1 on:\nthree"):
        await desk.run("apply_patch", patchText=patch)
    assert ((desk.directory / "a").read_text(), desk.asked) == ("one\n", [])


async def test_a_patch_that_cannot_be_written_whole_is_taken_back(desk: Desk) -> None:
    (desk.directory / "a").write_text("one\n")
    (desk.directory / "c").write_text("three\n")
    desk.know("a", "c")
    (desk.directory / "file").write_text("")
    patch = enveloped("*** Update File: a", "-one", "+1", "*** Delete File: c", "*** Add File: file/b", "+x")
    with pytest.raises(ToolFailure):
        await desk.run("apply_patch", patchText=patch)
    assert (desk.directory / "a").read_text() == "one\n"
    assert (desk.directory / "c").read_text() == "three\n"


@pytest.mark.parametrize("path", ["loop", "loop/file", "round"])
async def test_a_loop_of_links_is_named_as_what_it_is(desk: Desk, path: str) -> None:
    os.symlink("loop", desk.directory / "loop")
    os.symlink("about", desk.directory / "round")
    os.symlink("round", desk.directory / "about")
    for tool, given in (
        ("read", {"filePath": path}),
        ("write", {"filePath": path, "content": "x"}),
        ("edit", {"filePath": path, "oldString": "", "newString": "x"}),
        ("list", {"path": path}),
        ("apply_patch", {"patchText": enveloped(f"*** Add File: {path}", "+x")}),
    ):
        with pytest.raises(ToolFailure, match="is a loop of symbolic links, so there is no file"):
            await desk.run(tool, **given)
    assert desk.asked == []


async def test_two_sections_about_one_file_are_both_applied(desk: Desk) -> None:
    (desk.directory / "a").write_text("one\ntwo\n")
    os.symlink("a", desk.directory / "link")
    desk.know("a")
    patch = enveloped("*** Update File: a", "-one", "+1", "*** Update File: link", "-two", "+2")
    await desk.run("apply_patch", patchText=patch)
    assert (desk.directory / "a").read_text() == "1\n2\n"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("no patch", "begins with the line"),
        (enveloped(), "names no file"),
        (enveloped("*** Update File: missing", "-a", "+b"), "does not exist. Use '\\*\\*\\* Add File: '"),
        (enveloped("*** Delete File: missing"), "cannot be deleted"),
    ],
)
async def test_a_patch_that_makes_no_sense_says_so(desk: Desk, patch: str, words: str) -> None:
    with pytest.raises(ToolFailure, match=words):
        await desk.run("apply_patch", patchText=patch)
