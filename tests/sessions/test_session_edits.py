"""Change what a session says of itself: atomically, and only as far as it may."""

from pathlib import Path

import anyio
import pytest
from narrow import of_type

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.mint import FixedMint
from turnkeeper.model.event import SummaryRecorded
from turnkeeper.model.identifier import ProjectID
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import FileDiff, Session, Summary
from turnkeeper.model.todo import Todo
from turnkeeper.sessions import edit
from turnkeeper.workspace.project import ProjectPlace


async def test_an_update_is_applied_and_counts_as_activity(tk: Turnkeeper) -> None:
    before = await tk.create(title="a")
    after = await tk.update(before.id, lambda session: session.but(title="b", agent="plan"))
    assert (after.title, after.agent) == ("b", "plan")
    assert after.time.updated > before.time.updated
    assert await tk.get(before.id) == after


async def test_an_update_that_changes_nothing_still_counts_as_activity(tk: Turnkeeper) -> None:
    before = await tk.create()
    after = await tk.update(before.id, lambda session: session)
    assert after == before.but(time=before.time.but(updated=after.time.updated))
    assert after.time.updated > before.time.updated


def count_up(session: Session) -> Session:
    count = of_type(int, (session.metadata or {}).get("count", 0))
    return session.but(metadata={"count": count + 1})


async def test_no_update_is_lost_when_many_come_at_once(tk: Turnkeeper) -> None:
    session = await tk.create()
    async with anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(tk.update, session.id, count_up)
    assert (await tk.get(session.id)).metadata == {"count": 40}


async def test_an_update_that_is_refused_changes_nothing(tk: Turnkeeper) -> None:
    session = await tk.create()
    with pytest.raises(Invalid, match="cannot be edited"):
        await tk.update(session.id, lambda one: one.but(id="ses_other", title="x"))
    with pytest.raises(ZeroDivisionError):
        await tk.update(session.id, lambda one: one.but(title=str(1 // 0)))
    assert await tk.get(session.id) == session


async def test_a_session_is_renamed_on_one_line(tk: Turnkeeper) -> None:
    session = await tk.create(title="a")
    assert (await tk.rename(session.id, " b\nc ")).title == "b c"
    with pytest.raises(Invalid, match="give at least one word"):
        await tk.rename(session.id, " ")
    assert await tk.get(session.id) == session.but(title="b c")


async def test_renaming_to_the_same_title_writes_nothing(tk: Turnkeeper) -> None:
    session = await tk.create(title="a")
    await tk.rename(session.id, "a")
    assert await tk.store.engine.length(session.id) == 1


async def test_an_archived_session_keeps_everything_and_comes_back(tk: Turnkeeper) -> None:
    session = await tk.create()
    archived = await tk.archive(session.id)
    assert archived == session.but(time=session.time.but(archived=archived.time.archived))
    assert archived.time.archived is not None
    assert await tk.restore(session.id) == session


async def test_archiving_again_keeps_the_first_time_and_writes_nothing(tk: Turnkeeper, mint: FixedMint) -> None:
    session = await tk.create()
    first = await tk.archive(session.id)
    mint.advance(1000)
    assert await tk.archive(session.id) == first
    assert await tk.store.engine.length(session.id) == 2


async def test_restoring_what_is_not_archived_writes_nothing(tk: Turnkeeper) -> None:
    session = await tk.create()
    assert await tk.restore(session.id) == session
    assert await tk.store.engine.length(session.id) == 1


async def test_a_moved_session_works_in_the_other_directory(tk: Turnkeeper, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    session = await tk.create()
    moved = await tk.move(session.id, other)
    assert (moved.directory, moved.path) == (str(other), str(other).removeprefix("/"))
    assert await tk.get(session.id) == moved


async def test_todos_are_replaced_as_a_whole(tk: Turnkeeper) -> None:
    session = await tk.create()
    todos = [Todo(content=str(number), status="pending", priority="low") for number in range(3)]
    assert await tk.todos(session.id) == ()
    assert await tk.set_todos(session.id, todos) == tuple(todos)
    assert await tk.set_todos(session.id, todos[:1]) == tuple(todos[:1])
    assert await tk.todos(session.id) == tuple(todos[:1])
    assert await tk.set_todos(session.id, []) == ()
    assert await tk.todos(session.id) == ()


async def test_the_same_todos_again_write_nothing(tk: Turnkeeper) -> None:
    session = await tk.create()
    todo = Todo(content="a", status="pending", priority="low")
    await tk.set_todos(session.id, [todo])
    await tk.set_todos(session.id, [todo])
    assert await tk.store.engine.length(session.id) == 2


async def test_a_session_is_found_in_the_project_it_moved_to(tk: Turnkeeper, tmp_path: Path) -> None:
    """Also by those who saw it in another one before."""
    session, stays = await tk.create(title="moves"), await tk.create(title="stays")
    assert [one.id for one in (await tk.list()).items] == [stays.id, session.id]
    root = tmp_path / "other"
    root.mkdir()
    place = ProjectPlace(id=ProjectID("other"), directory=root, worktree=root, main_worktree=root, vcs=None, path="")
    await edit.move(tk.store, session.id, place)
    assert (await tk.get(session.id)).project_id == "other"
    assert {one.id: one.project_id for one in (await tk.list()).items} == {session.id: "other", stays.id: "global"}
    await tk.remove(session.id)
    with pytest.raises(NotFound, match=session.id):
        await tk.get(session.id)


@pytest.mark.parametrize("verb", ["touch", "archive", "restore", "todos", "diffs"])
async def test_a_session_that_is_not_there_cannot_be_changed(tk: Turnkeeper, verb: str) -> None:
    with pytest.raises(NotFound, match="ses_none"):
        await getattr(tk, verb)("ses_none")


async def test_everything_done_to_a_session_leaves_it_sound(tk: Turnkeeper, tmp_path: Path) -> None:
    session = await tk.create()
    await tk.rename(session.id, "b (fork #2)")
    await tk.archive(session.id)
    await tk.move(session.id, tmp_path)
    await tk.restore(session.id)
    await tk.update(session.id, count_up)
    await tk.set_todos(session.id, [Todo(content="a", status="pending", priority="low")])
    assert (await tk.doctor()).problems == ()


async def test_long_text_in_settings_comes_back_whole(tk: Turnkeeper) -> None:
    text = "long " * BLOB_CHARS_MIN
    created = await tk.create(metadata={"text": text})
    todo = Todo(content=text, status="pending", priority="low")
    assert await tk.set_todos(created.id, [todo]) == (todo,)
    assert await tk.todos(created.id) == (todo,)
    for session in (created, await tk.rename(created.id, "b"), await tk.touch(created.id), await tk.get(created.id)):
        assert session.metadata == {"text": text}
    diff = FileDiff(patch=text, additions=1, deletions=0)
    summary = Summary(additions=1, deletions=0, files=1)
    await tk.store.journal.append(created.id, SummaryRecorded(summary=summary, diffs=(diff,)))
    assert await tk.diffs(created.id) == (diff,)
