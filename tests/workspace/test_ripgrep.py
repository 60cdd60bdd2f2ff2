"""Ripgrep is found, and its absence is told."""

import subprocess
from pathlib import Path

import pytest

from turnkeeper.model.refusal import NotFound
from turnkeeper.workspace import ripgrep


def test_ripgrep_comes_with_us() -> None:
    said = subprocess.run([ripgrep.program(), "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("ripgrep ")


def test_a_missing_ripgrep_is_told_with_what_to_do() -> None:
    with pytest.raises(NotFound, match="'pip install no-such-package' brings it"):
        ripgrep.program("no-such-program", "no-such-package")


async def test_a_search_stops_as_soon_as_it_has_enough(tmp_path: Path) -> None:
    for n in range(50):
        (tmp_path / f"{n:02}").write_text("x\n" * 2000)
    found = await ripgrep.search("x", tmp_path, lambda path: path != "00", 3)
    assert [(match.path, match.line) for match in found] == [("01", 1), ("01", 2), ("01", 3)]
