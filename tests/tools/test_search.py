"""glob and grep: what ignore files leave, always in the same order, never too much."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from confined import needs_kernel
from desk import Desk

from turnkeeper.core.sandbox import confinement
from turnkeeper.model.config import SandboxConfig
from turnkeeper.tools.tool import Rejected, ToolFailure
from turnkeeper.workspace import sandbox


@pytest.fixture
def tree(desk: Desk) -> Desk:
    root = desk.directory
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("ignored/\nsecret.py\n")
    for name in ("b.py", "a.py", "src/c.py", "src/deep/d.ts", "ignored/e.py", "secret.py", ".hidden/f.py", ".git/g.py"):
        os.makedirs((root / name).parent, exist_ok=True)
        (root / name).write_text(f"import {name}\nx = 1\n")
    return desk


async def found(desk: Desk, **arguments: object) -> list[str]:
    output = await desk.run("glob", **arguments)
    return [line.removeprefix(f"{desk.directory}/") for line in output.output.split("\n")]


async def test_files_are_found_in_order_without_hidden_and_ignored_ones(tree: Desk) -> None:
    assert await found(tree, pattern="**/*.py") == ["a.py", "b.py", "src/c.py"]
    assert await found(tree, pattern="*") == ["a.py", "b.py", "src/c.py", "src/deep/d.ts"]
    assert await found(tree, pattern="src/*") == ["src/c.py"]
    assert await found(tree, pattern="*.{py,ts}", path="src") == ["src/c.py", "src/deep/d.ts"]
    assert await found(tree, pattern="*.rs") == ["No files found"]


async def test_an_absolute_pattern_names_its_own_directory(tree: Desk) -> None:
    assert await found(tree, pattern=f"{tree.directory}/src/**/*.ts") == ["src/deep/d.ts"]
    assert await found(tree, pattern=f"{tree.directory}/a.py") == ["a.py"]
    assert await found(tree, pattern=f"{tree.directory}/*.py") == ["a.py", "b.py"]
    assert [name for name, _, _ in tree.asked] == ["glob", "glob", "glob"]


async def test_no_more_than_a_hundred_files_are_shown(desk: Desk) -> None:
    for n in range(101):
        (desk.directory / f"{n:03}.txt").touch()
    output = await desk.run("glob", pattern="*.txt")
    assert output.output.split("\n")[99:] == [
        str(desk.directory / "099.txt"),
        "",
        "(There are more than these 100; use a narrower pattern or path.)",
    ]
    assert output.metadata == {"count": 100, "truncated": True}
    (desk.directory / "100.txt").unlink()
    assert (await desk.run("glob", pattern="*.txt")).metadata == {"count": 100, "truncated": False}


async def test_lines_are_found_file_by_file_with_hidden_and_without_ignored_ones(tree: Desk) -> None:
    root = tree.directory
    output = await tree.run("grep", pattern=r"^import .*\.py")
    assert output.output == "\n\n".join(
        [
            "Found 4 matches",
            f"{root}/.hidden/f.py:\n  Line 1: import .hidden/f.py",
            f"{root}/a.py:\n  Line 1: import a.py",
            f"{root}/b.py:\n  Line 1: import b.py",
            f"{root}/src/c.py:\n  Line 1: import src/c.py",
        ]
    )
    assert output.metadata == {"matches": 4, "truncated": False}
    assert tree.asked == [("grep", [r"^import .*\.py"], ["*"])]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"include": "*.ts"}, ["src/deep/d.ts"]),
        ({"include": "src/*.py"}, ["src/c.py"]),
        ({"include": "*.py", "path": "src"}, ["src/c.py"]),
        ({"path": "a.py"}, ["a.py"]),
        ({"include": "*.rs"}, []),
        ({"include": "secret.py"}, []),
    ],
)
async def test_a_search_may_be_narrowed_and_ignored_files_stay_ignored(
    tree: Desk, arguments: dict[str, object], expected: list[str]
) -> None:
    output = (await tree.run("grep", pattern="x = 1", **arguments)).output
    paths = [line.removesuffix(":") for line in output.split("\n") if line.startswith("/")]
    assert paths == [str(tree.directory / name) for name in expected]


async def test_no_more_than_a_hundred_lines_are_shown(desk: Desk) -> None:
    (desk.directory / "a").write_text("x\n" * 101)
    output = await desk.run("grep", pattern="x")
    lines = output.output.split("\n")
    assert lines[0] == "Found more than 100 matches"
    assert lines[-3:] == [
        "  Line 100: x",
        "",
        "(Only the first 100 are shown; use a narrower pattern, path or include.)",
    ]
    (desk.directory / "a").write_text("x\n" * 100)
    assert (await desk.run("grep", pattern="x")).metadata == {"matches": 100, "truncated": False}


async def test_long_lines_and_bytes_that_are_no_text_are_shown_kindly(desk: Desk) -> None:
    (desk.directory / "a").write_bytes(b"x" * 5000 + b"\n")
    (desk.directory / "b").write_bytes(b"x caf\xe9\n")
    output = (await desk.run("grep", pattern="x")).output
    assert f"  Line 1: {'x' * 2000}...\n" in output
    assert "  Line 1: x caf\ufffd" in output


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(desk: Desk) -> None:
    (desk.directory / "a").write_text("--files\n")
    assert "Line 1: --files" in (await desk.run("grep", pattern="--files")).output


async def test_what_is_wrong_with_an_expression_is_told(desk: Desk) -> None:
    with pytest.raises(ToolFailure, match=r"(?s)Regex parse error.*unclosed group"):
        await desk.run("grep", pattern="a(")


async def test_a_search_outside_the_project_is_asked_for(desk: Desk, tmp_path: Path) -> None:
    await desk.run("grep", pattern="x", path="..")
    await desk.run("glob", pattern=f"{tmp_path}/*")
    assert [patterns for name, patterns, _ in desk.asked if name == "external_directory"] == [[f"{tmp_path}/*"]] * 2


async def test_grep_leaves_out_files_that_may_not_be_read_without_asking_and_names_them(desk: Desk) -> None:
    (desk.directory / ".env").write_text("PASSWORD=secret\n")
    (desk.directory / "app.py").write_text("PASSWORD = None\n")
    desk.refuse("read", "*.env", "ask")
    found = (await desk.run("grep", pattern="PASSWORD", include="**")).output
    assert "app.py" in found
    assert "secret" not in found


async def test_grep_of_a_file_asks_as_read_does(desk: Desk) -> None:
    (desk.directory / ".env").write_text("PASSWORD=secret\n")
    desk.refuse("read", "*.env", "ask")
    with pytest.raises(Rejected):
        await desk.run("grep", pattern="PASSWORD", path=".env")


async def test_a_pipe_is_not_searched_because_that_would_wait_for_somebody_to_write(desk: Desk) -> None:
    os.mkfifo(desk.directory / "pipe")
    with pytest.raises(ToolFailure, match=r"is not a regular file"):
        await desk.run("grep", pattern="x", path="pipe")


@needs_kernel
@pytest.mark.parametrize(("tool", "input"), [("grep", {"pattern": "SECRET"}), ("glob", {"pattern": "*"}), ("list", {})])
async def test_a_directory_that_is_a_link_during_the_search_leads_it_nowhere(
    desk: Desk, tool: str, input: dict[str, str]
) -> None:
    inside, outside = desk.directory / "d", desk.directory.parent / "elsewhere"
    outside.mkdir()
    (outside / "plan.txt").write_text("SECRET\n")
    inside.mkdir()
    policy = sandbox.policy(SandboxConfig(), desk.directory, desk.directory, os.environ)
    desk.refuse("external_directory")
    desk.confined = confinement(policy, desk.rules)

    def swap() -> None:
        if not inside.is_symlink():
            inside.rename(desk.directory / "away")
            inside.symlink_to(outside)

    def swapped_back(permission: str, patterns: Sequence[str]) -> bool:
        """Called for each file that was found: by then ripgrep has read it."""
        inside.unlink()
        (desk.directory / "away").rename(inside)
        return True

    desk.before_answer = swap
    context = msgspec.structs.replace(desk.context(), may=swapped_back)
    with pytest.raises(ToolFailure, match="was replaced by a link after it was checked"):
        await desk.toolbox.run(tool, {**input, "path": "d"}, context)


@needs_kernel
async def test_a_confined_search_finds_what_there_is(tree: Desk) -> None:
    tree.refuse("external_directory")
    tree.confined = confinement(sandbox.policy(SandboxConfig(), tree.directory, tree.directory, os.environ), tree.rules)
    assert await found(tree, pattern="**/*.py") == ["a.py", "b.py", "src/c.py"]
    assert "Found 4 matches" in (await tree.run("grep", pattern="import", include="*.py", path="src/..")).output
    assert "c.py" in (await tree.run("list", path="src")).output
