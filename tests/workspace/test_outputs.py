"""Output files: written once, private, and gone after a week."""

import os
from pathlib import Path

import pytest

from turnkeeper.core.limits import OUTPUT_FILE_KEPT_S, OUTPUT_SWEEP_S
from turnkeeper.mint import FixedMint, Mint
from turnkeeper.workspace.outputs import OutputFiles


@pytest.fixture
def mint() -> FixedMint:
    return Mint.fixed()


@pytest.fixture
def files(tmp_path: Path, mint: FixedMint) -> OutputFiles:
    return OutputFiles(tmp_path / "data" / "tool-output", mint.now, mint.ascending)


async def test_a_text_is_kept_byte_for_byte_where_only_its_owner_reads(files: OutputFiles) -> None:
    path = await files.keep("é\r\n\0\ud800", session_id="ses_1")
    assert path.read_bytes() == "é\r\n\0\ud800".encode("utf-8", "surrogatepass")
    assert path.parent == files.place
    assert path.name.startswith("tool_")
    assert (path.stat().st_mode & 0o777, files.place.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_each_text_has_a_file_of_its_own(files: OutputFiles) -> None:
    assert await files.keep("same", session_id="ses_1") != await files.keep("same", session_id="ses_1")


async def test_a_file_that_is_there_is_never_written_to(tmp_path: Path, mint: FixedMint) -> None:
    files = OutputFiles(tmp_path, mint.now, lambda prefix: f"{prefix}_taken")
    (tmp_path / "victim").write_text("mine")
    path = await files.keep("text", session_id="ses_1")
    path.unlink()
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        await files.keep("text", session_id="ses_1")
    assert (tmp_path / "victim").read_text() == "mine"


async def test_the_files_of_a_session_are_removed_and_no_others(files: OutputFiles) -> None:
    mine, also_mine = await files.keep("one", session_id="ses_1"), await files.keep("two", session_id="ses/\0odd")
    other = await files.keep("three", session_id="ses_2")
    await files.remove(["ses_1", "ses/\0odd"])
    assert [path.exists() for path in (mine, also_mine, other)] == [False, False, True]


async def test_where_no_directory_can_be_the_caller_hears_it(tmp_path: Path, mint: FixedMint) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        await OutputFiles(tmp_path / "file" / "tool-output", mint.now, mint.ascending).keep("text", session_id="ses_1")


async def test_files_older_than_a_week_go_when_a_new_one_comes(files: OutputFiles, mint: FixedMint) -> None:
    old = await files.keep("old", session_id="ses_1")
    other = files.place / "notes.txt"
    other.write_text("not ours")
    os.utime(other, (0, 0))
    mint.advance(OUTPUT_FILE_KEPT_S * 1000 // 2)
    young = await files.keep("young", session_id="ses_1")
    mint.advance(OUTPUT_FILE_KEPT_S * 1000 // 2 + 1000)
    new = await files.keep("new", session_id="ses_1")
    assert {path for path in (old, other, young, new) if path.exists()} == {other, young, new}


async def test_they_are_looked_for_at_most_so_often(files: OutputFiles, mint: FixedMint) -> None:
    await files.keep("first", session_id="ses_1")
    old = files.place / "tool_old"
    old.write_text("")
    os.utime(old, (0, 0))
    mint.advance(OUTPUT_SWEEP_S * 1000 - 1)
    await files.keep("second", session_id="ses_1")
    assert old.exists()
    mint.advance(1)
    await files.keep("third", session_id="ses_1")
    assert not old.exists()


def test_where_nothing_was_kept_nothing_is_swept(files: OutputFiles) -> None:
    assert files.sweep() == 0


def test_they_lie_in_the_data_directory_links_resolved(tmp_path: Path, mint: FixedMint) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files = OutputFiles.of({"TURNKEEPER_DATA": str(tmp_path / "link")}, mint.now, mint.ascending)
    assert files is not None
    assert files.place == Path(os.path.realpath(tmp_path)) / "real" / "tool-output"
    assert OutputFiles.of({}, mint.now, mint.ascending) is None
