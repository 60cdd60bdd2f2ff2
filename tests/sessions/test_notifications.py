"""Hear of what happens: notifications in this process, the tail of the log from any process."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import anyio
import pytest
from narrow import of_type

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.core.entry import Recorded
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.mint import FixedMint
from turnkeeper.model import event as e
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import TextPart
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import Session
from turnkeeper.store.journal import Journal
from turnkeeper.testing.builders import a_session, a_text, a_turn, a_user


async def test_a_subscriber_hears_of_each_change_in_order(tk: Turnkeeper) -> None:
    async with tk.subscribe() as notifications:
        session = await tk.create(title="a")
        await tk.rename(session.id, "b")
        await tk.archive(session.id)
        await tk.remove(session.id)
        heard = [await anext(notifications) for _ in range(4)]
    assert [one.type for one in heard] == ["session.created", "session.updated", "session.updated", "session.deleted"]
    assert [of_type(Notification, one).seq for one in heard[:3]] == [1, 2, 3]
    assert {one.session_id for one in heard} == {session.id}


async def test_a_subscriber_can_ask_for_one_session_only(tk: Turnkeeper) -> None:
    first, second = await tk.create(), await tk.create()
    async with tk.subscribe(session_id=second.id) as notifications:
        await tk.touch(first.id)
        await tk.touch(second.id)
        assert (await anext(notifications)).session_id == second.id


async def test_what_is_heard_can_be_read(tk: Turnkeeper) -> None:
    """The store is written before anybody is told."""
    async with tk.subscribe() as notifications:
        session = await tk.create(title="a")
        async with anyio.create_task_group() as group:
            group.start_soon(tk.rename, session.id, "b")
            async for one in notifications:
                if one.type == "session.updated":
                    assert (await tk.get(session.id)).title == "b"
                    return


async def test_a_write_that_is_refused_is_not_heard(tk: Turnkeeper) -> None:
    session = await tk.create()
    async with tk.subscribe() as notifications:
        with pytest.raises(Invalid):
            await tk.rename(session.id, " ")
        await tk.touch(session.id)
        assert of_type(Notification, await anext(notifications)).seq == 2


async def test_a_subscriber_hears_long_text_whole(tk: Turnkeeper) -> None:
    text = "long " * BLOB_CHARS_MIN
    session = await tk.create()
    user = a_user(session.id, "msg_one")
    prompt = e.PromptAdmitted(message=user, parts=(a_text(user, "prt_one", text),), delivery="steer")
    async with tk.subscribe() as notifications:
        await tk.store.journal.append(session.id, prompt)
        await tk.store.journal.append(session.id, e.PromptPromoted(message_id=user.id))
        async for one in notifications:
            if isinstance(one, Notification) and one.type == "message.part.updated":
                part = one.properties["part"]
                assert isinstance(part, TextPart)
                assert part.text == text
                return


class Neighbour:
    """Another process's journal on the same store, as far as one can tell."""

    def __init__(self, tk: Turnkeeper) -> None:
        self.heard: list[Notification] = []
        self.journal = Journal(tk.store.engine, tk.store.mint, self.heard.append)


async def test_a_write_of_another_process_is_seen_and_heard_once(tk: Turnkeeper) -> None:
    session = await tk.create(title="a")
    neighbour = Neighbour(tk)
    async with tk.subscribe() as notifications:
        await neighbour.journal.append(session.id, e.SessionTitled(title="b"))
        view = await tk.store.journal.view(session.id)
        assert (view.session.title, view.seq) == ("b", 2)
        await tk.rename(session.id, "c")
        heard = [of_type(Notification, await anext(notifications)) for _ in range(2)]
    titles = [of_type(Session, one.properties["info"]).title for one in heard]
    assert (titles, [one.seq for one in heard]) == (["b", "c"], [2, 3])


async def test_two_processes_change_one_session_and_neither_loses_a_write(tk: Turnkeeper) -> None:
    session = await tk.create()
    neighbour = Neighbour(tk)

    async def write(journal: Journal, name: str) -> None:
        for number in range(20):
            await journal.append(session.id, e.InstructionDiscovered(path=f"{name}{number}"))
            await anyio.sleep(0)

    async with anyio.create_task_group() as group:
        group.start_soon(write, tk.store.journal, "ours")
        group.start_soon(write, neighbour.journal, "theirs")
    view = await tk.store.journal.view(session.id)
    assert view == await neighbour.journal.view(session.id)
    for name in ("ours", "theirs"):
        mine = [path for path in view.instructions if path.startswith(name)]
        assert mine == [f"{name}{number}" for number in range(20)]
    assert (await tk.doctor()).problems == ()


async def test_a_session_removed_and_made_anew_by_another_process_is_the_new_one(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session("ses_one", title="first"), *a_turn("ses_one", 1))
    neighbour = Neighbour(tk)
    for extra in (0, 3, 14, 15, 16, 40):  # Shorter than what we knew, as long, and longer.
        await tk.store.journal.view("ses_one")
        length = await tk.store.engine.length("ses_one")
        await tk.store.engine.remove({"ses_one": length}, [()])
        neighbour.journal.cache.forget("ses_one")
        title = f"again {extra}"
        events = [e.SessionTouched()] * extra
        await neighbour.journal.create(a_session("ses_one", title=title), *events)
        assert (await tk.store.journal.view("ses_one")).session.title == title
        await tk.store.journal.append("ses_one", e.SessionTouched())
        assert (await tk.doctor()).problems == ()


async def test_a_tail_gives_what_was_and_then_what_comes(tk: Turnkeeper) -> None:
    session = await tk.create(title="a")
    await tk.rename(session.id, "b")
    async with aclosing(tk.tail(session.id)) as events:  # type: ignore[type-var] # A generator can be closed.
        assert [(await anext(events)).seq for _ in range(2)] == [1, 2]
        async with anyio.create_task_group() as group:
            group.start_soon(tk.rename, session.id, "c")
            recorded = await anext(events)
    assert (recorded.seq, recorded.event) == (3, e.SessionTitled(title="c"))


async def test_a_tail_begins_where_it_is_asked_to(tk: Turnkeeper) -> None:
    session = await tk.create(title="a")
    for title in "bcd":
        await tk.rename(session.id, title)
    async with aclosing(tk.tail(session.id, after=2)) as events:  # type: ignore[type-var] # A generator can be closed.
        assert [(await anext(events)).seq for _ in range(2)] == [3, 4]


async def test_a_tail_gives_what_another_process_writes(tk: Turnkeeper) -> None:
    session = await tk.create(title="a")
    neighbour = Neighbour(tk)
    tail = tk.store.journal.tail(session.id, 1, poll_s=0.001)
    async with aclosing(tail) as events, anyio.create_task_group() as group:
        group.start_soon(neighbour.journal.append, session.id, e.SessionTitled(title="b"))
        recorded = await anext(events)
    assert (recorded.seq, recorded.event) == (2, e.SessionTitled(title="b"))


async def _last(events: AsyncIterator[Recorded]) -> None:
    async for _ in events:
        pass


@pytest.mark.parametrize("after", [0, 1, 7])
async def test_a_tail_ends_with_its_session_also_if_another_process_removes_it(tk: Turnkeeper, after: int) -> None:
    session = await tk.create(title="a")
    tail = tk.store.journal.tail(session.id, after, poll_s=0.001)
    with anyio.fail_after(60):
        async with aclosing(tail) as events, anyio.create_task_group() as group:
            group.start_soon(tk.store.engine.remove, {session.id: 1}, [()])
            with pytest.raises(NotFound, match="was removed"):
                await _last(events)


async def test_two_open_stores_on_one_place_see_each_other(url: str, mint: FixedMint) -> None:
    if url == "memory:":
        return  # Each one has a memory of its own.
    async with turnkeeper.open(url, mint=mint) as one, turnkeeper.open(url) as other:
        session = await one.create(title="a")
        assert await other.get(session.id) == session
        await other.rename(session.id, "b")
        await one.archive(session.id)
        assert (await other.get(session.id)).title == "b"
        assert (await other.doctor()).problems == ()
