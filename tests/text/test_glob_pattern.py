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
    "x/*", "test_*.py", "x/y", "*y*/*", "{x,y}/**/*.py", "[[]k].md",
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
