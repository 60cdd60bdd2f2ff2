"""Ripgrep is found, and its absence is told."""

import subprocess
import threading
from pathlib import Path

import anyio
import pytest
from confined import without_powers

from turnkeeper.model.refusal import NotFound
from turnkeeper.workspace import ripgrep


def test_ripgrep_comes_with_us() -> None:
    said = subprocess.run([ripgrep.program(), "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("ripgrep ")


def test_a_missing_ripgrep_is_told_with_what_to_do() -> None:
    with pytest.raises(NotFound, match="'pip install no-such-package' brings it"):
        ripgrep.program("no-such-program", "no-such-package")


@pytest.mark.parametrize(("name", "mode"), [("file", 0o000), ("folder", 0o311)])
def test_what_cannot_be_read_is_named_and_not_taken_for_empty(tmp_path: Path, name: str, mode: int) -> None:
    refused: list[str] = []
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/inner").write_text("hit\n")
    (tmp_path / "file").write_text("hit\n")

    async def look() -> None:
        directory, below = (tmp_path, "./file") if name == "file" else (tmp_path / name, "./")
        try:
            await ripgrep.search("hit", directory, lambda path: True, 3, below=below)
        except PermissionError as error:
            refused.append(error.filename)

    def work() -> None:
        without_powers()
        anyio.run(look)

    (tmp_path / name).chmod(mode)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    (tmp_path / name).chmod(0o755)
    assert refused == [str(tmp_path / name)]


async def test_a_search_stops_as_soon_as_it_has_enough(tmp_path: Path) -> None:
    for n in range(50):
        (tmp_path / f"{n:02}").write_text("x\n" * 2000)
    found = await ripgrep.search("x", tmp_path, lambda path: path != "00", 3)
    assert [(match.path, match.line) for match in found] == [("01", 1), ("01", 2), ("01", 3)]


async def test_of_a_line_of_megabytes_only_the_beginning_is_read_however_often_it_matches(tmp_path: Path) -> None:
    (tmp_path / "bundle.js").write_text(f"first\n{'é' * 4_000_000}\nlast é\n")
    found = await ripgrep.search("é", tmp_path, lambda path: True, 10)
    assert [(match.line, match.text[:2000]) for match in found] == [(2, "é" * 2000), (3, "last é")]


async def test_a_name_with_a_line_break_and_a_file_that_turns_out_to_be_binary_disturb_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hit\n" * 50_000 + b"\0\nhit\n")
    (tmp_path / "b\n.\nc").write_text("hit\r\n")
    (tmp_path / "d: 1:hit").write_text("no\nhit:1:2\n")
    found = await ripgrep.search("hit", tmp_path, lambda path: path != "a.bin", 10)
    assert [(match.path, match.line, match.text) for match in found] == [
        ("b\n.\nc", 1, "hit"),
        ("d: 1:hit", 2, "hit:1:2"),
    ]


async def test_a_binary_file_is_searched_if_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\nhit\n")
    found = await ripgrep.search("hit", tmp_path, lambda path: True, 10, below="./a.bin")
    assert [(match.path, match.line, match.text) for match in found] == [("a.bin", 2, "hit")]
