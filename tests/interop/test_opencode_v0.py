"""Old trees become new ones: built here as the old programs wrote them, and migrated once, whole, whatever happens."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from confined import unprivileged

import turnkeeper
from turnkeeper.interop.opencode_v0.messages import UnknownShape, current
from turnkeeper.interop.opencode_v0.migrate import MigrationReport, migrate

NOW = 1_700_000_000_000
ROOT = "5b0fc27fd1de8d7c1e6a8dd0ffb2bdd6f05dd1a0"


def write(file: Path, value: Any) -> None:
    """As the old programs did: formatted, without a line break at the end."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=2))


def documents(data: Path) -> dict[str, Any]:
    """Every document of the store."""
    store = data / "storage"
    files = (file for file in store.rglob("*.json") if ".store" not in file.parts)
    return {str(file.relative_to(store))[: -len(".json")]: json.loads(file.read_text()) for file in files}


def snapshot(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(file): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


async def run(data: Path, **options: Any) -> MigrationReport:
    """Migrate as of a fixed moment, with a fixed answer of git."""
    settings: dict[str, Any] = {"root_commits": lambda worktree: ["f" * 40, ROOT], "now_ms": lambda: NOW}
    return await migrate(data / "storage", **(settings | options))


TEXT = {"type": "text", "text": "hello"}
SESSION = {"id": "ses_1", "title": "First", "version": "0.1.190", "time": {"created": 10, "updated": 20}}


def a_user_of_metadata(session: str = "ses_1") -> dict[str, Any]:
    """A user message of the first shape."""
    metadata = {"sessionID": session, "time": {"created": 1000}, "tool": {}}
    file = {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:,x"}
    return {"id": "msg_1", "role": "user", "parts": [TEXT, file], "metadata": metadata}


def an_assistant_of_metadata(worktree: Path, session: str = "ses_1") -> dict[str, Any]:
    """An assistant message of the first shape, with a tool call in each state."""
    calls = [
        {"state": "partial-call", "toolCallId": "call_1", "toolName": "read", "args": {}},
        {"state": "call", "toolCallId": "call_2", "toolName": "read", "args": {"path": "a"}},
        {"state": "result", "toolCallId": "call_3", "toolName": "bash", "args": {"command": "ls"}, "result": "a\nb"},
    ]
    tool = {"call_3": {"title": "List", "time": {"start": 2001, "end": 2002}, "exit": 0}}
    assistant = {
        "system": ["be kind"],
        "modelID": "m",
        "providerID": "p",
        "path": {"cwd": str(worktree), "root": str(worktree)},
        "cost": 0.5,
        "tokens": {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    }
    metadata = {
        "sessionID": session,
        "time": {"created": 2000, "completed": 2100},
        "assistant": assistant,
        "error": {"name": "UnknownError", "data": {"message": "oh"}},
        "tool": tool,
    }
    parts = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm"},
        TEXT,
        *({"type": "tool-invocation", "toolInvocation": call} for call in calls),
        {"type": "source-url", "url": "http://x"},
    ]
    return {"id": "msg_2", "role": "assistant", "parts": parts, "metadata": metadata}


def a_project(data: Path, name: str, worktree: Path) -> Path:
    """An epoch-0 tree with a message at each of its own three levels, and all the rest of a session."""
    worktree.mkdir(parents=True, exist_ok=True)
    project = data / "project" / name
    write(project / "app.json", {"initialized": 5})
    (project / "snapshot").mkdir()
    session = project / "storage" / "session"
    (session.parent).mkdir(parents=True)
    (session.parent / "migration").write_text("1")
    write(session / "info/ses_1.json", SESSION)
    write(session / "share/ses_1.json", {"secret": "s", "url": "https://share/1"})
    write(session / "message/ses_1/msg_1.json", a_user_of_metadata())
    write(session / "message/ses_1/msg_2.json", an_assistant_of_metadata(worktree))
    tool = {"id": "call_9", "type": "tool", "tool": "bash", "state": {"status": "pending"}}
    embedded = {
        "id": "msg_3",
        "sessionID": "ses_1",
        "role": "assistant",
        "time": {"created": 3000},
        "path": {"cwd": "/", "root": str(worktree)},
        "parts": [{"id": "prt_old", **TEXT}, tool],
    }
    write(session / "message/ses_1/msg_3.json", embedded)
    separate = {"id": "msg_4", "sessionID": "ses_1", "role": "assistant", "time": {"created": 4000}, "mode": "plan"}
    write(session / "message/ses_1/msg_4.json", separate)
    part = {"id": "prt_4", "sessionID": "ses_1", "messageID": "msg_4", **TEXT}
    write(session / "part/ses_1/msg_4/prt_4.json", part)
    return project


async def test_a_new_store_is_marked_and_holds_nothing(tmp_path: Path) -> None:
    report = await run(tmp_path)
    assert report == MigrationReport(0, 2)
    assert (tmp_path / "storage/migration").read_text() == "2"
    assert await run(tmp_path) == MigrationReport(2, 2)


async def test_a_store_that_was_opened_has_the_marker_of_the_newest_form(tmp_path: Path) -> None:
    async with turnkeeper.open(f"files:{tmp_path / 'new'}") as tk:
        assert (await tk.doctor()).ok
    assert (tmp_path / "new/migration").read_text() == "2"


async def test_sessions_of_a_project_tree_are_in_a_store_that_is_made_beside_it(tmp_path: Path) -> None:
    a_project(tmp_path, "global", tmp_path)
    async with turnkeeper.open(f"files:{tmp_path / 'storage'}") as tk:
        assert [session.id for session in (await tk.list(archived=True, roots=False)).items] == ["ses_1"]


async def test_a_project_tree_of_epoch_0_becomes_one_project_of_one_tree(tmp_path: Path) -> None:
    worktree = tmp_path / "work"
    project = a_project(tmp_path, "work", worktree)
    originals = snapshot(project)
    report = await run(tmp_path)
    assert (report.before, report.after, report.failures, report.skipped) == (0, 2, [], [])
    assert report.written == {"project": 1, "session": 1, "share": 1, "message": 4, "part": 10}
    assert report.dropped_parts == 2
    assert snapshot(project) == originals

    found = documents(tmp_path)
    assert found[f"project/{ROOT}"] == {
        "id": ROOT,
        "vcs": "git",
        "worktree": str(worktree),
        "time": {"created": NOW, "initialized": NOW},
    }
    assert found[f"session/{ROOT}/ses_1"] == SESSION
    assert found["share/ses_1"] == {"secret": "s", "url": "https://share/1"}
    assert found["message/ses_1/msg_1"] == {
        "id": "msg_1",
        "sessionID": "ses_1",
        "role": "user",
        "time": {"created": 1000},
    }
    assert found["message/ses_1/msg_2"] == {
        "id": "msg_2",
        "sessionID": "ses_1",
        "role": "assistant",
        "time": {"created": 2000, "completed": 2100},
        "system": ["be kind"],
        "modelID": "m",
        "providerID": "p",
        "path": {"cwd": str(worktree), "root": str(worktree)},
        "cost": 0.5,
        "tokens": {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        "error": {"name": "UnknownError", "data": {"message": "oh"}},
        "mode": "build",
    }
    assert found["message/ses_1/msg_3"] == {
        "id": "msg_3",
        "sessionID": "ses_1",
        "role": "assistant",
        "time": {"created": 3000},
        "path": {"cwd": "/", "root": str(worktree)},
        "mode": "build",
    }
    assert found["message/ses_1/msg_4"]["mode"] == "plan"


async def test_parts_of_epoch_0_become_documents_in_their_order(tmp_path: Path) -> None:
    a_project(tmp_path, "work", tmp_path / "work")
    await run(tmp_path)
    found = documents(tmp_path)

    def parts(message: str) -> list[dict[str, Any]]:
        keys = sorted(key for key in found if key.startswith(f"part/{message}/"))
        for key in keys:
            assert found[key]["id"] == key.rpartition("/")[2]
            assert (found[key]["sessionID"], found[key]["messageID"]) == ("ses_1", message)
        own = ("id", "sessionID", "messageID")
        return [{name: value for name, value in found[key].items() if name not in own} for key in keys]

    assert parts("msg_1") == [TEXT, {"type": "file", "mime": "image/png", "filename": "a.png", "url": "data:,x"}]
    assert parts("msg_2") == [
        {"type": "step-start"},
        TEXT,
        {"type": "tool", "callID": "call_1", "tool": "read", "state": {"status": "pending"}},
        {
            "type": "tool",
            "callID": "call_2",
            "tool": "read",
            "state": {"status": "running", "input": {"path": "a"}, "time": {"start": 2000}},
        },
        {
            "type": "tool",
            "callID": "call_3",
            "tool": "bash",
            "state": {
                "status": "completed",
                "input": {"command": "ls"},
                "output": "a\nb",
                "title": "List",
                "time": {"start": 2001, "end": 2002},
                "metadata": {"exit": 0},
            },
        },
    ]
    assert parts("msg_3") == [
        TEXT,
        {"type": "tool", "tool": "bash", "state": {"status": "pending"}, "callID": "call_9"},
    ]
    assert parts("msg_4") == [TEXT]


async def test_sessions_outside_any_repository_are_migrated_too(tmp_path: Path) -> None:
    a_project(tmp_path, "global", tmp_path / "gone")
    await run(tmp_path, root_commits=lambda worktree: [])
    found = documents(tmp_path)
    assert found["project/global"] == {
        "id": "global",
        "worktree": "/",
        "time": {"created": NOW, "initialized": NOW},
    }
    assert found["session/global/ses_1"] == SESSION
    assert found["share/ses_1"] == {"secret": "s", "url": "https://share/1"}


@pytest.mark.parametrize("why", ["is not there", "has no commits", "none of its messages"])
async def test_a_project_that_cannot_be_told_is_skipped_with_its_reason_or_kept_if_asked(
    tmp_path: Path, why: str
) -> None:
    project = a_project(tmp_path, "work", tmp_path / "work")
    commits = [] if why == "has no commits" else [ROOT]
    if why == "is not there":
        (tmp_path / "work").rmdir()
    if why == "none of its messages":
        for name in ("msg_2", "msg_3"):
            (project / f"storage/session/message/ses_1/{name}.json").unlink()
    report = await run(tmp_path, root_commits=lambda worktree: commits)
    assert len(report.skipped) == 1
    assert str(project) in report.skipped[0]
    assert why in report.skipped[0]
    assert documents(tmp_path) == {}
    (tmp_path / "storage/migration").unlink()
    await run(tmp_path, root_commits=lambda worktree: commits, keep_unresolved=True)
    assert documents(tmp_path)["session/global/ses_1"] == SESSION


def test_a_project_whose_worktree_may_not_be_entered_stops_no_other(tmp_path: Path) -> None:
    a_project(tmp_path, "work", tmp_path / "closed/work")
    a_project(tmp_path, "global", tmp_path / "gone")
    (tmp_path / "closed").chmod(0)
    report = unprivileged(lambda: anyio.run(run, tmp_path))
    (tmp_path / "closed").chmod(0o700)
    assert [one.rpartition(": ")[2] for one in report.skipped] == [f"its worktree {tmp_path}/closed/work is not there"]
    assert documents(tmp_path)["session/global/ses_1"] == SESSION


async def test_broken_files_are_reported_and_stop_nothing(tmp_path: Path) -> None:
    project = a_project(tmp_path, "work", tmp_path / "work")
    messages = project / "storage/session/message/ses_1"
    (messages / "msg_0.json").write_text('{"id": "msg_0", ')
    write(messages / "msg_5.json", {**a_user_of_metadata(), "parts": [{"type": "hologram"}]})
    (project / "storage/session/info/ses_2.json").write_text("")
    report = await run(tmp_path)
    told = report.skipped
    assert report.after == 2
    assert [name for name in ("msg_0", "msg_5", "ses_2") if any(name in line for line in told)] == [
        "msg_0",
        "msg_5",
        "ses_2",
    ]
    assert len(told) == 3
    assert report.written["message"] == 4


async def test_the_root_commit_is_asked_of_git(tmp_path: Path) -> None:
    worktree = tmp_path / "work"
    a_project(tmp_path, "work", worktree)
    identity = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "root"]):
        subprocess.run(["git", *arguments], cwd=worktree, env=os.environ | identity, check=True)
    command = ["git", "rev-parse", "HEAD"]
    root = subprocess.run(command, cwd=worktree, capture_output=True, text=True, check=True).stdout.strip()
    await migrate(tmp_path / "storage")
    assert documents(tmp_path)[f"session/{root}/ses_1"] == SESSION


async def test_only_a_directory_called_storage_looks_for_projects_beside_it(tmp_path: Path) -> None:
    a_project(tmp_path, "global", tmp_path)
    await migrate(tmp_path / "elsewhere")
    assert list((tmp_path / "elsewhere").rglob("*.json")) == []
    report = await migrate(tmp_path / "other", project_dir=tmp_path / "project")
    assert report.written["session"] == 1


# Step 2.


def a_tree_of_v1(data: Path, diffs: list[Any], **summary: Any) -> dict[str, Any]:
    """A tree at the first level, with one session that holds its diffs."""
    session = {"id": "ses_1", "projectID": ROOT, "summary": {**summary, "diffs": diffs}, "title": "T"}
    write(data / f"storage/session/{ROOT}/ses_1.json", session)
    write(data / f"storage/session/{ROOT}/ses_2.json", {"id": "ses_2", "projectID": ROOT, "title": "none"})
    (data / "storage/migration").write_text("1")
    return session


DIFFS = [
    {"file": "a", "before": "", "after": "x", "additions": 3, "deletions": 1},
    {"file": "b", "before": "y", "after": "", "additions": 0, "deletions": 4},
]


@pytest.mark.parametrize(("held", "files"), [({}, 2), ({"files": 7}, 7)])
async def test_diffs_are_extracted_and_the_counts_stay(tmp_path: Path, held: dict[str, int], files: int) -> None:
    session = a_tree_of_v1(tmp_path, DIFFS, additions=99, **held)
    report = await run(tmp_path)
    assert (report.before, report.after, report.skipped, report.failures) == (1, 2, [], [])
    found = documents(tmp_path)
    assert found["session_diff/ses_1"] == DIFFS
    assert found[f"session/{ROOT}/ses_1"] == {
        **session,
        "summary": {"additions": 3, "deletions": 5, "files": files},
    }
    assert found[f"session/{ROOT}/ses_2"] == {"id": "ses_2", "projectID": ROOT, "title": "none"}
    assert len(found) == 3


async def test_diffs_that_cannot_be_counted_or_would_be_lost_stay_where_they_are(tmp_path: Path) -> None:
    session = a_tree_of_v1(tmp_path, [{"file": "a"}])
    other = {"id": "ses_3", "projectID": ROOT, "summary": {"diffs": DIFFS}}
    write(tmp_path / f"storage/session/{ROOT}/ses_3.json", other)
    write(tmp_path / "storage/session_diff/ses_3.json", [{"file": "newer", "additions": 1, "deletions": 1}])
    (tmp_path / f"storage/session/{ROOT}/ses_4.json").write_text("{")
    report = await run(tmp_path)
    assert report.after == 2
    assert [line.partition(" ")[0] for line in report.skipped] == [
        f"session/{ROOT}/ses_1",
        f"session/{ROOT}/ses_3",
        f"session/{ROOT}/ses_4",
    ]
    (tmp_path / f"storage/session/{ROOT}/ses_4.json").unlink()
    found = documents(tmp_path)
    assert found[f"session/{ROOT}/ses_1"] == session
    assert found[f"session/{ROOT}/ses_3"] == other
    assert found["session_diff/ses_3"] == [{"file": "newer", "additions": 1, "deletions": 1}]


@pytest.mark.parametrize(
    ("marker", "runs"), [(None, 2), ("", 2), ("garbage", 2), ("0", 2), ("1\n", 1), (" 1x", 1), ("2", 0), ("7", 0)]
)
async def test_the_marker_says_which_steps_are_left(tmp_path: Path, marker: str | None, runs: int) -> None:
    a_tree_of_v1(tmp_path, DIFFS)
    (tmp_path / "storage/migration").unlink()
    if marker is not None:
        (tmp_path / "storage/migration").write_text(marker)
    report = await run(tmp_path)
    assert report.after - report.before == runs
    assert ("session_diff/ses_1" in documents(tmp_path)) == (runs > 0)


# When it does not go well.


async def test_a_failing_step_is_reported_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    a_project(tmp_path, "work", tmp_path / "work")
    session = a_tree_of_v1(tmp_path, DIFFS)
    (tmp_path / "storage/migration").write_text("0")

    def fail(worktree: Path) -> list[str]:
        raise RuntimeError("git exploded")

    report = await run(tmp_path, root_commits=fail)
    assert (report.before, report.after) == (0, 0)
    assert len(report.failures) == 1
    assert "migration 1 stopped" in report.failures[0]
    assert "git exploded" in report.failures[0]
    assert (tmp_path / "storage/migration").read_text() == "0"
    assert documents(tmp_path)[f"session/{ROOT}/ses_1"] == session
    again = await run(tmp_path)
    assert (again.after, again.failures) == (2, [])
    assert documents(tmp_path)["session_diff/ses_1"] == DIFFS


async def test_a_store_opens_in_spite_of_a_failing_step_and_doctor_says_so(tmp_path: Path) -> None:
    project = a_project(tmp_path, "global", tmp_path)
    a_tree_of_v1(tmp_path, DIFFS)
    (tmp_path / f"storage/session/{ROOT}/ses_1.json").unlink()
    (tmp_path / "storage/migration").unlink()
    obstacle = project / "storage/session/info/ses_3.json"
    obstacle.mkdir()
    store = f"files:{tmp_path / 'storage'}"
    async with turnkeeper.open(store) as tk:
        assert {session.id for session in (await tk.list(roots=False)).items} == {"ses_1", "ses_2"}
        messages = [problem.message for problem in (await tk.doctor()).problems if problem.kind == "medium"]
    assert ["its migration did not come to its end" in message for message in messages] == [True]
    assert (tmp_path / "storage/migration").read_text() == "0"
    obstacle.rmdir()
    async with turnkeeper.open(store) as tk:
        assert [problem for problem in (await tk.doctor()).problems if problem.is_damage] == []
    assert (tmp_path / "storage/migration").read_text() == "2"


async def test_what_is_already_there_is_never_overwritten_by_something_older(tmp_path: Path) -> None:
    a_project(tmp_path, "work", tmp_path / "work")
    newer = {**SESSION, "title": "renamed since"}
    write(tmp_path / f"storage/session/{ROOT}/ses_1.json", newer)
    report = await run(tmp_path)
    assert documents(tmp_path)[f"session/{ROOT}/ses_1"] == newer
    assert ["already there" in line for line in report.skipped] == [True]


CHILD = """
import asyncio, sys
from pathlib import Path
from turnkeeper.interop.opencode_v0.migrate import migrate

report = asyncio.run(migrate(Path(sys.argv[1]), root_commits=lambda worktree: [sys.argv[2]], now_ms=lambda: 7))
sys.stdout.write(str(report.after - report.before))
"""


def child(data: Path, crash: str | None = None) -> "subprocess.Popen[str]":
    environment = os.environ | ({"TURNKEEPER_CRASH": crash} if crash else {})
    command = [sys.executable, "-c", CHILD, str(data / "storage"), ROOT]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def a_full_tree(data: Path) -> None:
    """Something to do for both steps, in more than one batch."""
    a_project(data, "work", data / "work")
    a_tree_of_v1(data, DIFFS)
    (data / f"storage/session/{ROOT}/ses_1.json").rename(data / f"storage/session/{ROOT}/ses_9.json")
    (data / "storage/migration").unlink()


@pytest.mark.parametrize(
    "crash",
    [
        "files.staged:1",
        "files.intent-written:2",
        "files.intent-synced:2",
        "files.document-placed:3",
        "files.document-placed:9",
        "files.placed:2",
        "files.emptied:1",
        "files.emptied:2",
        "files.emptied:3",
    ],
)
async def test_a_killed_migration_is_brought_to_its_end_by_the_next_run(tmp_path: Path, crash: str) -> None:
    expected = tmp_path / "expected"
    a_full_tree(expected)
    with child(expected) as process:
        assert process.wait(60) == 0
    killed = tmp_path / "killed"
    a_full_tree(killed)
    with child(killed, crash) as process:
        assert process.wait(60) == 137
    with child(killed) as process:
        assert process.wait(60) == 0
    assert documents(killed) == json.loads(json.dumps(documents(expected)).replace(str(expected), str(killed)))
    assert (killed / "storage/migration").read_text() == "2"


async def test_two_processes_that_migrate_at_once_end_with_one_migrated_tree(tmp_path: Path) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for data in (alone, shared):
        a_full_tree(data)
    with child(alone) as process:
        assert process.wait(60) == 0
    with child(shared) as first, child(shared) as second:
        assert [process.wait(60) for process in (first, second)] == [0, 0]
    assert documents(shared) == json.loads(json.dumps(documents(alone)).replace(str(alone), str(shared)))
    assert (shared / "storage/migration").read_text() == "2"


@pytest.mark.parametrize(
    "broken",
    [
        lambda message: message.pop("id"),
        lambda message: message["metadata"].pop("sessionID"),
        lambda message: message["metadata"].pop("time"),
        lambda message: message.update(role="robot"),
        lambda message: message["parts"].append({"type": "tool-invocation", "toolInvocation": {}}),
    ],
)
def test_a_message_of_no_known_shape_is_refused(broken: Callable[[dict[str, Any]], object]) -> None:
    message = a_user_of_metadata()
    current(message)
    broken(message)
    with pytest.raises(UnknownShape):
        current(message)


def test_part_ids_are_the_same_each_time_and_ascend() -> None:
    message = {**a_user_of_metadata(), "parts": [TEXT] * 50}
    ids = [part["id"] for part in current(message)[1]]
    assert ids == [part["id"] for part in current(message)[1]]
    assert ids == sorted(ids)
    assert len(set(ids)) == 50
    assert {len(part_id) for part_id in ids} == {30}
