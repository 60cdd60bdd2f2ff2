"""Globs mean here what they mean to ripgrep."""

import os
import subprocess
from pathlib import Path

import pytest

from turnkeeper.model.refusal import Invalid
from turnkeeper.text.glob_pattern import compile_glob
from turnkeeper.workspace import ripgrep

PATHS = [
    "a.py", "b.ts", "c.tsx", "x/a.py", "x/y/a.py", "x/y/z/d.py", "x/test_a.py", "y/x/a.py", "[k].md", "éa.py",
    "a,b.txt", "x/a-b.c", "ab.d", "A.py", "x/y.d/e.f",
]  # fmt: skip
PATTERNS = [
    "*.py", "**/*.py", "x/*.py", "x/**", "x/**/*.py", "**", "*", "**/a.py", "*.{ts,tsx}", "{a,b}.{py,ts}", "x/{y,z}/**",
    "[ab].py", "[!a].py", "[a-c].*", "?.py", "\\[k\\].md", "/a.py", "/x/*.py", "a,b.txt", "x/**/a.py", "**/y/**", "é*",
    "x/*", "test_*.py", "x/y", "*y*/*", "{x,y}/**/*.py", "[[]k].md", "*a*.*p*", "**/**/a.py", "x/**/y/**/*.py",
    "{a,{b,c}}.*", "x/**/**", "*{a,b}*", "**/?/a.py",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_glob_matches_the_files_that_ripgrep_lists_for_it(tree: Path, pattern: str) -> None:
    listed = subprocess.run(
        [ripgrep.program(), "--no-config", "--files", f"--glob={pattern}"], cwd=tree, capture_output=True, text=True
    )
    assert {path for path in PATHS if compile_glob(pattern).fullmatch(path)} == set(listed.stdout.split("\n")) - {""}


@pytest.mark.parametrize("pattern", ["[a", "{a,b", "[z-a]"])
def test_a_glob_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match=r"pattern"):
        compile_glob(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/" * 2000 + "b", "a/" * 200 + "a"),
        ("**/a/" * 200 + "b", "a/" * 200 + "a"),
        ("*a" * 50 + "b", "a" * 255),
        ("{a,aa}" * 8 + "b", "a" * 255),
        ("*/" * 100 + "**/*a*a*a*a*a*a/**/b", "aaaaaaaaaaaaaaaaaaaa/" * 200 + "a"),
    ],
)
def test_no_glob_takes_long_however_many_ways_there_are_to_match_it(pattern: str, path: str) -> None:
    assert compile_glob(pattern).fullmatch(path) is None


@pytest.mark.parametrize("pattern", ["{a,b}" * 20, "{a,{b,c}}" * 20, "{a," * 5000 + "}" * 5000, "a" * 100_001])
def test_a_glob_that_stands_for_too_many_others_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match=r"too many"):
        compile_glob(pattern)


def test_a_question_mark_is_one_character_however_many_bytes_it_takes() -> None:
    assert compile_glob("?.py").fullmatch("é.py")


def test_a_leading_dot_slash_is_the_directory_itself() -> None:
    assert compile_glob("./x/*.py").fullmatch("x/a.py")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for path in PATHS:
        os.makedirs(root / Path(path).parent, exist_ok=True)
        (root / path).touch()
    return root
