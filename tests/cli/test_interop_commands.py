"""Commands that exchange sessions with files and with opencode."""

import json
import os
import select
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from cli_store import Family, api, command, environment, process, tk

from turnkeeper.app import Turnkeeper
from turnkeeper.interop.report import TAKEN


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The data directory of another store."""
    return tmp_path / "other"


async def _exported(opened: Turnkeeper, session_id: str) -> bytes:
    return b"".join([piece async for piece in opened.export(session_id)])


def test_an_export_is_what_the_api_writes(data: Path, family: Family, tmp_path: Path) -> None:
    expected = api(data, lambda opened: _exported(opened, family.root.id))
    assert tk(data, "session", "export", family.root.id).out.encode() == expected
    assert tk(data, "export", family.root.slug, "--json").out.encode() == expected
    target = tmp_path / "wind.json"
    written = tk(data, "session", "export", family.root.id, "--output", str(target))
    assert written.out == f"Exported 1 session to {target}\n"
    assert target.read_bytes() == expected


@pytest.mark.parametrize("kind", ["device", "pipe", "link"])
def test_an_export_never_replaces_what_is_not_a_regular_file(
    data: Path, family: Family, tmp_path: Path, kind: str
) -> None:
    target, kept = tmp_path / "target", tmp_path / "kept"
    reader = None
    match kind:
        case "device":
            os.mknod(target, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        case "pipe":
            os.mkfifo(target)
            reader = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
        case _:
            kept.write_bytes(b"")
            target.symlink_to(kept)
    before = stat.S_IFMT(target.lstat().st_mode)
    done = tk(data, "session", "export", family.child.id, "--output", str(target))
    assert (done.code, stat.S_IFMT(target.lstat().st_mode)) == (0, before)
    if reader is not None:
        os.close(reader)


@pytest.mark.parametrize("words", [["-o"], ["--html"], ["--all", "-o"]], ids=["one", "page", "all"])
def test_an_export_goes_whole_through_a_pipe(data: Path, family: Family, tmp_path: Path, words: list[str]) -> None:
    pipe, file = tmp_path / "pipe.jsonl", tmp_path / "file.jsonl"
    os.mkfifo(pipe)
    export = ["session", "export", *([] if "--all" in words else [family.child.id]), *words]
    assert tk(data, *export, str(file)).code == 0
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen(command(*export, str(pipe)), env=environment(data), stderr=subprocess.DEVNULL) as writer:
        try:
            read = _read_to_end(reader)
            assert (read == file.read_bytes(), writer.wait(timeout=20)) == (True, 0)
        finally:
            writer.kill()
            os.close(reader)


def _read_to_end(reader: int) -> bytes:
    """What comes through a pipe until no program has it open for writing any more."""
    news, read = select.poll(), b""
    news.register(reader, select.POLLIN)
    while news.poll(20_000) and (piece := os.read(reader, 65_536)):
        read += piece
    return read


def test_a_pipe_that_no_program_uses_is_refused_at_once(data: Path, family: Family, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for words in (["export", family.child.id, "-o", str(pipe)], ["export", "--all", "-o", str(pipe)]):
        written = tk(data, "session", *words)
        assert (written.code, "is a pipe that no program reads" in written.err) == (1, True)
    read = tk(data, "session", "import", str(pipe))
    assert (read.code, "is a named pipe" in read.err) == (1, True)


def test_an_import_reads_standard_input_by_its_path(data: Path, other: Path, family: Family) -> None:
    exported = process(data, "session", "export", family.child.id).stdout
    done = process(other, "session", "import", "/dev/stdin", "--json", input=exported)
    assert json.loads(done.stdout)["items"][0]["imported"]["sessions"] == 1, done.stderr


def test_an_output_of_a_dash_is_standard_output(data: Path, family: Family) -> None:
    plain = tk(data, "session", "export", family.root.id)
    assert tk(data, "session", "export", family.root.id, "--output", "-").out == plain.out


def test_an_export_without_an_id_is_of_the_newest_root(data: Path, family: Family) -> None:
    answer = tk(data, "export")
    assert json.loads(answer.out)["info"]["id"] == family.root.id
    assert answer.err == f"Exporting {family.root.id}  Wind over the bay\n"


def test_a_page_without_a_name_is_refused_under_its_own_option(data: Path, family: Family) -> None:
    refused = tk(data, "export", family.root.id, "--html", "")
    assert (refused.code, refused.out) == (2, "")
    assert "--html needs a path, not ''" in refused.err


def test_a_page_is_written_to_standard_output(data: Path, family: Family) -> None:
    page = tk(data, "export", family.root.id, "--html", "-")
    assert (page.code, page.err) == (0, "")
    assert page.out.startswith("<!doctype html>")


def test_a_sanitized_export_says_nothing_that_was_said(data: Path, family: Family) -> None:
    assert "knots" in tk(data, "session", "export", family.root.id).out
    assert "knots" not in tk(data, "session", "export", family.root.id, "--sanitize").out


@pytest.mark.parametrize(("target", "layout"), [("all", "json"), ("all.jsonl", "json"), ("all", "tree")])
def test_every_session_goes_out_and_comes_in_again(
    data: Path, family: Family, other: Path, tmp_path: Path, target: str, layout: str
) -> None:
    place = str(tmp_path / target)
    out = tk(data, "session", "export", "--all", "--layout", layout, "--output", place, "--json")
    assert out.json == {"sessions": 3, "output": place}
    [report] = tk(other, "session", "import", place, "--json").json["items"]
    assert report["imported"] == {"sessions": 3, "messages": 3, "parts": 16}
    [again] = tk(other, "import", place, "--json").json["items"]
    assert again == {**report, "imported": report["unchanged"], "unchanged": report["imported"]}
    for one in family:
        there, here = (json.loads(tk(where, "session", "export", one.id).out) for where in (other, data))
        assert there == here


def test_one_session_may_be_exported_as_a_tree_or_into_a_folder(data: Path, family: Family, tmp_path: Path) -> None:
    tk(data, "session", "export", family.root.id, "--layout", "tree", "--output", str(tmp_path / "trees"))
    assert (tmp_path / "trees" / family.root.id / "meta.json").is_file()
    tk(data, "session", "export", family.root.id, "--output", str(tmp_path))
    assert (tmp_path / f"{family.root.id}.json").is_file()


def test_an_import_tells_a_person_what_came_of_it(data: Path, family: Family, other: Path, tmp_path: Path) -> None:
    tk(data, "session", "export", family.root.id, "--output", str(tmp_path / "wind.json"))
    said = tk(other, "session", "import", str(tmp_path / "wind.json")).out
    assert said.splitlines() == [
        f"Source    {tmp_path / 'wind.json'}",
        "Imported  1 session, 3 messages, 16 parts",
    ]


def test_what_cannot_be_read_is_named_and_the_rest_comes_in(data: Path, other: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    made = tk(data, "session", "create", "--json").json
    tk(data, "session", "export", made["id"], "--output", str(folder))
    (folder / "broken.json").write_text("{")
    answer = tk(other, "session", "import", str(folder))
    assert answer.code == 1
    assert "Imported    1 session," in answer.out
    assert "broken.json" in answer.out


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["session", "export", "x", "--all", "--output", "y"], "not both", 2),
        (["session", "export", "--all"], "--output DIR", 2),
        (["session", "export", "x", "--layout", "tree"], "--output DIR", 2),
        (["session", "export", "nobody"], "there is no session", 1),
        (["session", "export"], "no session to export", 1),
        (["session", "export", "--all", "--output", "all.json"], "would be a directory", 2),
        (["session", "export", "--output", ""], "--output needs a path", 2),
        (["session", "import"], "give a file", 2),
        (["session", "import", "/no/such/file.json"], "there is nothing at", 1),
        (["session", "import", "/dev/null"], "/dev/null", 1),
        (["import", "opencode", "/no/such/place"], "there is nothing at", 1),
        (["import", "opencode", "/dev"], "holds no history of opencode", 1),
    ],
)
def test_what_makes_no_sense_is_refused(data: Path, words: list[str], said: str, code: int) -> None:
    answer = tk(data, *words)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


def test_an_export_into_a_folder_that_is_not_there_is_refused(data: Path, family: Family, tmp_path: Path) -> None:
    answer = tk(data, "session", "export", family.root.id, "--output", str(tmp_path / "no" / "wind.json"))
    assert answer.code == 1
    assert "make it first" in answer.err


def test_an_unknown_layout_is_a_usage_error(data: Path) -> None:
    assert tk(data, "session", "export", "--layout", "book").code == 2


def test_opencode_is_imported_from_its_tree_and_again_without_change(data: Path, tmp_path: Path) -> None:
    storage = tmp_path / "opencode" / "storage"
    info = {
        "id": "ses_00000000000aTREETREETREETR",
        "version": "1.0.0",
        "projectID": "global",
        "directory": "/bay",
        "title": "From the tree",
        "time": {"created": 1, "updated": 2},
    }
    write(storage / "session" / "global" / f"{info['id']}.json", info)
    write(storage / "migration", 2)
    report = tk(data, "import", "opencode", str(storage.parent), "--json")
    assert (report.code, report.json["imported"]) == (0, {"sessions": 1, "messages": 0, "parts": 0})
    assert tk(data, "session", "show", "ses_00000000000a", "--json").json["title"] == "From the tree"
    again = tk(data, "import", "opencode", str(storage.parent)).out
    assert "Imported   0 sessions, 0 messages, 0 parts\nUnchanged  1 session, 0 messages, 0 parts" in again


def test_a_database_that_is_not_opencodes_is_refused(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE x (y)")
    answer = tk(data, "import", "opencode", str(path))
    assert answer.code == 1
    assert str(path) in answer.err


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("target", ["backup.jsonl", "folder", "tree"])
def test_an_export_of_a_store_that_is_not_there_leaves_a_backup_alone(
    data: Path, tmp_path: Path, family: Family, target: str
) -> None:
    words: tuple[str, ...] = ("session", "export", "--all", "--output", str(tmp_path / target))
    words = (*words, "--layout", "tree") if target == "tree" else words
    assert tk(data, *words).code == 0
    before = contents(tmp_path / target)
    mistyped = tmp_path / "mistyped"
    for answer in (tk(mistyped, *words), tk(data, *words, "--store", f"sqlite:{mistyped / 'x.db'}")):
        assert answer.code == 1
        assert "there is no store" in answer.err
    assert contents(tmp_path / target) == before
    assert not mistyped.exists()


def contents(target: Path) -> dict[Path, bytes]:
    files = [target] if target.is_file() else target.rglob("*.json")
    return {file: file.read_bytes() for file in files}


def test_an_export_without_a_session_replaces_no_file(data: Path, tmp_path: Path, family: Family) -> None:
    target = tmp_path / "backup.jsonl"
    assert tk(data, "session", "export", "--all", "--output", str(target)).code == 0
    before = target.read_bytes()
    empty = tmp_path / "empty"
    made = tk(empty, "session", "create", "--json").json["id"]
    assert tk(empty, "session", "delete", made, "--yes").code == 0
    answer = tk(empty, "session", "export", "--all", "--output", str(target))
    assert (answer.code, target.read_bytes()) == (1, before)
    assert "holds no session" in answer.err
    new = tmp_path / "new.jsonl"
    assert tk(empty, "session", "export", "--all", "--output", str(new)).code == 0
    assert new.read_bytes() == b""


def test_messages_whose_ids_another_session_has_are_told_and_end_with_1(
    data: Path, other: Path, tmp_path: Path, family: Family
) -> None:
    target = tmp_path / "one.json"
    assert tk(data, "session", "export", family.root.id, "--output", str(target)).code == 0
    target.write_bytes(target.read_bytes().replace(family.root.id.encode(), b"ses_another0000000000000000000"))
    answer = tk(data, "session", "import", str(target), "--json")
    [report] = answer.json["items"]
    assert (answer.code, report["imported"]["parts"]) == (1, 0)
    assert {one["reason"] for one in report["conflicts"]} == {TAKEN}
    assert tk(other, "session", "import", str(target)).code == 0


@pytest.mark.parametrize("layout", ["json", "tree"])
def test_what_an_export_makes_is_for_its_owner_alone(data: Path, tmp_path: Path, family: Family, layout: str) -> None:
    target = tmp_path / "new"
    mask = os.umask(0o022)
    try:
        answer = tk(data, "session", "export", "--all", "--layout", layout, "--output", str(target))
    finally:
        os.umask(mask)
    assert answer.code == 0
    for path in (target, *target.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_pipe_in_an_exported_tree_is_named_and_not_waited_for(
    data: Path, other: Path, tmp_path: Path, family: Family
) -> None:
    target = tmp_path / "tree"
    tk(data, "session", "export", "--all", "--layout", "tree", "--output", str(target))
    file = min((target / family.root.id / "message").iterdir())
    file.unlink()
    os.mkfifo(file)
    answer = tk(other, "session", "import", str(target), "--json")
    [report] = answer.json["items"]
    assert (answer.code, [one["place"] for one in report["unreadable"]]) == (1, [str(file)])
