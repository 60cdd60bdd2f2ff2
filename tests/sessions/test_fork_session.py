"""Fork a session: a copy that stands by itself."""

from pathlib import Path

import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.core.transcribe import interrupted
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import CompactionPart, ToolPart
from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import ZERO_TOKENS, Origin, Revert, Session
from turnkeeper.model.todo import Todo
from turnkeeper.testing.builders import SOME_TOKENS, a_session, a_turn, a_user, every_event

SOURCE = "ses_source"


async def a_history(tk: Turnkeeper, **session: object) -> None:
    """Two turns, and a compaction that keeps the second one."""
    tail = CompactionPart(id="prt_z", session_id=SOURCE, message_id="msg_z", auto=True, tail_start_id="msg_u2_source")
    await tk.store.journal.create(
        a_session(SOURCE, **session),
        *a_turn(SOURCE, 1, answer="x" * BLOB_CHARS_MIN),
        *a_turn(SOURCE, 2),
        e.MessageRecorded(message=a_user(SOURCE, "msg_z"), parts=(tail,)),
    )


def an_attempt(cost: float) -> e.UsageRecorded:
    """What one attempt cost."""
    return e.UsageRecorded(purpose="turn", provider_id="acme", model_id="large", tokens=SOME_TOKENS, cost=cost)


async def history(tk: Turnkeeper, session_id: str) -> list[MessageWithParts]:
    return [one async for one in tk.iter_messages(session_id, reverse=False)]


def told(one: MessageWithParts) -> object:
    """What is said in a message, whatever its ids are."""
    place = {"id": "", "session_id": "", "message_id": "", "seq": 0, "nth": 0}
    parts = [
        part.but(**place, **({"tail_start_id": None} if isinstance(part, CompactionPart) else {})) for part in one.parts
    ]
    links = {"parent_id": ""} if isinstance(one.info, AssistantMessage) else {}
    return one.info.but(id="", session_id="", seq=0, **links), parts


async def test_a_fork_has_the_same_history_under_new_ids(tk: Turnkeeper) -> None:
    await a_history(tk)
    forked = await tk.fork(SOURCE)
    old, new = await history(tk, SOURCE), await history(tk, forked.id)
    assert [told(one) for one in new] == [told(one) for one in old]
    ids = {one.info.id for one in [*old, *new]} | {part.id for one in [*old, *new] for part in one.parts}
    assert len(ids) == 2 * (5 + 11)
    assert {one.info.session_id for one in new} == {forked.id}


async def test_links_inside_a_fork_point_into_it(tk: Turnkeeper) -> None:
    await a_history(tk)
    new = await history(tk, (await tk.fork(SOURCE)).id)
    parents = [one.info.parent_id for one in new if isinstance(one.info, AssistantMessage)]
    assert parents == [new[0].info.id, new[2].info.id]
    [tail] = new[4].parts
    assert isinstance(tail, CompactionPart)
    assert tail.tail_start_id == new[2].info.id


async def test_a_fork_ends_before_the_message_it_names(tk: Turnkeeper) -> None:
    await a_history(tk)
    forked = await tk.fork(SOURCE, message_id="msg_u2_source")
    assert len(await history(tk, forked.id)) == 2
    assert forked.origin == Origin(session_id=SOURCE, message_id="msg_u2_source")
    assert await history(tk, (await tk.fork(SOURCE, message_id="msg_u1_source")).id) == []


@pytest.mark.parametrize(
    ("revert", "messages", "parts_of_the_last"),
    [
        (Revert(message_id="msg_u2_source"), 2, 4),
        (Revert(message_id="msg_u2_source", keeps_message=True), 3, 1),
        (Revert(message_id="msg_a2_source", part_id="prt_2_source_d"), 4, 2),
        (Revert(message_id="msg_gone"), 5, 1),
    ],
)
async def test_a_fork_has_nothing_that_is_undone(
    tk: Turnkeeper, revert: Revert, messages: int, parts_of_the_last: int
) -> None:
    await a_history(tk)
    await tk.store.journal.append(SOURCE, e.RevertStaged(revert=revert))
    forked = await tk.fork(SOURCE)
    copied = await history(tk, forked.id)
    assert (len(copied), len(copied[-1].parts)) == (messages, parts_of_the_last)
    assert forked.revert is None
    assert len(await history(tk, (await tk.fork(SOURCE, message_id="msg_z")).id)) == 4, "asked for by its name"


async def test_a_fork_is_a_root_that_knows_where_it_comes_from(tk: Turnkeeper) -> None:
    await a_history(tk, parent_id="ses_parent", metadata={"a": 1}, agent="plan")
    forked = await tk.fork(SOURCE)
    assert (forked.parent_id, forked.origin) == (None, Origin(session_id=SOURCE))
    assert (forked.metadata, forked.directory) == ({"a": 1}, "/home/me/prj")
    assert forked.time.archived is None


async def test_a_fork_keeps_the_rules_of_its_source(tk: Turnkeeper) -> None:
    rules = (Rule(permission="bash", pattern="*", action="deny"),)
    await a_history(tk, permission=rules)
    assert (await tk.fork(SOURCE)).permission == rules
    assert (await tk.fork(SOURCE, message_id="msg_u2_source")).permission == rules


async def test_a_fork_has_the_todos_of_the_moment_it_is_made_from(tk: Turnkeeper) -> None:
    early, late = (Todo(content=text, status="pending", priority="medium") for text in ("early", "late"))
    await tk.store.journal.create(
        a_session(SOURCE), *a_turn(SOURCE, 1), e.TodosSet(todos=(early,)), *a_turn(SOURCE, 2), e.TodosSet(todos=(late,))
    )
    seq = (await tk.store.journal.view(SOURCE)).seq
    assert await tk.todos((await tk.fork(SOURCE)).id) == (late,)
    assert await tk.todos((await tk.fork(SOURCE, at=seq - 1)).id) == (early,)
    assert await tk.todos((await tk.fork(SOURCE, message_id="msg_u2_source")).id) == ()


async def test_a_session_is_made_forked_and_moved_only_where_there_is_a_directory(tk: Turnkeeper, place: Path) -> None:
    session_id = (await tk.create()).id
    (place / "file").touch()
    for wrong in (place / "nowhere", place / "file"):
        for act in (tk.create(directory=wrong), tk.fork(session_id, directory=wrong), tk.move(session_id, wrong)):
            with pytest.raises(Invalid, match="is not a directory; make it, or name another"):
                await act
    assert [one.id for one in (await tk.list()).items] == [session_id]


async def test_no_session_is_made_forked_or_moved_into_a_loop_of_links(tk: Turnkeeper, place: Path) -> None:
    session_id, loop = (await tk.create()).id, place / "loop"
    loop.symlink_to(loop)
    for act in (tk.create(directory=loop), tk.fork(session_id, directory=loop), tk.move(session_id, loop)):
        with pytest.raises(Invalid, match="cannot be a directory: Too many levels of symbolic links"):
            await act


async def test_a_fork_can_work_elsewhere(tk: Turnkeeper, place: Path) -> None:
    await a_history(tk)
    forked = await tk.fork(SOURCE, directory=place)
    assert (forked.directory, forked.project_id) == (str(place), "global")


async def test_a_fork_has_cost_nothing_and_the_ledger_counts_what_was_paid_once(tk: Turnkeeper) -> None:
    await a_history(tk)
    await tk.store.journal.append(SOURCE, an_attempt(cost=0.5))
    before = [row async for row in tk.ledger()]
    forked = await tk.fork(SOURCE)
    assert (forked.cost, forked.tokens) == (0, ZERO_TOKENS)
    assert [row async for row in tk.ledger()] == before
    assert await history(tk, forked.id), "and yet each of its turns says what it took"
    paid = await tk.store.journal.append(forked.id, an_attempt(cost=0.25))
    assert paid.session.cost == 0.25


async def test_a_message_that_is_not_there_is_refused(tk: Turnkeeper) -> None:
    await a_history(tk)
    with pytest.raises(NotFound, match="there is no message 'msg_none' in session 'ses_source'"):
        await tk.fork(SOURCE, message_id="msg_none")
    with pytest.raises(NotFound, match="there is no session"):
        await tk.fork("ses_none")
    assert len((await tk.list()).items) == 1


async def test_forks_of_one_title_are_numbered(tk: Turnkeeper) -> None:
    source = await tk.create(title="Work")
    first = await tk.fork(source.id)
    second = await tk.fork(source.id)
    third = await tk.fork(first.id)
    assert [one.title for one in (first, second, third)] == ["Work (fork #1)", "Work (fork #2)", "Work (fork #3)"]


async def test_the_number_of_a_removed_fork_is_free_again(tk: Turnkeeper) -> None:
    source = await tk.create(title="Work")
    first = await tk.fork(source.id)
    await tk.remove(first.id)
    assert (await tk.fork(source.id)).title == "Work (fork #1)"


async def test_a_renamed_fork_gives_its_number_back(tk: Turnkeeper) -> None:
    source = await tk.create(title="Work")
    first = await tk.fork(source.id)
    await tk.rename(first.id, "Something else")
    assert (await tk.fork(source.id)).title == "Work (fork #1)"


async def test_a_fork_is_one_transaction_and_shares_its_blobs(tk: Turnkeeper) -> None:
    await a_history(tk)
    before = len(await tk.store.engine.scan(("blob",)))
    forked = await tk.fork(SOURCE)
    assert len(await tk.store.engine.scan(("blob",))) == before == 1
    assert (await tk.doctor()).ok
    await tk.remove(SOURCE)
    texts = [getattr(part, "text", "") for one in await history(tk, forked.id) for part in one.parts]
    assert "x" * BLOB_CHARS_MIN in texts


async def test_a_change_to_a_fork_does_not_reach_its_source(tk: Turnkeeper) -> None:
    await a_history(tk)
    forked = await tk.fork(SOURCE)
    before = await history(tk, SOURCE)
    [first, *_] = await history(tk, forked.id)
    await tk.remove_message(forked.id, first.info.id)
    await tk.rename(forked.id, "Other")
    assert await history(tk, SOURCE) == before
    assert (await tk.doctor()).ok


async def test_a_fork_while_a_turn_is_open_copies_what_is_there_and_the_turn_is_over(tk: Turnkeeper) -> None:
    source = await tk.store.journal.create(a_session(SOURCE), *a_turn(SOURCE, 1)[:10])
    forked = await tk.fork(SOURCE)
    prompt, turn = await history(tk, SOURCE)
    *said, call = turn.parts
    assert isinstance(turn.info, AssistantMessage)
    assert isinstance(call, ToolPart)
    now = source.session.time.updated
    over = turn.info.but(time=turn.info.time.but(completed=now))
    settled = call.but(state=interrupted(call, now))
    expected = [prompt, MessageWithParts(info=over, parts=(*said, settled))]
    assert [told(one) for one in await history(tk, forked.id)] == [told(one) for one in expected]
    view = await tk.store.journal.view(forked.id)
    assert view.turn is None
    assert (await tk.doctor()).ok


async def test_a_fork_as_of_an_event_is_the_fork_that_would_have_been_made_then(tk: Turnkeeper) -> None:
    created, *rest = every_event(SOURCE)
    assert isinstance(created, e.SessionCreated)
    await tk.store.journal.create(created.session)
    made = [await copied(tk, await tk.fork(SOURCE))]
    for event in rest:
        await tk.store.journal.append(SOURCE, event)
        made.append(await copied(tk, await tk.fork(SOURCE)))
    for seq, then in enumerate(made, 1):
        late = await tk.fork(SOURCE, at=seq)
        assert late.origin == Origin(session_id=SOURCE, seq=seq)
        assert await copied(tk, late) == then, f"as of event {seq}"
    assert (await tk.doctor()).ok


async def copied(tk: Turnkeeper, forked: Session) -> object:
    """All that a fork takes over, whatever its ids and times are."""
    view = await tk.store.journal.view(forked.id)
    kept = (forked.agent, forked.model, forked.permission, forked.metadata, forked.directory, forked.project_id)
    place = [one.info.seq for one in await history(tk, forked.id)]
    return kept, place, list(map(told, await history(tk, forked.id))), view.instructions, len(view.quarantined)


async def test_a_fork_as_of_an_event_ends_before_the_message_it_names_too(tk: Turnkeeper) -> None:
    await a_history(tk)
    assert len(await history(tk, (await tk.fork(SOURCE, message_id="msg_u2_source", at=20)).id)) == 2
    with pytest.raises(NotFound, match="there is no message 'msg_u2_source'"):
        await tk.fork(SOURCE, message_id="msg_u2_source", at=3)
    for seq in (0, 99):
        with pytest.raises(Invalid, match=f"has no event {seq}"):
            await tk.fork(SOURCE, at=seq)
    with pytest.raises(Invalid, match="and not both"):
        await tk.fork(SOURCE, directory="/", worktree="/nowhere")
    with pytest.raises(NotFound, match="has no snapshot of files to restore; fork it without a worktree"):
        await tk.fork(SOURCE, worktree="/nowhere")
