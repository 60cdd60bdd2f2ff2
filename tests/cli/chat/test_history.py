"""The file of what was typed."""

import stat
from pathlib import Path

from turnkeeper.cli.chat.history import ENTRIES_MAX, TypedLines


def lines(tmp_path: Path, top: str = "/project") -> TypedLines:
    return TypedLines.of({"TURNKEEPER_DATA": str(tmp_path / "data")}, Path(top))


def test_what_was_typed_is_there_for_the_next_chat_of_the_project_only(tmp_path: Path) -> None:
    for text in ("one", "two\nlines", "grüße \udce4".encode("utf-8", "replace").decode()):
        lines(tmp_path).add(text)
    assert lines(tmp_path).load() == ["one", "two\nlines", "grüße ?"]
    assert lines(tmp_path, "/other").load() == []


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    kept = lines(tmp_path)
    kept.add("secret")
    assert kept.path is not None
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.path.parent.stat().st_mode) == 0o700


def test_a_line_that_begins_with_a_space_is_not_kept(tmp_path: Path) -> None:
    kept = lines(tmp_path)
    kept.add(" password")
    kept.add("  ")
    assert kept.load() == []


def test_a_damaged_line_is_skipped(tmp_path: Path) -> None:
    kept = lines(tmp_path)
    kept.add("one")
    assert kept.path is not None
    with kept.path.open("ab") as file:
        file.write(b'{"a": 1}\n\xff\xfe\n"cut o')
    assert kept.load() == ["one"]


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    kept = lines(tmp_path)
    kept.add("first")
    assert kept.path is not None
    kept.path.write_text("".join(f'"{number}"\n' for number in range(2 * ENTRIES_MAX)))
    assert kept.load() == [str(number) for number in range(ENTRIES_MAX, 2 * ENTRIES_MAX)]
    assert len(kept.path.read_text().splitlines()) == ENTRIES_MAX
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600


def test_without_a_data_directory_or_a_writable_disk_nothing_is_kept(tmp_path: Path) -> None:
    nowhere = TypedLines.of({}, Path("/project"))
    nowhere.add("one")
    assert nowhere.load() == []
    (tmp_path / "data").write_text("a file")
    blocked = lines(tmp_path)
    blocked.add("one")
    assert blocked.load() == []
