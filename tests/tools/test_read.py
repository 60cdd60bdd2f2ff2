"""read: lines with their numbers, names of a directory, pictures as they are."""

import base64
import os
from pathlib import Path

import pytest
from desk import Desk

from turnkeeper.core.limits import LINE_CHARS_MAX, OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX
from turnkeeper.tools.tool import Attachment, Denied, Rejected, ToolFailure, ToolOutput

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def content(desk: Desk, path: str, **arguments: object) -> list[str]:
    output = (await desk.run("read", filePath=path, **arguments)).output
    return output.split("<content>\n")[1].removesuffix("\n</content>").split("\n")


async def test_a_file_is_shown_with_its_path_and_numbered_lines(desk: Desk) -> None:
    file = desk.directory / "a.txt"
    file.write_text("one\n\nthree")
    assert await desk.run("read", filePath="a.txt") == ToolOutput(
        title="a.txt",
        output=f"<path>{file}</path>\n<type>file</type>\n"
        "<content>\n1: one\n2: \n3: three\n\n(End, 3 in all)\n</content>",
        metadata={
            "preview": "one\n\nthree",
            "truncated": False,
            "display": {"type": "file", "path": str(file), "text": "one\n\nthree"},
        },
    )
    assert desk.asked == [("read", ["a.txt"], ["*"])]
    assert desk.discovered == [file]


async def test_a_range_is_shown_and_where_to_go_on(desk: Desk) -> None:
    (desk.directory / "a").write_text("".join(f"{n}\n" for n in range(1, 11)))
    assert await content(desk, "a", offset=3, limit=2) == [
        "3: 3",
        "4: 4",
        "",
        "(3 to 4 shown and more to come; go on with offset 5)",
    ]
    assert await content(desk, "a", offset=9, limit=2) == ["9: 9", "10: 10", "", "(End, 10 in all)"]
    assert (await content(desk, "a", offset=0))[0] == "1: 1"
    with pytest.raises(ToolFailure, match="has only 10 lines, so there is none from 11 on"):
        await content(desk, "a", offset=11)


async def test_an_empty_file_is_shown_empty(desk: Desk) -> None:
    (desk.directory / "a").touch()
    assert await content(desk, "a") == ["", "(End, 0 in all)"]


async def test_a_long_file_is_shown_up_to_its_limits(desk: Desk) -> None:
    (desk.directory / "lines").write_text("x\n" * 3000)
    (desk.directory / "bytes").write_text(("y" * 999 + "\n") * 100)
    assert (await content(desk, "lines"))[
        -1
    ] == f"(1 to {OUTPUT_LINES_MAX} shown and more to come; go on with offset 2001)"
    shown = OUTPUT_BYTES_MAX // 1000
    assert (await content(desk, "bytes"))[-1] == f"(1 to {shown} shown and more to come; go on with offset {shown + 1})"


async def test_a_long_line_is_cut_and_the_next_one_is_not_lost(desk: Desk) -> None:
    (desk.directory / "a").write_text("é" * 3_000_000 + "\nnext\n")
    assert await content(desk, "a") == [f"1: {'é' * LINE_CHARS_MAX}... (line cut)", "2: next", "", "(End, 2 in all)"]


async def test_marks_line_endings_and_bytes_that_are_no_text_are_read_kindly(desk: Desk) -> None:
    (desk.directory / "a").write_bytes(b"\xef\xbb\xbfone\r\ntw\xff\r\n")
    assert await content(desk, "a") == ["1: one", "2: tw\ufffd", "", "(End, 2 in all)"]


async def test_a_directory_is_listed_in_order_and_in_pages(desk: Desk) -> None:
    for name in ("b", "a", "é"):
        (desk.directory / name).touch()
    (desk.directory / "d").mkdir()
    os.symlink("d", desk.directory / "c")
    assert await content(desk, ".") == ["a", "b", "c/", "d/", "é", "", "(End, 5 in all)"]
    assert await content(desk, ".", offset=2, limit=2) == [
        "b",
        "c/",
        "",
        "(2 to 3 shown and more to come; go on with offset 4)",
    ]


@pytest.mark.parametrize(
    ("head", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF1234WEBP", "image/webp"),
        (b"%PDF-1.7", "application/pdf"),
    ],
)
async def test_pictures_and_pdfs_are_attached_whatever_their_name(desk: Desk, head: bytes, mime: str) -> None:
    (desk.directory / "picture.txt").write_bytes(head)
    output = await desk.run("read", filePath="picture.txt")
    url = f"data:{mime};base64,{base64.b64encode(head).decode()}"
    assert output.attachments == (Attachment(mime=mime, url=url, filename="picture.txt"),)
    assert "attached" in output.output


@pytest.mark.parametrize(("name", "body"), [("a.zip", b"text"), ("a", b"a\0b"), ("b", bytes(range(1, 9)) * 9)])
async def test_other_binary_files_are_refused(desk: Desk, name: str, body: bytes) -> None:
    (desk.directory / name).write_bytes(body)
    with pytest.raises(ToolFailure, match="binary"):
        await desk.run("read", filePath=name)


async def test_a_missing_file_is_answered_with_near_names(desk: Desk) -> None:
    for name in ("Config.py", "config.py.bak", "other", "config"):
        (desk.directory / name).touch()
    with pytest.raises(ToolFailure) as failure:
        await desk.run("read", filePath="config.py")
    near = ", ".join(str(desk.directory / name) for name in ("Config.py", "config", "config.py.bak"))
    assert str(failure.value).endswith(f"does not exist. Did you mean one of these? {near}")


async def test_a_link_to_nowhere_is_told_as_one(desk: Desk) -> None:
    (desk.directory / "link.txt").symlink_to("gone.txt")
    with pytest.raises(ToolFailure, match=r"link.txt' is a symbolic link to 'gone.txt', which does not exist"):
        await desk.run("read", filePath="link.txt")


async def test_a_file_outside_the_project_is_asked_for_first(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    await desk.run("read", filePath="../outside.txt")
    assert desk.asked == [
        ("external_directory", [f"{tmp_path}/*"], [f"{tmp_path}/*"]),
        ("read", [f"{tmp_path}/outside.txt"], ["*"]),
    ]
    desk.refuse("external_directory")
    with pytest.raises(Denied):
        await desk.run("read", filePath=str(tmp_path / "outside.txt"))


async def test_a_link_that_leads_outside_is_outside(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    os.symlink(tmp_path / "outside.txt", desk.directory / "link")
    desk.refuse("external_directory", action="ask")
    with pytest.raises(Rejected):
        await desk.run("read", filePath="link")


async def test_a_link_does_not_get_around_a_rule_about_what_it_leads_to(desk: Desk) -> None:
    (desk.directory / ".env").write_text("secret")
    os.symlink(".env", desk.directory / "notes.txt")
    desk.refuse("read", "*.env")
    with pytest.raises(Denied):
        await desk.run("read", filePath="notes.txt")


async def test_the_whole_worktree_is_inside_and_the_root_of_the_file_system_is_no_worktree(
    desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "top.txt").write_text("x")
    desk.worktree = tmp_path
    await desk.run("read", filePath="../top.txt")
    desk.worktree = Path("/")
    await desk.run("read", filePath="../top.txt")
    assert [(name, patterns) for name, patterns, _ in desk.asked] == [
        ("read", ["top.txt"]),
        ("external_directory", [f"{tmp_path}/*"]),
        ("read", [f"{tmp_path}/top.txt"]),
    ]
