"""opencode's database comes in whole, once, and is left as it was."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from opencode_files import (
    ABORTED,
    COMPACTED,
    EXPORTS,
    MAIN,
    SECOND,
    a_repository,
    being_written,
    change,
    contents,
    database,
    dump,
    exported,
    rows,
)

from turnkeeper.app import Turnkeeper
from turnkeeper.interop.report import NONE, Counts
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.todo import Todo
from turnkeeper.workspace.project import remote_id

NEW_SESSION = (
    "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)"
    " VALUES ('ses_new', '3ffd9795afd20cff0b442d8291606c7ac4046ea0', 'new', '/home/user/weather', 'New', '1', 9, 9)"
)
SOME_USAGE = """
    SELECT id, cost, tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write FROM session
"""


async def usage(tk: Turnkeeper) -> set[tuple[Any, ...]]:
    """What each session cost, as the database would say it."""
    found = (await tk.list(roots=False, archived=True)).items
    return {
        (s.id, s.cost, t.input, t.output, t.reasoning, t.cache.read, t.cache.write) for s in found for t in [s.tokens]
    }


async def test_the_real_database_comes_in_whole(each_tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "data")
    report = await each_tk.import_opencode(path)
    # 52 messages with 116 parts, and 3 messages of the second generation, which become 7 parts.
    assert report.imported == Counts(sessions=10, messages=52 + 3, parts=116 + 7)
    assert (report.conflicts, report.skipped, report.unreadable) == ((), (), ())
    assert await usage(each_tk) == set(rows(path, SOME_USAGE))
    assert await each_tk.todos(MAIN) == (
        Todo(content="write tests", status="in_progress", priority="medium"),
        Todo(content="document wind", status="pending", priority="medium"),
    )
    assert (await each_tk.doctor()).ok


async def test_a_second_import_changes_nothing(each_tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "data")
    await each_tk.import_opencode(path)
    before = await dump(each_tk)
    report = await each_tk.import_opencode(path)
    assert report.unchanged == Counts(sessions=10, messages=55, parts=123)
    assert (report.imported, report.grown, report.conflicts) == (NONE, 0, ())
    assert await dump(each_tk) == before


@pytest.mark.parametrize("file", EXPORTS, ids=lambda file: file.stem)
async def test_an_export_is_what_opencode_exports(tk: Turnkeeper, tmp_path: Path, file: Path) -> None:
    await tk.import_opencode(database(tmp_path / "data"))
    theirs = json.loads(file.read_text())
    assert await exported(tk, theirs["info"]["id"]) == theirs


async def test_times_and_order_are_those_of_the_source(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "data")
    await tk.import_opencode(path)
    listed = (await tk.list(roots=False, archived=True)).items
    assert [(s.id, s.time.created, s.time.updated, s.time.archived) for s in listed] == rows(
        path, "SELECT id, time_created, time_updated, time_archived FROM session ORDER BY time_updated DESC"
    )


async def test_a_database_at_rest_is_not_touched(tk: Turnkeeper, tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = database(data)
    before = contents(data)
    await tk.import_opencode(path)
    assert contents(data) == before


async def test_a_database_being_written_is_read_with_its_log_and_not_touched(tk: Turnkeeper, tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = database(data)
    with being_written(path, NEW_SESSION):
        before = contents(data)
        assert before["opencode.db-wal"]
        report = await tk.import_opencode(path)
        assert contents(data) == before
    assert report.imported.sessions == 11
    assert (await tk.get("ses_new")).title == "New"


async def test_a_log_that_a_killed_program_left_is_read_and_not_touched(tk: Turnkeeper, tmp_path: Path) -> None:
    living, data = tmp_path / "living", tmp_path / "data"
    path = database(living)
    data.mkdir()
    with being_written(path, NEW_SESSION):
        for name in ("opencode.db", "opencode.db-wal"):
            (data / name).write_bytes((living / name).read_bytes())
    before = contents(data)
    assert (await tk.import_opencode(data)).imported.sessions == 11
    assert contents(data) == before


async def test_an_interrupted_rollback_journal_is_read_and_not_touched(tk: Turnkeeper, tmp_path: Path) -> None:
    living, data = tmp_path / "living", tmp_path / "data"
    path = database(living)
    data.mkdir()
    with being_written(path) as connection:
        for statement in ("PRAGMA journal_mode = delete", "PRAGMA cache_size = 1", "PRAGMA cache_spill = 1", "BEGIN"):
            connection.execute(statement)
        connection.execute("UPDATE message SET data = '{}'")
        for name in ("opencode.db", "opencode.db-journal"):
            (data / name).write_bytes((living / name).read_bytes())
        connection.execute("ROLLBACK")
    before = contents(data)
    report = await tk.import_opencode(data / "opencode.db")
    assert (report.imported.messages, report.unreadable) == (55, ())
    assert contents(data) == before


async def test_what_is_written_while_it_is_read_comes_in_too(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "data")
    told: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, what: str) -> None:
        if not told:
            change(path, NEW_SESSION)
        told.append((done, total, what))

    report = await tk.import_opencode(path, progress=progress)
    assert report.imported == Counts(sessions=11, messages=55, parts=123)
    assert told[-1] == (11, 11, "")


async def test_progress_counts_up_to_the_number_of_sessions(tk: Turnkeeper, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    await tk.import_opencode(database(tmp_path), progress=lambda *step: told.append(step))
    assert [step[:2] for step in told] == [(done, 10) for done in range(11)]
    assert told[0][2] == MAIN


async def test_columns_and_tables_that_an_older_version_lacks_are_not_missed(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "data")
    before = set(rows(path, SOME_USAGE + f" WHERE id <> '{SECOND}'"))
    columns = ["path", "agent", "model", "cost", "metadata", "tokens_input", "tokens_output", "tokens_reasoning"]
    columns += ["tokens_cache_read", "tokens_cache_write", "time_archived", "summary_diffs"]
    tables = ["todo", "session_share", "session_message", "session_input", "project_directory", "session_context_epoch"]
    change(
        path,
        "PRAGMA foreign_keys = off",
        "DROP INDEX session_workspace_idx",
        *(f"ALTER TABLE session DROP COLUMN {column}" for column in [*columns, "workspace_id"]),
        *(f"DROP TABLE {table}" for table in tables),
    )
    report = await tk.import_opencode(path)
    assert report.imported == Counts(sessions=10, messages=52, parts=116)
    # Totals are counted from the steps, to the last bit that adding in another order leaves alone.
    assert {(one[0], round(one[1], 9), *one[2:]) for one in await usage(tk) if one[0] != SECOND} == before


async def test_unknown_columns_come_back_on_export(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    change(path, "ALTER TABLE session ADD COLUMN mood TEXT", """UPDATE session SET mood = '{"is": "good"}'""")
    await tk.import_opencode(path)
    assert (await exported(tk, COMPACTED))["info"]["mood"] == {"is": "good"}


async def test_a_broken_row_is_named_and_the_rest_comes_in(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    [(message,)] = rows(path, f"SELECT id FROM message WHERE session_id = '{COMPACTED}' ORDER BY time_created LIMIT 1")
    [(part,)] = rows(path, f"SELECT id FROM part WHERE session_id = '{MAIN}' ORDER BY id LIMIT 1")
    change(
        path,
        f"UPDATE message SET data = '{{\"role\": ' WHERE id = '{message}'",
        f"UPDATE part SET data = x'ff00' WHERE id = '{part}'",
        "UPDATE session SET permission = '{', title = x'ff' WHERE title = 'Aborted session'",
    )
    report = await tk.import_opencode(path)
    places = {one.place for one in report.unreadable}
    assert places == {f"message {message}", f"part {part}"}
    assert [one.reason for one in report.skipped] == ["its message is not there"]
    assert (await exported(tk, ABORTED))["info"]["permission"] == "{"
    assert report.imported == Counts(sessions=10, messages=55 - 1, parts=123 - 1 - 1)


async def test_messages_of_sessions_that_are_gone_are_reported(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    change(path, "PRAGMA foreign_keys = off", f"DELETE FROM session WHERE id = '{COMPACTED}'")
    report = await tk.import_opencode(path)
    lost = rows(path, f"SELECT count(*) FROM message WHERE session_id = '{COMPACTED}'")
    assert [(len(report.skipped),)] == lost
    assert {one.reason for one in report.skipped} == {"its session is not there"}


async def test_a_prompt_that_waits_to_be_promoted_is_reported_and_not_run_here(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    change(
        path,
        "INSERT INTO session_input (id, session_id, prompt, delivery, admitted_seq, time_created)"
        f" VALUES ('msg_waits', '{SECOND}', '{{\"text\": \"go\"}}', 'queue', 99, 1)",
    )
    [found] = (await tk.import_opencode(path)).skipped
    assert (found.session_id, found.message_id) == (SECOND, "msg_waits")


async def test_shares_come_in_and_their_secrets_do_not_go_out(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    change(
        path,
        "INSERT INTO session_share (session_id, id, secret, url, time_created, time_updated)"
        f" VALUES ('{MAIN}', 'shr', 'hush', 'https://share.example/s/1', 1, 1)",
    )
    await tk.import_opencode(path)
    session = await tk.get(MAIN)
    assert session.share is not None
    assert session.share.url == "https://share.example/s/1"
    assert session.extra == {"in": {"share": {"set": {"id": "shr", "secret": "hush"}}}}
    assert (await exported(tk, MAIN))["info"]["share"] == {"url": "https://share.example/s/1"}


async def test_the_files_of_changed_files_beside_the_database_come_in(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    folder = tmp_path / "storage/session_diff"
    folder.mkdir(parents=True)
    diff = {"file": "a.py", "before": "one\n", "after": "two\n", "additions": 1, "deletions": 1}
    (folder / f"{MAIN}.json").write_text(json.dumps([diff]))
    await tk.import_opencode(path)
    [found] = await tk.diffs(MAIN)
    assert found.patch == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-one\n+two\n"
    assert [((await tk.get(MAIN)).time.updated,)] == rows(path, f"SELECT time_updated FROM session WHERE id = '{MAIN}'")


async def test_a_data_directory_is_searched_for_databases(tk: Turnkeeper, tmp_path: Path) -> None:
    database(tmp_path).rename(tmp_path / "opencode-nightly.db")
    assert (await tk.import_opencode(tmp_path)).imported.sessions == 10


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"no database at all, but long enough to be looked at" * 20, "is not an SQLite database"),
        (b"", "it has no table 'session'"),
        (None, "there is nothing at"),
    ],
)
async def test_what_is_no_database_is_refused_and_nothing_is_written(
    tk: Turnkeeper, tmp_path: Path, body: bytes | None, reason: str
) -> None:
    path = tmp_path / "opencode.db"
    if body is not None:
        path.write_bytes(body)
    with pytest.raises((Invalid, NotFound), match=reason):
        await tk.import_opencode(path)
    assert await dump(tk) == {}


async def test_a_folder_without_history_is_refused(tk: Turnkeeper, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="holds no history of opencode"):
        await tk.import_opencode(tmp_path)


async def test_a_session_takes_the_id_that_its_project_has_here(tk: Turnkeeper, tmp_path: Path) -> None:
    repository = tmp_path / "weather"
    remote = "https://git.example/ada/weather.git"
    a_repository(repository)
    subprocess.run(["git", "-C", str(repository), "remote", "add", "origin", remote], check=True)
    path = database(tmp_path / "data")
    change(
        path,
        "PRAGMA foreign_keys = off",
        f"UPDATE session SET project_id = '{remote_id(remote)}', directory = '{repository}' WHERE id = '{MAIN}'",
    )
    await tk.import_opencode(path)
    here = await tk.create(directory=repository)
    assert (await tk.get(MAIN)).project_id == here.project_id != remote_id(remote)
    # Another project's session keeps the id it has.
    assert (await tk.get(COMPACTED)).project_id == "3ffd9795afd20cff0b442d8291606c7ac4046ea0"


async def test_a_damaged_list_of_sessions_is_refused_in_words(each_tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "data")
    body = bytearray(path.read_bytes())
    page_bytes = int.from_bytes(body[16:18])
    [(root,)] = rows(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'session'")
    body[(root - 1) * page_bytes : root * page_bytes] = b"\xff" * page_bytes
    path.write_bytes(body)
    with pytest.raises(Invalid, match=r"opencode\.db cannot be read: database disk image is malformed"):
        await each_tk.import_opencode(path)
    assert (await each_tk.list(roots=False, archived=True)).items == ()
