"""Exports: opencode's shape, many sessions at once, the tree; and all of them back in."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from opencode_files import EXPORTS, MAIN, contents, database, dump, exported, imported, second_message

from turnkeeper.app import Turnkeeper, open_store
from turnkeeper.interop.export_all import ExportLayout
from turnkeeper.interop.report import Counts
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.store import keys
from turnkeeper.store.damaged import DamagedDocument

EXPORT = json.loads(EXPORTS[0].read_text())
SESSION = EXPORT["info"]["id"]
COUNTS = Counts(sessions=10, messages=55, parts=123)


async def everything(tk: Turnkeeper) -> dict[str, Any]:
    """Every session's export."""
    return {s.id: await exported(tk, s.id) for s in (await tk.list(roots=False, archived=True)).items}


async def test_the_text_has_two_spaces_and_ends_with_a_line_break(tk: Turnkeeper, tmp_path: Path) -> None:
    await tk.import_opencode(database(tmp_path))
    empty = await tk.create(title="Nothing said")
    for session_id in (MAIN, empty.id):
        text = b"".join([piece async for piece in tk.export(session_id)]).decode()
        assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


async def test_an_unknown_session_is_refused(tk: Turnkeeper, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await exported(tk, "ses_none")
    with pytest.raises(NotFound):
        await tk.export_all(tmp_path / "out", ["ses_none"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("target", "layout"), [("out", "json"), ("out.jsonl", "json"), ("out", "tree")])
async def test_everything_that_goes_out_comes_back_the_same(
    each_tk: Turnkeeper, tmp_path: Path, target: str, layout: Any
) -> None:
    await each_tk.import_opencode(database(tmp_path / "data"))
    told: list[tuple[int, int, str]] = []
    count = await each_tk.export_all(tmp_path / target, layout=layout, progress=lambda *step: told.append(step))
    assert (count, told[0][:2], told[-1]) == (10, (0, 10), (10, 10, ""))
    async with open_store("memory:", directory=tmp_path) as other:
        report = await other.import_sessions(tmp_path / target)
        assert (report.imported, report.unreadable) == (COUNTS, ())
        assert await everything(other) == await everything(each_tk)
        before = await dump(other)
        assert (await other.import_sessions(tmp_path / target)).unchanged == COUNTS
        assert await dump(other) == before
        if layout == "tree":
            assert await other.todos(MAIN) == await each_tk.todos(MAIN)


async def test_an_export_replaces_an_older_one_whole(tk: Turnkeeper, tmp_path: Path) -> None:
    await imported(tk, tmp_path, EXPORT)
    out = tmp_path / "out"
    for layout in ("tree", "json"):
        await tk.export_all(out, layout=layout)
    (out / SESSION / "message" / "msg_gone.json").write_text("{}")
    await tk.export_all(out, layout="tree")
    names = {file.split("/")[-1] for file in contents(out / SESSION)}
    assert "msg_gone.json" not in names
    assert sorted(path.name for path in out.iterdir()) == [SESSION, f"{SESSION}.json"]
    assert [path.stat().st_mode & 0o077 for path in out.iterdir()] == [0, 0]


async def test_the_tree_is_the_one_of_the_seeds(tk: Turnkeeper, tmp_path: Path) -> None:
    await tk.import_opencode(database(tmp_path / "data"))
    await tk.export_all(tmp_path / "out", [MAIN], layout="tree")
    files = {name: json.loads(body) for name, body in contents(tmp_path / "out" / MAIN).items()}
    theirs = json.loads(next(file for file in EXPORTS if MAIN in file.name).read_text())
    order = files["meta.json"].pop("messages")
    assert files["meta.json"] == theirs["info"]
    assert [
        {"parts": files[f"message/{name}.json"].pop("parts"), "info": files[f"message/{name}.json"]} for name in order
    ] == theirs["messages"]
    assert [todo["content"] for todo in files["todo.json"]] == ["write tests", "document wind"]
    snapshots = {part["snapshot"] for one in theirs["messages"] for part in one["parts"] if "snapshot" in part}
    assert {name for name in files if name.startswith("snapshot/")} == {f"snapshot/{tree}.json" for tree in snapshots}


async def test_what_a_killed_export_left_behind_is_not_imported(tk: Turnkeeper, tmp_path: Path) -> None:
    await imported(tk, tmp_path, EXPORT)
    out = tmp_path / "out"
    await tk.export_all(out, layout="tree")
    (out / SESSION).rename(out / f".{SESSION}.x1y2")
    with pytest.raises(Invalid, match="holds no exported sessions"):
        await tk.import_sessions(out)


async def test_a_tree_needs_a_folder(tk: Turnkeeper, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="needs a folder"):
        await tk.export_all(tmp_path / "out.jsonl", layout="tree")
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match="a folder is needed"):
        await tk.export_all(tmp_path / "file")


def strings(json_value: Any) -> set[str]:
    """Every string in a JSON value that is not redacted, but not the keys."""
    match json_value:
        case str():
            return set() if json_value.startswith("[redacted:") else {json_value}
        case {"redacted": str()}:
            return set()
        case dict():
            return set().union(*map(strings, json_value.values())) if json_value else set()
        case list():
            return set().union(*map(strings, json_value)) if json_value else set()
        case _:
            return set()


async def test_a_sanitised_export_says_nothing_of_what_was_said_or_done(tk: Turnkeeper, tmp_path: Path) -> None:
    await tk.import_opencode(database(tmp_path))
    kept = {"user", "assistant", "build", "general", "compaction", "title", "fake", "fake-1", "fakeanthropic", "fake-a"}
    kept |= {"default", "1.18.33", "stop", "tool-calls", "length", "completed", "error", "running", "modified", "added"}
    kept |= {"read", "write", "edit", "bash", "task", "todowrite", "glob", "grep", "deleted", "invalid", "general"}
    kept |= {"text", "reasoning", "tool", "file", "step-start", "step-finish", "patch", "compaction", "retry", ""}
    kept |= {"deny", "unknown", "APIError", "MessageAbortedError", "ProviderAuthError", "UnknownError"}
    for session in (await tk.list(roots=False, archived=True)).items:
        said = strings(await exported(tk, session.id, sanitise=True))
        names = {word for word in said if word.startswith(("ses_", "msg_", "prt_", "call_"))}
        slugs = {session.slug, session.project_id}
        assert said - names - slugs - kept == set()


async def test_sanitising_redacts_by_kind(tk: Turnkeeper, tmp_path: Path) -> None:
    given = copy.deepcopy(EXPORT)
    given["info"]["metadata"] = {"customer": "Ada"}
    given["info"]["share"] = {"url": "https://share.example/1"}
    given["info"]["permission"] = [{"permission": "bash", "pattern": "rm *", "action": "deny"}]
    given["info"]["mood"] = "fine"
    place = {"sessionID": SESSION, "messageID": given["messages"][1]["info"]["id"]}
    given["messages"][1]["info"]["structured"] = {"secret": 1}
    given["messages"][1]["info"]["error"] = {
        "name": "APIError",
        "data": {"message": "m", "statusCode": 500, "isRetryable": True, "responseBody": "b"},
    }
    state = {"status": "error", "input": {}, "error": "oh", "time": {"start": 1, "end": 2}}
    tool = {"id": "prt_x", "type": "tool", "callID": "c", "tool": "bash", "state": state}
    patch = {"id": "prt_y", "type": "patch", "hash": "abc", "files": ["/a", "/b"]}
    blank = {"id": "prt_z", "type": "text", "text": "  "}
    given["messages"][1]["parts"] = [{**part, **place} for part in (tool, patch, blank)]
    await imported(tk, tmp_path, given)
    safe = await exported(tk, SESSION, sanitise=True)
    assert safe["info"]["title"] == f"[redacted:session-title:{SESSION}]"
    assert safe["info"]["metadata"] == {"redacted": f"session-metadata:{SESSION}"}
    assert safe["info"]["share"] == {"url": f"[redacted:session-share:{SESSION}]"}
    assert safe["info"]["permission"][0]["pattern"] == f"[redacted:permission-pattern:{SESSION}]"
    assert safe["info"]["mood"] == f"[redacted:unknown:{SESSION}]"
    assert safe["info"]["tokens"] == given["info"]["tokens"]
    info, parts = safe["messages"][1]["info"], safe["messages"][1]["parts"]
    assert info["structured"] == {"redacted": f"structured:{info['id']}"}
    assert info["error"]["data"] == {
        "message": f"[redacted:error-message:{info['id']}]",
        "statusCode": 500,
        "isRetryable": True,
        "responseBody": f"[redacted:error-body:{info['id']}]",
    }
    assert parts[0]["state"] == {**state, "error": "[redacted:tool-error:prt_x]"}
    assert parts[1]["files"] == ["[redacted:patch-file:prt_y-0]", "[redacted:patch-file:prt_y-1]"]
    assert parts[2]["text"] == "  "


async def test_system_messages_stand_where_opencode_does_not_look_and_come_back_to_their_places(
    tk: Turnkeeper, tmp_path: Path
) -> None:
    path = database(tmp_path)
    news = second_message(path, 20, "system", text="the date changed")
    second_message(path, 21, "synthetic", text="go on")
    await tk.import_opencode(path)
    [session] = [one.id for one in (await tk.list(limit=100)).items if news in await ids(tk, one.id)]
    export = await exported(tk, session)
    assert "system" not in {message["info"]["role"] for message in export["messages"]}
    assert [one["info"]["id"] for one in export["turnkeeper"]["system"]] == [news]
    before = await ids(tk, session)
    await tk.remove(session)
    await imported(tk, tmp_path, export)
    assert await ids(tk, session) == before
    assert await exported(tk, session) == export


async def ids(tk: Turnkeeper, session_id: str) -> list[str]:
    return [message.info.id for message in (await tk.messages(session_id, limit=200)).items]


@pytest.mark.parametrize("layout", ["json", "tree"])
@pytest.mark.parametrize("redact", [False, True], ids=["whole", "redacted"])
async def test_a_damaged_task_list_leaves_out_itself_and_not_its_session(
    tk: Turnkeeper, tmp_path: Path, layout: ExportLayout, redact: bool
) -> None:
    session = await tk.create(title="Tides")
    await tk.store.engine.put({keys.todo(session.id): b'{"cut', keys.diff(session.id): b'{"cut'})
    damaged: list[str] = []
    assert await tk.export_all(tmp_path / "out", layout=layout, redact=redact, damaged=damaged) == 1
    assert {name for name in damaged if name.startswith(("todo/", "session_diff/"))} == (
        {f"todo/{session.id}", f"session_diff/{session.id}"} if layout == "tree" else set()
    )
    with pytest.raises(DamagedDocument):
        await tk.export_all(tmp_path / "out", layout=layout, redact=redact)
