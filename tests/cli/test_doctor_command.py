"""The commands about the store itself."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from cli_store import Family, api, tk

from turnkeeper.model.value import encode


def damage(data: Path, session_id: str, seq: int) -> None:
    """Change one letter of an event."""
    with closing(sqlite3.connect(data / "turnkeeper.db")) as connection, connection:
        changed = connection.execute(
            "UPDATE entry SET body = replace(CAST(body AS TEXT), 'gust', 'dust')"
            " WHERE id & 4294967295 = ? AND id >> 32 = (SELECT id FROM log WHERE name = ?)",
            (seq, session_id),
        )
        assert changed.rowcount == 1


def test_a_sound_store_is_told_to_be_sound(data: Path, family: Family) -> None:
    found = api(data, lambda opened: opened.doctor())
    answer = tk(data, "doctor", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json.keys() >= {"ok", "sessions", "messages", "parts", "events", "problems"}
    assert {**answer.json, "bytes": 0} == {**decoded(encode(found)), "bytes": 0}
    assert (answer.json["ok"], answer.json["sessions"], answer.json["messages"]) == (True, 3, 3)
    text = tk(data, "doctor").out
    assert "Checked  3 sessions, 3 messages, 16 parts, 8 events\n" in text
    assert "Verdict  ✓ sound\n" in text


def test_a_damaged_event_is_named_and_the_command_fails(data: Path, family: Family) -> None:
    damage(data, family.root.id, 2)
    answer = tk(data, "doctor", "--json")
    assert (answer.code, answer.json["ok"]) == (1, False)
    assert (family.root.id, 2) in {(one["sessionID"], one["seq"]) for one in answer.json["problems"]}
    text = tk(data, "doctor")
    assert text.code == 1
    assert f"the first bad event is 2 of {family.root.id}" in text.out


def test_fix_writes_derived_documents_again_and_the_command_succeeds(data: Path, family: Family) -> None:
    with closing(sqlite3.connect(data / "turnkeeper.db")) as connection, connection:
        gone = connection.execute("DELETE FROM document WHERE key LIKE 'message/%'")
        assert gone.rowcount == 3
    assert tk(data, "doctor").code == 1
    fixed = tk(data, "doctor", "--fix")
    assert fixed.code == 0
    assert "fixed" in fixed.out
    assert tk(data, "doctor", "--json").json["problems"] == []
    assert len(tk(data, "session", "messages", family.root.id, "--json").json["items"]) == 2


def test_a_store_that_cannot_be_opened_is_a_finding(data: Path) -> None:
    (data / "turnkeeper.db").write_bytes(b"this was a database once " * 100)
    answer = tk(data, "doctor", "--json")
    assert (answer.code, answer.json["ok"]) == (1, False)
    [problem] = answer.json["problems"]
    assert (problem["kind"], problem["seq"]) == ("medium", None)


def test_the_path_is_where_the_store_is(data: Path) -> None:
    assert tk(data, "db", "path").out == f"{data / 'turnkeeper.db'}\n"
    before = tk(data, "db", "path", "--json").json
    assert before == {"store": f"sqlite:{data}/turnkeeper.db", "path": f"{data}/turnkeeper.db", "exists": False}
    tk(data, "session", "create")
    assert tk(data, "db", "path", "--json").json["exists"] is True


def test_a_store_of_files_is_used_when_it_is_named(data: Path) -> None:
    made = tk(data, "session", "create", "--store", f"files:{data / 'tree'}", "--json").json
    listed = tk(data, "session", "list", "--store", f"files:{data / 'tree'}", "--json").json
    assert listed["items"] == [made]
    assert (data / "tree").is_dir()
    assert not (data / "turnkeeper.db").exists()


def decoded(body: bytes) -> dict[str, object]:
    return dict(json.loads(body))


def test_a_data_directory_without_a_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    answer = tk(tmp_path / "mistyped", "doctor")
    assert (answer.code, answer.out) == (1, "")
    assert "there is no store" in answer.err
    listed = tk(tmp_path / "mistyped", "session", "list")
    assert (listed.code, "There is no store" in listed.err) == (0, True)
    assert not (tmp_path / "mistyped").exists()


def test_a_store_that_was_truncated_to_nothing_is_not_sound(data: Path) -> None:
    tk(data, "session", "create")
    (data / "turnkeeper.db").write_bytes(b"")
    for words in (("doctor",), ("doctor", "--fix")):
        answer = tk(data, *words)
        assert (answer.code, "is an empty file" in answer.out) == (1, True)
    listed = tk(data, "session", "list")
    assert "is an empty file; if it had sessions, restore a copy" in listed.err
    assert tk(data, "session", "export", "--all", "--output", str(data / "all.jsonl")).code == 1
    assert (data / "turnkeeper.db").read_bytes() == b""


def test_a_store_that_cannot_be_reached_is_not_called_damaged(data: Path) -> None:
    answer = tk(data, "doctor", "--store", "postgresql://me@127.0.0.1:1/none")
    assert (answer.code, "not checked" in answer.out, "✗ damaged" in answer.out) == (1, True, False)
    assert "the server cannot be reached" in answer.out
