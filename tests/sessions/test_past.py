"""The past of a session: what a reader would have found after each of its events."""

from typing import NamedTuple

import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import encode
from turnkeeper.store.queries import Queries
from turnkeeper.testing.builders import a_session, a_text, a_user, every_event

SESSION = "ses_all"


class Reading(NamedTuple):
    """All that a reader finds in a session."""

    session: Session
    messages: list[MessageWithParts]
    waiting: list[MessageWithParts]
    todos: tuple[Todo, ...]
    diffs: tuple[FileDiff, ...]


async def read(queries: Queries, session_id: str) -> Reading:
    messages: list[MessageWithParts] = []
    before: str | None = None
    while True:
        page = await queries.messages(session_id, limit=2, before=before)
        messages = [*page.items, *messages]
        if (before := page.older) is None:
            break
    todos, diffs = await queries.todos(session_id), await queries.diffs(session_id)
    return Reading(await queries.session(session_id), messages, await queries.waiting(session_id), todos, diffs)


async def test_after_each_kind_of_event_the_past_is_what_a_reader_found_then(tk: Turnkeeper) -> None:
    created, *rest = every_event(SESSION)
    assert isinstance(created, e.SessionCreated)
    view = await tk.store.journal.create(created.session)
    found: list[tuple[SessionView, Reading]] = [(view, await read(tk.store.queries, SESSION))]
    for event in rest:
        view = await tk.store.journal.append(SESSION, event)
        found.append((view, await read(tk.store.queries, SESSION)))
    for seq, (then, reading) in enumerate(found, 1):
        past = await tk.at(SESSION, seq)
        assert (past.view, await read(past.queries, SESSION)) == (then, reading), f"after event {seq}"
    assert len({encode(reading.session) for _, reading in found}) > 10, "or the past would be the present"


async def test_a_long_text_that_was_replaced_since_is_read_in_the_past(tk: Turnkeeper) -> None:
    user = a_user(SESSION, "msg_1")
    long = a_text(user, "prt_1", "x" * BLOB_CHARS_MIN)
    await tk.store.journal.create(a_session(SESSION), e.MessageRecorded(message=user, parts=(long,)))
    [message] = (await tk.messages(SESSION)).items
    [part] = message.parts
    await tk.update_part(part.but(text="short"))
    [then] = (await (await tk.at(SESSION, 2)).messages()).items
    assert then == message
    assert [one async for one in (await tk.at(SESSION, 2)).stream()] == [message]
    [now] = (await (await tk.at(SESSION, 3)).messages()).items
    assert now.parts == (part.but(text="short"),)


async def test_an_event_that_a_session_does_not_have_is_refused(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session(SESSION), e.SessionTouched())
    for seq in (-1, 0, 3):
        with pytest.raises(Invalid, match=f"has no event {seq}; its events are numbered from 1 to 2"):
            await tk.at(SESSION, seq)
    with pytest.raises(NotFound, match="there is no session 'ses_none'"):
        await tk.at("ses_none", 1)


async def test_looking_at_the_past_writes_nothing(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session(SESSION), e.SessionTitled(title="Later"))
    before = await tk.store.engine.scan(())
    past = await tk.at(SESSION, 1)
    assert (await past.session()).title == "A session"
    assert (await past.todos(), await past.diffs()) == ((), ())
    assert await tk.store.engine.scan(()) == before
