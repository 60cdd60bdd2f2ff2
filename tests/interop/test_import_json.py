"""What is imported from files: every shape an export has, and nothing of what is no export."""

import copy
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from confined import unprivileged
from opencode_files import EXPORTS, dump, exported, imported

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.core.blobs import MARK
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.interop.report import NONE, Counts, ImportReport
from turnkeeper.model.parts import ForeignPart
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.store import keys

EXPORT = json.loads(EXPORTS[0].read_text())
SESSION = EXPORT["info"]["id"]
COUNTS = Counts(
    sessions=1, messages=len(EXPORT["messages"]), parts=sum(len(one["parts"]) for one in EXPORT["messages"])
)


def a_session(name: str, *parts: Any, **info: Any) -> dict[str, Any]:
    """An export of one prompt with these parts."""
    placed = [
        {"id": f"prt_{name}{nth}", "sessionID": f"ses_{name}", "messageID": f"msg_{name}", **part}
        for nth, part in enumerate(parts)
    ]
    message = {
        "id": f"msg_{name}",
        "sessionID": f"ses_{name}",
        "role": "user",
        "time": {"created": 5},
        "agent": "build",
        "model": {"providerID": "p", "modelID": "m"},
    }
    tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    session = {
        "id": f"ses_{name}",
        "slug": "calm-otter",
        "projectID": "global",
        "directory": "/home/user",
        "title": name,
        "version": "1",
        "cost": 0,
        "tokens": tokens,
        "time": {"created": 1, "updated": 2},
        **info,
    }
    return {"info": session, "messages": [{"info": message, "parts": placed}]}


def a_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


async def test_a_directory_with_links_is_resolved_if_it_exists_here(tk: Turnkeeper, tmp_path: Path) -> None:
    there = tmp_path.resolve() / "there"
    there.mkdir()
    (link := tmp_path / "link").symlink_to(there)
    gone = str(tmp_path / "link/gone")
    for name, directory in (("one", str(link)), ("two", gone)):
        await imported(tk, tmp_path, a_session(name, a_text("x"), directory=directory))
    assert (await tk.get("ses_one")).directory == str(there)
    assert (await tk.get("ses_two")).directory == gone


async def test_what_opencode_exports_comes_in_and_goes_out_the_same(each_tk: Turnkeeper) -> None:
    for file in EXPORTS:
        theirs = json.loads(file.read_text())
        report = await each_tk.import_sessions(file)
        assert (report.imported.messages, report.unreadable) == (len(theirs["messages"]), ())
        assert await exported(each_tk, theirs["info"]["id"]) == theirs


async def test_a_list_of_exports_comes_in(tk: Turnkeeper, tmp_path: Path) -> None:
    both = [a_session("one", a_text("1")), a_session("two", a_text("2"))]
    assert (await imported(tk, tmp_path, both)).imported == Counts(sessions=2, messages=2, parts=2)
    assert [await exported(tk, "ses_one"), await exported(tk, "ses_two")] == both


async def test_the_data_of_a_share_comes_in(tk: Turnkeeper, tmp_path: Path) -> None:
    items = [{"type": "part", "data": part} for one in EXPORT["messages"] for part in one["parts"]]
    items += [{"type": "message", "data": one["info"]} for one in reversed(EXPORT["messages"])]
    items += [{"type": "session", "data": EXPORT["info"]}, {"type": "session_diff", "data": []}]
    assert (await imported(tk, tmp_path, items)).imported == COUNTS
    assert await exported(tk, SESSION) == EXPORT


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("a.json", b"not json", "is not JSON"),
        ("a.json", b"", "is not JSON"),
        ("a.json", b"[]", "is not an export"),
        ("a.json", b'{"some": "object"}', "is not an export"),
        ("a.json", b'{"info": {}, "messages": 5}', "is not an export"),
        ("a.json", b'[{"type": "message", "data": {}}]', "share without a session"),
        ("a.json", b"[" * 100_000, "is nested more than 128 deep"),
        ("a.jsonl", b"not json\n", "is not JSON"),
        ("a.jsonl", b"\n\n", "is empty"),
    ],
)
async def test_what_is_no_export_is_refused_and_nothing_is_written(
    tk: Turnkeeper, tmp_path: Path, name: str, body: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(body)
    with pytest.raises(Invalid, match=reason):
        await tk.import_sessions(tmp_path / name)
    assert await dump(tk) == {}


async def test_a_place_without_exports_is_refused(tk: Turnkeeper, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is nothing at"):
        await tk.import_sessions(tmp_path / "nowhere")
    with pytest.raises(Invalid, match="holds no exported sessions"):
        await tk.import_sessions(tmp_path)


async def test_a_broken_file_or_line_is_named_and_the_rest_comes_in(tk: Turnkeeper, tmp_path: Path) -> None:
    lines = [json.dumps(a_session("one")), "{broken", json.dumps(a_session("two"))]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "good.json").write_text(json.dumps(a_session("three")))
    (tmp_path / "tree/message").mkdir(parents=True)
    (tmp_path / "tree/meta.json").write_text(json.dumps(a_session("four")["info"]))
    (tmp_path / "tree/message/msg_broken.json").write_text("[")
    report = await tk.import_sessions(tmp_path)
    assert report.imported.sessions == 4
    assert [one.place for one in report.unreadable] == [
        str(tmp_path / "broken.json"),
        f"{tmp_path / 'many.jsonl'}:2",
        str(tmp_path / "tree/message/msg_broken.json"),
    ]


def test_a_folder_that_may_not_be_entered_is_named_and_the_rest_comes_in(tmp_path: Path) -> None:
    async def report() -> ImportReport:
        async with turnkeeper.open("memory:", directory=tmp_path) as tk:
            return await tk.import_sessions(tmp_path)

    (tmp_path / "whole.json").write_bytes(EXPORTS[0].read_bytes())
    (tmp_path / "closed").mkdir(0)
    found = unprivileged(lambda: anyio.run(report))
    named = [(one.place, one.reason) for one in found.unreadable]
    assert (named, found.imported) == ([(str(tmp_path / "closed"), "cannot be read: Permission denied")], COUNTS)


@pytest.mark.parametrize("name", [None, 5, "", "msg_1", "ses_a/b", "ses_\0", "ses_" + "x" * 100])
async def test_a_session_whose_id_cannot_be_one_is_not_taken(tk: Turnkeeper, tmp_path: Path, name: object) -> None:
    report = await imported(tk, tmp_path, a_session("one", id=name))
    assert (report.imported, len(report.unreadable)) == (NONE, 1)
    assert await dump(tk) == {}


async def test_messages_and_parts_that_make_no_sense_are_named(tk: Turnkeeper, tmp_path: Path) -> None:
    given = a_session("one", a_text("kept"), a_text("twice"))
    [message] = given["messages"]
    message["parts"][1]["id"] = message["parts"][0]["id"]
    message["parts"].append("no object")
    message["info"]["id"] = "msg_one"
    given["messages"] += [
        {"info": {**message["info"], "id": "../escape"}, "parts": []},
        {"info": {**message["info"], "id": "msg_robot", "role": "robot"}, "parts": []},
        {"info": message["info"], "parts": []},
        "no object",
    ]
    report = await imported(tk, tmp_path, given)
    assert report.imported == Counts(sessions=1, messages=1, parts=1)
    assert [one.reason for one in report.skipped] == [
        "the part id is repeated; the first part was taken",
        "the message id is repeated; the first message was taken",
    ]
    assert [one.reason for one in report.unreadable] == [
        "message 4 is not an object",
        "part 2 is not an object",
        "'../escape' is not a message id",
        "is said by 'robot'; known are user, assistant and system",
    ]


async def test_a_huge_data_url_becomes_one_blob_and_comes_back(each_tk: Turnkeeper, tmp_path: Path) -> None:
    url = "data:image/png;base64," + "QUJD" * BLOB_CHARS_MIN
    file = {"type": "file", "mime": "image/png", "url": url}
    both = [a_session("one", file), a_session("two", file)]
    await imported(each_tk, tmp_path, both)
    assert [await exported(each_tk, "ses_one"), await exported(each_tk, "ses_two")] == both
    assert len(await each_tk.store.engine.scan(("blob",))) == 1
    assert max(len(entry) for entry in await each_tk.store.engine.read("ses_one")) < BLOB_CHARS_MIN
    assert (await imported(each_tk, tmp_path, both)).unchanged.sessions == 2


async def test_text_that_reads_like_a_mark_does_not_open_the_blob_of_another(tk: Turnkeeper, tmp_path: Path) -> None:
    secret = "secret " * BLOB_CHARS_MIN
    await imported(tk, tmp_path, a_session("own", a_text(secret)))
    [(key, _)] = await tk.store.engine.scan(("blob",))
    forged = a_session("forged", a_text(MARK + key[-1]), title=MARK + key[-1], odd={"deep": [MARK + key[-1]]})
    await imported(tk, tmp_path, forged)
    assert await exported(tk, "ses_forged") == forged
    assert (await imported(tk, tmp_path, forged)).unchanged.sessions == 1
    # And it is no reference either: the blob goes with the session that owns it.
    await tk.remove("ses_own")
    assert await tk.store.engine.get([keys.blob(key[-1])]) == [None]


async def test_half_a_character_becomes_the_sign_for_a_missing_one(tk: Turnkeeper, tmp_path: Path) -> None:
    given = a_session("one", a_text("cut: \ud83d"), a_text("whole: \U0001f600"))
    await imported(tk, tmp_path, given)
    texts = [part["text"] for part in (await exported(tk, "ses_one"))["messages"][0]["parts"]]
    assert texts == ["cut: \ufffd", "whole: \U0001f600"]
    assert (await imported(tk, tmp_path, given)).unchanged.sessions == 1


async def test_a_part_of_an_unknown_type_is_kept_word_for_word(tk: Turnkeeper, tmp_path: Path) -> None:
    hologram = {"type": "hologram", "light": {"blue": [1, None, "x"]}, "seq": 7}
    ours = {"type": "foreign", "body": {"a": 1}}
    broken = {"type": "text", "words": "no text"}
    given = a_session("one", hologram, ours, broken)
    await imported(tk, tmp_path, given)
    stored = await tk.message("ses_one", "msg_one")
    assert all(isinstance(part, ForeignPart) for part in stored.parts)
    assert await exported(tk, "ses_one") == given


async def test_a_fork_of_foreign_parts_carries_its_own_ids(tk: Turnkeeper, tmp_path: Path) -> None:
    await imported(tk, tmp_path, a_session("one", {"type": "hologram", "light": 1}))
    fork = await tk.fork("ses_one")
    [message] = (await exported(tk, fork.id))["messages"]
    assert (message["parts"][0]["sessionID"], message["parts"][0]["light"]) == (fork.id, 1)
    assert message["parts"][0]["messageID"] == message["info"]["id"] != "msg_one"


async def test_the_order_of_the_file_is_the_order_of_the_history(tk: Turnkeeper, tmp_path: Path) -> None:
    given = a_session("one")
    [message] = given["messages"]
    # Neither the times nor the ids agree with it.
    given["messages"] = [
        {"info": {**message["info"], "id": name, "time": {"created": created}}, "parts": []}
        for name, created in (("msg_b", 9), ("msg_c", 3), ("msg_a", 5))
    ]
    await imported(tk, tmp_path, given)
    assert await exported(tk, "ses_one") == given
    await tk.export_all(tmp_path / "out", layout="tree")
    await tk.remove("ses_one")
    await tk.import_sessions(tmp_path / "out")
    assert await exported(tk, "ses_one") == given


async def test_rules_of_an_imported_session_only_deny(tk: Turnkeeper, tmp_path: Path) -> None:
    given = copy.deepcopy(EXPORT)
    deny = {"permission": "bash", "pattern": "rm *", "action": "deny"}
    allow = {"permission": "bash", "pattern": "*", "action": "allow"}
    given["info"]["permission"] = [deny, allow]
    report = await imported(tk, tmp_path, given)
    assert (await exported(tk, SESSION))["info"]["permission"] == [deny]
    assert [one.reason for one in report.skipped] == ["1 permission rules that do not deny"]


@pytest.mark.parametrize("parents", [{"a": "ses_a"}, {"a": "ses_b", "b": "ses_a"}], ids=["one", "two"])
async def test_sessions_that_are_their_own_ancestors_are_read_once(
    tk: Turnkeeper, tmp_path: Path, parents: dict[str, str]
) -> None:
    await imported(tk, tmp_path, [a_session(name, a_text("Hi"), parentID=parent) for name, parent in parents.items()])
    assert [one.id for one in await tk.children("ses_a", recursive=True)] == ["ses_b"] * (len(parents) - 1)
    await tk.remove("ses_a")
    with pytest.raises(NotFound):
        await tk.get("ses_a")
