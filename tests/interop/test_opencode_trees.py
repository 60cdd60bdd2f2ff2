"""opencode's JSON trees come in at every age, as they lie, and are left as they were."""

import shutil
from pathlib import Path

import anyio
import pytest
from confined import unprivileged
from opencode_files import a_repository, contents, database, dump, exported
from opencode_trees import DIFF, PROJECT, a_tree, an_old_project, write

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.interop.opencode_v0.migrate import migrate
from turnkeeper.interop.report import NONE, Counts, ImportReport
from turnkeeper.model.todo import Todo


async def test_a_tree_from_before_the_first_migration_comes_in(tk: Turnkeeper, tmp_path: Path) -> None:
    an_old_project(tmp_path / "data", "/home/user/weather")
    before = contents(tmp_path)
    report = await tk.import_opencode(tmp_path / "data")
    assert report.imported == Counts(sessions=1, messages=4, parts=5)
    assert (report.unreadable, [one.message_id for one in report.skipped]) == ((), ["msg_1"])
    assert contents(tmp_path) == before
    export = await exported(tk, "ses_old")
    assert export["info"]["directory"] == "/home/user/weather"
    assert export["info"]["share"] == {"url": "https://share.example/old"}
    assert (export["info"]["cost"], export["info"]["tokens"]["output"]) == (0.75, 4)
    assert [message["info"]["id"] for message in export["messages"]] == ["msg_1", "msg_2", "msg_3", "msg_4"]
    tool = export["messages"][1]["parts"][1]
    assert (tool["callID"], tool["state"]["output"], tool["state"]["metadata"]) == ("call_1", "a\nb", {"exit": 0})
    assert export["messages"][1]["info"]["system"] == ["be kind"]
    assert export["messages"][2]["parts"][0]["state"] == {"status": "pending", "input": {}, "raw": ""}
    assert [message["info"].get("mode") for message in export["messages"]] == [None, "build", "build", "plan"]


async def test_what_was_migrated_meanwhile_is_the_same_history(tk: Turnkeeper, tmp_path: Path) -> None:
    worktree = tmp_path / "weather"
    worktree.mkdir()
    an_old_project(tmp_path / "old", str(worktree))
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    await migrate(tmp_path / "new/storage", root_commits=lambda _: [PROJECT])
    await tk.import_opencode(tmp_path / "old")
    before = (await exported(tk, "ses_old"))["messages"]
    report = await tk.import_opencode(tmp_path / "new")
    assert (report.imported, report.unchanged.messages, report.unchanged.parts) == (NONE, 4, 5)
    assert (await exported(tk, "ses_old"))["messages"] == before


@pytest.mark.parametrize("marker", ["", "0", "1", "2"])
async def test_a_tree_at_every_marker_comes_in_with_its_changed_files(
    each_tk: Turnkeeper, tmp_path: Path, marker: str
) -> None:
    data = tmp_path / "data"
    is_extracted = marker == "2"
    summary = {"additions": 1, "deletions": 1, **({} if is_extracted else {"diffs": [DIFF]})}
    a_tree(data, marker, summary=summary)
    if is_extracted:
        write(data / "storage/session_diff/ses_1.json", [DIFF])
    before = contents(data)
    report = await each_tk.import_opencode(data)
    assert report.imported == Counts(sessions=1, messages=2, parts=2)
    assert contents(data) == before
    session = await each_tk.get("ses_1")
    assert (session.project_id, session.cost, session.time.updated) == (PROJECT, 0.5, 20)
    assert session.summary is not None
    assert (session.summary.additions, session.summary.files) == (1, 1)
    listed = await each_tk.diffs("ses_1") if is_extracted else session.summary.diffs
    assert listed is not None
    assert listed[0].patch == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-1\n+2\n"
    assert await each_tk.todos("ses_1") == (Todo(content="c", status="pending", priority="low", id="1"),)
    again = await dump(each_tk)
    assert (await each_tk.import_opencode(data)).unchanged.sessions == 1
    assert await dump(each_tk) == again


async def test_parts_stand_in_the_order_they_came_even_where_ids_start_again(tk: Turnkeeper, tmp_path: Path) -> None:
    a_tree(tmp_path / "data", "2")
    await tk.import_opencode(tmp_path / "data")
    parts = (await exported(tk, "ses_1"))["messages"][1]["parts"]
    assert [part["text"] for part in parts] == ["first", "second"]


async def test_the_storage_folder_itself_may_be_named(tk: Turnkeeper, tmp_path: Path) -> None:
    a_tree(tmp_path / "data", "2")
    assert (await tk.import_opencode(tmp_path / "data/storage")).imported.sessions == 1


async def test_a_session_in_database_and_tree_is_taken_from_the_database(tk: Turnkeeper, tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = database(data)
    a_tree(data, "2")
    session = "ses_e1f51fd02ffeUWS15bdbhBWfvn"
    write(data / f"storage/session/{PROJECT}/{session}.json", {"id": session, "title": "Older"})
    report = await tk.import_opencode(data)
    assert (report.imported.sessions, report.conflicts) == (11, ())
    assert path.exists()
    assert (await tk.get(session)).title == "Add wind to the forecast"


async def test_broken_files_are_named_and_the_rest_comes_in(tk: Turnkeeper, tmp_path: Path) -> None:
    data = tmp_path / "data"
    a_tree(data, "2")
    an_old_project(data, "/home/user/weather")
    storage = data / "storage"
    broken = [
        storage / f"session/{PROJECT}/ses_broken.json",
        storage / "message/ses_1/msg_broken.json",
        storage / "part/msg_b/prt_broken.json",
        storage / f"project/{PROJECT}.json",
    ]
    for file in broken:
        file.write_text("{")
    old = data / "project/home-user-weather/storage/session/message/ses_old/msg_odd.json"
    write(old, {"role": "assistant", "metadata": {"sessionID": "ses_old", "time": {"created": 1}, "assistant": 5}})
    write(storage / "message/ses_gone/msg_1.json", {})
    report = await tk.import_opencode(data)
    assert report.imported == Counts(sessions=2, messages=6, parts=7)
    assert {one.place for one in report.unreadable} == {"ses_broken", str(broken[1]), str(broken[2]), str(old)}
    assert "1 messages of a session that is not there" in {one.reason for one in report.skipped}


async def test_the_worktree_of_a_tree_tells_the_project(tk: Turnkeeper, tmp_path: Path) -> None:
    a_repository(tmp_path / "weather")
    here = await tk.create(directory=tmp_path / "weather")
    an_old_project(tmp_path / "data", str(tmp_path / "weather"))
    await tk.import_opencode(tmp_path / "data")
    assert (await tk.get("ses_old")).project_id == here.project_id != "global"


@pytest.mark.parametrize(
    ("closed", "sessions"), [("session/p_2", 1), ("session", 0), ("message/ses_1", 2), ("part/msg_1", 2)]
)
def test_a_folder_of_a_tree_that_may_not_be_listed_is_named(tmp_path: Path, closed: str, sessions: int) -> None:
    storage = tmp_path / "data/storage"
    for number in (1, 2):
        info = {"directory": "/x", "title": "t", "version": "1", "time": {"created": 1, "updated": 1}}
        write(storage / f"session/p_{number}/ses_{number}.json", info)
        message = {"role": "user", "sessionID": f"ses_{number}", "time": {"created": 1}}
        write(storage / f"message/ses_{number}/msg_{number}.json", message)
        write(storage / f"part/msg_{number}/prt_{number}.json", {"type": "text", "text": "hello"})

    async def report() -> ImportReport:
        async with turnkeeper.open("memory:", directory=tmp_path) as tk:
            return await tk.import_opencode(tmp_path / "data")

    (storage / closed).chmod(0)
    found = unprivileged(lambda: anyio.run(report))
    (storage / closed).chmod(0o700)
    named = [(one.place, one.reason) for one in found.unreadable]
    assert (named, found.imported.sessions) == (
        [(str(storage / closed), "cannot be read: Permission denied")],
        sessions,
    )
