"""A unified diff with fewer unchanged lines is the one that git prints with so many."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.text.patch_context import narrowed

texts = st.lists(st.sampled_from(["a", "b", "", "-- c", "++ d", "@@ e"]), max_size=30).map("\n".join)


def git_diff(folder: Path, before: str, after: str, context: int) -> str:
    (folder / "before").write_text(before)
    (folder / "after").write_text(after)
    command = ["git", "diff", "--no-index", "--no-color", f"-U{context}", "before", "after"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60).stdout


def hunks(diff: str) -> str:
    """The hunks with both counts written out, and without the words that git puts behind them."""
    lines = diff.splitlines(keepends=True)
    start = next((place for place, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    return "".join(_counted(line) if line.startswith("@@ ") else line for line in lines[start:])


def _counted(line: str) -> str:
    _, old, new, *_ = line.split(" ")
    both = [one if "," in one else f"{one},1" for one in (old, new)]
    return f"@@ {both[0]} {both[1]} @@\n"


@settings(max_examples=60, deadline=None)
@given(before=texts, after=texts, context=st.integers(0, 3))
def test_it_is_what_git_prints_with_fewer_lines(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str, context: int
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    whole = git_diff(folder, before, after, 1000)
    # Git joins hunks that touch; with no context it does not, because there is nothing to touch.
    assert narrowed(whole, context) == hunks(git_diff(folder, before, after, context))


def test_a_text_without_hunks_has_none() -> None:
    assert narrowed("", 3) == narrowed("Index: a\n---\n", 3) == ""
