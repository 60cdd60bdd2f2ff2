"""Histories that grew since the last import, and sessions that were continued here."""

from pathlib import Path
from typing import Any

import pytest
from histories import BUOYS, CLAUDE, CODEX, FILES, GEMINI, everything, lines_of, words, written
from opencode_files import dump

from turnkeeper.app import Turnkeeper, open_store
from turnkeeper.interop.transcripts import ProgramName
from turnkeeper.model.event import MessageRecorded
from turnkeeper.testing.builders import a_text, a_user

LINED = [(name, file) for name, file in FILES if file.suffix == ".jsonl"]


def without_totals(sessions: dict[str, Any]) -> dict[str, Any]:
    """The sessions without what a source took back leaves: its usage, and lines that were told as they were."""
    for one in sessions.values():
        del one["info"]["tokens"]
        for message in one["messages"]:
            message["parts"] = [part for part in message["parts"] if not part["type"].endswith("-line")]
    return sessions


@pytest.mark.parametrize(("name", "file"), LINED, ids=lambda one: one if isinstance(one, str) else one.name[:32])
async def test_a_history_that_grows_line_by_line_is_the_same_as_the_whole(
    tk: Turnkeeper, tmp_path: Path, name: ProgramName, file: Path
) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    target = tmp_path / "chats" / file.name
    target.parent.mkdir()
    for end in range(1, len(lines)):
        # Half of the next line is there too: the program is writing it.
        target.write_bytes(b"".join(lines[:end]) + lines[end][: len(lines[end]) // 2])
        report = await tk.import_history(name, target)
        assert (report.conflicts, report.unreadable) == ((), ())
    target.write_bytes(b"".join(lines))
    await tk.import_history(name, target)
    async with open_store("memory:", directory=tmp_path) as other:
        await other.import_history(name, target)
        assert without_totals(await everything(tk)) == without_totals(await everything(other))


@pytest.mark.parametrize(("name", "file"), LINED, ids=lambda one: one if isinstance(one, str) else one.name[:32])
async def test_what_a_history_has_grown_by_has_the_time_of_its_source(
    tk: Turnkeeper, tmp_path: Path, name: ProgramName, file: Path
) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    target = tmp_path / "chats" / file.name
    target.parent.mkdir()
    for end in (len(lines) // 2, len(lines)):
        target.write_bytes(b"".join(lines[:end]))
        await tk.import_history(name, target)
    async with open_store("memory:", directory=tmp_path) as other:
        await other.import_history(name, target)
        assert await _times(tk) == await _times(other)
    assert [row async for row in tk.ledger()] == []


async def _times(tk: Turnkeeper) -> dict[str, Any]:
    return {one.id: one.time for one in (await tk.list(roots=False, archived=True, limit=200)).items}


async def test_a_title_that_changed_in_the_source_is_no_activity(tk: Turnkeeper, tmp_path: Path) -> None:
    lines: list[Any] = lines_of(BUOYS)
    target = written(tmp_path / "one.jsonl", lines)
    await tk.import_history("claude-code", target)
    before = await _times(tk)
    named = {"type": "custom-title", "customTitle": "The gauge", "sessionId": "one"}
    await tk.import_history("claude-code", written(target, [*lines, named]))
    assert {one.title for one in (await tk.list()).items} == {"The gauge"}
    assert await _times(tk) == before


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
async def test_importing_again_changes_no_byte(each_tk: Turnkeeper, name: ProgramName) -> None:
    folder = next(file for program, file in FILES if program == name)
    await each_tk.import_history(name, folder)
    before = await dump(each_tk)
    report = await each_tk.import_history(name, folder)
    assert (report.imported.messages, report.grown, report.conflicts) == (0, 0, ())
    assert await dump(each_tk) == before


async def _continue(tk: Turnkeeper, session_id: str) -> None:
    """A prompt of this program's own, at the end of an imported session."""
    message = a_user(session_id, "msg_here")
    await tk.store.journal.append(
        session_id, MessageRecorded(message=message, parts=(a_text(message, "prt_1", "Here."),))
    )


@pytest.mark.parametrize(("name", "file"), [("claude-code", BUOYS), ("codex", CODEX), ("gemini", GEMINI)])
async def test_a_session_that_was_continued_here_is_left_as_it_is(
    tk: Turnkeeper, tmp_path: Path, name: ProgramName, file: Path
) -> None:
    lines = lines_of(file)
    target = written(tmp_path / "chats" / file.name, lines[:4])
    await tk.import_history(name, target)
    [session] = (await tk.list()).items
    await _continue(tk, session.id)
    ours = (await everything(tk))[session.id]["messages"]
    written(target, lines)
    report = await tk.import_history(name, target)
    found = await everything(tk)
    assert [one["info"]["id"] for one in found[session.id]["messages"]] == [one["info"]["id"] for one in ours]
    [told] = [one for one in report.skipped if one.session_id == session.id]
    aside = next(one for one in found.values() if one["info"]["id"] in told.reason)
    async with open_store("memory:", directory=tmp_path) as other:
        await other.import_history(name, target)
        whole = (await everything(other))[session.id]
    assert words(aside) == words(whole)
    assert aside["info"]["title"].endswith(f"(continued in {name})")
    before = await dump(tk)
    again = await tk.import_history(name, target)
    assert (again.imported.messages, again.grown) == (0, 0)
    assert await dump(tk) == before


async def test_what_is_undone_here_does_not_come_back_in_the_middle(tk: Turnkeeper) -> None:
    await tk.import_history("claude-code", BUOYS)
    root = next(one for one in (await tk.list()).items)
    messages = [one async for one in tk.iter_messages(root.id, reverse=False)]
    await tk.remove_message(root.id, messages[-1].info.id)
    await _continue(tk, root.id)
    ours = (await everything(tk))[root.id]["messages"]
    await tk.import_history("claude-code", BUOYS)
    assert (await everything(tk))[root.id]["messages"] == ours


async def test_a_title_follows_the_source_until_it_is_changed_here(tk: Turnkeeper, tmp_path: Path) -> None:
    lines: list[Any] = lines_of(CLAUDE)
    target = written(tmp_path / "one.jsonl", lines)
    await tk.import_history("claude-code", target)
    named = {"type": "custom-title", "customTitle": "The gauge", "sessionId": "one"}
    report = await tk.import_history("claude-code", written(target, [*lines, named]))
    assert (report.conflicts, report.grown) == ((), 2)
    [session] = [one for one in (await tk.list()).items if one.origin is None]
    assert session.title == "The gauge"
    await tk.rename(session.id, "Mine")
    report = await tk.import_history("claude-code", written(target, [*lines, {**named, "customTitle": "Theirs"}]))
    assert (await tk.get(session.id)).title == "Mine"
    assert [one.session_id for one in report.conflicts if "title" in one.reason] == [session.id]


async def test_a_rewind_since_the_last_import_moves_the_old_end_to_a_branch(tk: Turnkeeper, tmp_path: Path) -> None:
    lines = lines_of(CLAUDE)
    target = written(tmp_path / "one.jsonl", lines[:16])
    await tk.import_history("claude-code", target)
    [session] = (await tk.list()).items
    await tk.import_history("claude-code", written(target, lines[:18]))
    found = await everything(tk)
    texts = [parts for _, parts in words(found[session.id])]
    assert texts[-2] == ["text: Correct day two only, please."]
    assert ["text: Delete the whole table."] not in texts
    [branch] = [one for key, one in found.items() if key != session.id]
    assert words(branch)[-2] == ("user", ["text: Delete the whole table."])


@pytest.mark.parametrize(("name", "file"), LINED, ids=lambda one: one if isinstance(one, str) else one.name[:32])
async def test_an_old_copy_beside_a_history_takes_nothing_away(
    tk: Turnkeeper, tmp_path: Path, name: ProgramName, file: Path
) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    for folder, count in (("a", len(lines)), ("b", len(lines) * 2 // 3)):
        target = tmp_path / folder / "chats" / file.name
        target.parent.mkdir(parents=True)
        target.write_bytes(b"".join(lines[:count]))
    await tk.import_history(name, tmp_path)
    async with open_store("memory:", directory=tmp_path) as other:
        await other.import_history(name, tmp_path / "a")
        whole = {id: len(one["messages"]) for id, one in (await everything(other)).items()}
    found = {id: len(one["messages"]) for id, one in (await everything(tk)).items()}
    assert {id: found.get(id) for id in whole} == whole
    before = await dump(tk)
    assert (await tk.import_history(name, tmp_path)).grown == 0
    assert await dump(tk) == before
