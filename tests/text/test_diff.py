"""Diffs are what patch(1) applies and git counts."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.diff import Diff, diff

LINES = st.lists(st.sampled_from(["a", "b", "", "}", "  x", "long line"]), max_size=25)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def test_equal_texts_have_no_diff() -> None:
    assert diff("f", "a\n", "a\n") == Diff(patch="", additions=0, deletions=0)


def test_a_diff_has_three_lines_around_each_change() -> None:
    before = "".join(f"{n}\n" for n in range(1, 13))
    assert diff("f.txt", before, before.replace("6\n", "six\nsechs\n")) == Diff(
        patch="--- f.txt\n+++ f.txt\n@@ -3,7 +3,8 @@\n 3\n 4\n 5\n-6\n+six\n+sechs\n 7\n 8\n 9\n",
        additions=2,
        deletions=1,
    )


def test_a_missing_line_break_at_the_end_is_said() -> None:
    assert diff("f", "", "a").patch == "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n\\ No newline at end of file\n"


def test_what_is_too_large_to_compare_is_replaced_as_one_block() -> None:
    before, after = ("".join(f"{word}{n}\n" for n in range(2500)) for word in "ab")
    assert diff("f", f"same\n{before}", f"same\n{after}").patch.startswith(
        "--- f\n+++ f\n@@ -1,2501 +1,2501 @@\n same\n-a0\n"
    )


@given(TEXTS, TEXTS)
def test_applying_a_diff_to_the_old_text_gives_the_new_one(before: str, after: str) -> None:
    assert applied(before, diff("f", before, after).patch) == after


def applied(text: str, patch: str) -> str:
    """A reading of the format that shares nothing with its writer: line numbers and context are checked."""
    old = text.split("\n")
    new: list[str] = []
    at = 0
    rows = patch.split("\n")[2:-1]
    for place, row in enumerate(rows):
        ends_open = rows[place + 1 : place + 2] == ["\\ No newline at end of file"]
        if row.startswith("@@"):
            start, count = map(int, row.split()[1][1:].split(","))
            start -= 1 if count else 0
            new += [f"{line}\n" for line in old[at:start]]
            at = start
        elif row.startswith((" ", "-")):
            assert old[at] == row[1:]
            at += 1
            if row[0] == " ":
                new.append(row[1:] + ("" if ends_open else "\n"))
        elif row.startswith("+"):
            new.append(row[1:] + ("" if ends_open else "\n"))
    return "".join(new) + "\n".join(old[at:])


@pytest.mark.parametrize(
    ("before", "after"), [("a\nb\nc\n", "a\nc\nd"), ("", "x\n"), ("x\ny", ""), ("1\n" * 30, "1\n" * 31)]
)
def test_git_applies_the_diff(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "f"
    file.write_text(before)
    patch = diff("f", before, after).patch
    subprocess.run(["git", "apply", "-p0", "-"], input=patch, text=True, cwd=tmp_path, check=True)
    assert file.read_text() == after
