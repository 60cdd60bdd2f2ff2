"""A source that has changed since: what is new is added, what was finished since is taken, what differs stays ours."""

import copy
import json
from pathlib import Path
from typing import Any

from opencode_files import COMPACTED, EXPORTS, MAIN, change, database, dump, exported, imported, rows

from turnkeeper.app import Turnkeeper
from turnkeeper.interop.report import NONE, Counts
from turnkeeper.model.parts import TextPart
from turnkeeper.model.todo import Todo

EXPORT = json.loads(EXPORTS[0].read_text())
SESSION = EXPORT["info"]["id"]


def usage_of(export: Any) -> Any:
    return export["info"]["tokens"]


async def test_new_messages_and_parts_are_added_with_what_they_cost(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "old")
    change(
        path,
        "PRAGMA foreign_keys = on",
        f"DELETE FROM message WHERE id IN (SELECT id FROM message WHERE session_id = '{MAIN}'"
        " ORDER BY time_created DESC LIMIT 5)",
        f"UPDATE session SET cost = 0, tokens_input = 0, tokens_output = 0 WHERE id = '{MAIN}'",
    )
    [(cost, given, output)] = rows(
        path,
        "SELECT sum(json_extract(data, '$.cost')), sum(json_extract(data, '$.tokens.input')),"
        f" sum(json_extract(data, '$.tokens.output')) FROM part WHERE session_id = '{MAIN}'"
        " AND json_extract(data, '$.type') = 'step-finish'",
    )
    change(
        path, f"UPDATE session SET cost = {cost}, tokens_input = {given}, tokens_output = {output} WHERE id = '{MAIN}'"
    )
    await tk.import_opencode(path)
    whole = database(tmp_path / "new")
    report = await tk.import_opencode(whole)
    assert (report.grown, report.imported.sessions, report.imported.messages) == (1, 0, 5)
    assert report.conflicts == ()
    theirs = json.loads(next(file for file in EXPORTS if MAIN in file.name).read_text())
    ours = await exported(tk, MAIN)
    assert ours["messages"] == theirs["messages"]
    assert usage_of(ours) == usage_of(theirs)
    assert round(ours["info"]["cost"], 9) == theirs["info"]["cost"]
    before = await dump(tk)
    assert (await tk.import_opencode(whole)).unchanged.sessions == 10
    assert await dump(tk) == before


async def test_what_was_unfinished_and_is_finished_now_is_brought_up_to_date(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path / "old")
    change(
        path,
        f"UPDATE message SET data = json_remove(data, '$.time.completed', '$.finish') WHERE session_id = '{MAIN}'",
        "UPDATE part SET data = json_remove(json_set(data, '$.text', ''), '$.time.end')"
        " WHERE json_extract(data, '$.type') IN ('text', 'reasoning') AND json_extract(data, '$.time.end') IS NOT NULL",
        "UPDATE part SET data = json_set(data, '$.state', json('{\"status\": \"pending\"}'))"
        " WHERE json_extract(data, '$.type') = 'tool'",
    )
    await tk.import_opencode(path)
    assert (await tk.import_opencode(database(tmp_path / "new"))).conflicts == ()
    for file in EXPORTS:
        theirs = json.loads(file.read_text())
        assert (await exported(tk, theirs["info"]["id"]))["messages"] == theirs["messages"]
    # And what is older than ours changes nothing.
    before = await dump(tk)
    report = await tk.import_opencode(path)
    assert (report.grown, report.conflicts) == (0, ())
    assert await dump(tk) == before


async def test_what_differs_stays_ours_and_is_reported(tk: Turnkeeper, tmp_path: Path) -> None:
    await imported(tk, tmp_path, EXPORT)
    before = await dump(tk)
    theirs = copy.deepcopy(EXPORT)
    theirs["info"] |= {"title": "Another", "permission": [{"permission": "bash", "pattern": "*", "action": "deny"}]}
    theirs["messages"][0]["info"]["agent"] = "plan"
    theirs["messages"][0]["parts"][0]["text"] = "other words"
    report = await imported(tk, tmp_path, theirs)
    message, part = theirs["messages"][0]["info"]["id"], theirs["messages"][0]["parts"][0]["id"]
    assert [(one.session_id, one.message_id, one.part_id) for one in report.conflicts] == [
        (SESSION, None, None),
        (SESSION, message, None),
        (SESSION, message, part),
    ]
    assert report.conflicts[0].reason == "its title, permission differs from ours, which was kept"
    assert report.unchanged == Counts(
        sessions=0,
        messages=len(EXPORT["messages"]) - 1,
        parts=sum(len(one["parts"]) for one in EXPORT["messages"]) - 1,
    )
    assert await dump(tk) == before


async def test_what_was_added_here_is_no_conflict(tk: Turnkeeper, tmp_path: Path) -> None:
    await imported(tk, tmp_path, {**EXPORT, "messages": EXPORT["messages"][:2]})
    await imported(tk, tmp_path, EXPORT)
    report = await imported(tk, tmp_path, {**EXPORT, "messages": EXPORT["messages"][:2]})
    assert (report.conflicts, report.unchanged.sessions) == ((), 1)


async def test_a_task_list_that_differs_stays_ours(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    await tk.import_opencode(path)
    await tk.set_todos(MAIN, [Todo(content="ours", status="pending", priority="low")])
    [found] = (await tk.import_opencode(path)).conflicts
    assert (found.session_id, found.reason) == (MAIN, "the task list differs from ours, which was kept")
    assert [todo.content for todo in await tk.todos(MAIN)] == ["ours"]


async def test_a_task_list_that_only_the_second_source_knows_is_taken(tk: Turnkeeper, tmp_path: Path) -> None:
    await tk.import_sessions(next(file for file in EXPORTS if MAIN in file.name))
    assert await tk.todos(MAIN) == ()
    report = await tk.import_opencode(database(tmp_path))
    assert (len(await tk.todos(MAIN)), report.conflicts) == (2, ())


async def test_a_message_id_of_another_session_is_refused(tk: Turnkeeper, tmp_path: Path) -> None:
    await imported(tk, tmp_path, EXPORT)
    before = await exported(tk, SESSION)
    other = {**EXPORT, "info": {**EXPORT["info"], "id": "ses_other"}}
    report = await imported(tk, tmp_path, other)
    assert report.imported == NONE.plus(sessions=1)
    assert len(report.conflicts) == len(EXPORT["messages"])
    assert await exported(tk, SESSION) == before


async def test_what_was_edited_here_stays_as_it_was_edited(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    await tk.import_opencode(path)
    page = await tk.messages(COMPACTED, limit=1)
    part = next(part for part in page.items[0].parts if isinstance(part, TextPart))
    await tk.update_part(part.but(text="edited here"))
    [found] = (await tk.import_opencode(path)).conflicts
    assert found.part_id == part.id
    assert await tk.store.queries.part(part.message_id, part.id) == part.but(text="edited here")
