"""Read a history and change single pieces of it."""

import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN, STREAM_PAGE
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.page import Page
from turnkeeper.model.parts import TextPart
from turnkeeper.model.refusal import Busy, Invalid, NotFound
from turnkeeper.testing.builders import a_session, a_text, a_turn, a_user, an_assistant, every_event

OWN = "ses_own"


def message(number: int) -> Event:
    user = a_user(OWN, f"msg_{number}")
    parts = (a_text(user, f"prt_{number}z", "first"), a_text(user, f"prt_{number}a", "second"))
    return e.MessageRecorded(message=user, parts=parts)


async def a_history(tk: Turnkeeper, count: int) -> None:
    # Ids fall while the history rises: nothing may be ordered by them.
    await tk.store.journal.create(a_session(OWN), *(message(number) for number in reversed(range(count))))


def names(page: Page[MessageWithParts]) -> list[str]:
    return [one.info.id for one in page.items]


async def test_the_newest_page_comes_in_the_order_it_happened(tk: Turnkeeper) -> None:
    await a_history(tk, 10)
    page = await tk.messages(OWN, limit=3)
    assert names(page) == ["msg_2", "msg_1", "msg_0"]
    assert page.newer is None
    assert page.older is not None


async def test_parts_come_in_the_order_they_were_made(tk: Turnkeeper) -> None:
    await a_history(tk, 1)
    [one] = (await tk.messages(OWN)).items
    assert [part.id for part in one.parts] == ["prt_0z", "prt_0a"]


@pytest.mark.parametrize("limit", [1, 3, 5, 10, 11])
async def test_pages_lead_to_the_beginning_and_back_to_the_end(tk: Turnkeeper, limit: int) -> None:
    await a_history(tk, 10)
    everything = [f"msg_{number}" for number in reversed(range(10))]
    page = await tk.messages(OWN, limit=limit)
    found = names(page)
    while page.older is not None:
        page = await tk.messages(OWN, limit=limit, before=page.older)
        found = names(page) + found
    assert found == everything
    found = names(page)
    while page.newer is not None:
        page = await tk.messages(OWN, limit=limit, after=page.newer)
        found += names(page)
    assert found == everything


async def test_a_cursor_survives_what_is_written_meanwhile(tk: Turnkeeper) -> None:
    await a_history(tk, 9)
    page = await tk.messages(OWN, limit=3)
    await tk.store.journal.append(OWN, message(100))
    await tk.remove_message(OWN, "msg_2")  # The one the cursor stands before.
    await tk.remove_message(OWN, "msg_4")
    older = await tk.messages(OWN, limit=3, before=page.older)
    assert names(older) == ["msg_6", "msg_5", "msg_3"]
    newer = await tk.messages(OWN, limit=5, after=older.newer)
    assert names(newer) == ["msg_1", "msg_0", "msg_100"]


async def test_a_page_between_two_cursors_holds_what_is_between(tk: Turnkeeper) -> None:
    await a_history(tk, 9)
    newest = await tk.messages(OWN, limit=2)
    middle = await tk.messages(OWN, limit=3, before=newest.older)
    oldest = await tk.messages(OWN, limit=2, before=middle.older)
    between = await tk.messages(OWN, limit=50, after=oldest.newer, before=newest.older)
    assert names(between) == names(middle)


async def test_an_empty_history_is_an_empty_page(tk: Turnkeeper) -> None:
    session = await tk.create()
    assert await tk.messages(session.id) == Page(items=())
    with pytest.raises(NotFound):
        await tk.messages("ses_none")
    with pytest.raises(Invalid):
        await tk.messages(session.id, before="nonsense")


@pytest.mark.parametrize("count", [0, 1, STREAM_PAGE - 1, STREAM_PAGE, STREAM_PAGE + 1, 2 * STREAM_PAGE])
async def test_a_stream_gives_every_message_newest_first_or_last(tk: Turnkeeper, count: int) -> None:
    await a_history(tk, count)
    backwards = [one.info.id async for one in tk.iter_messages(OWN)]
    assert backwards == [f"msg_{number}" for number in range(count)]
    assert [one.info.id async for one in tk.iter_messages(OWN, reverse=False)] == backwards[::-1]


async def test_long_text_comes_back_whole(tk: Turnkeeper) -> None:
    text = "long " * BLOB_CHARS_MIN
    user = a_user(OWN, "msg_long", system=text)
    await tk.store.journal.create(
        a_session(OWN, metadata={"long": text}),
        e.MessageRecorded(message=user, parts=(a_text(user, "prt_long", text),)),
    )
    one = await tk.message(OWN, "msg_long")
    assert one.info == user.but(seq=2)
    assert one.parts == (a_text(user, "prt_long", text, seq=2),)
    assert [one async for one in tk.iter_messages(OWN)] == [one]
    assert (await tk.messages(OWN)).items == (one,)
    assert (await tk.get(OWN)).metadata == {"long": text}
    assert (await tk.list()).items[0].metadata == {"long": text}


async def test_a_part_recorded_anew_keeps_its_place(tk: Turnkeeper) -> None:
    await a_history(tk, 2)
    before = await tk.message(OWN, "msg_1")
    first = before.parts[0]
    assert isinstance(first, TextPart)
    changed = await tk.update_part(first.but(text="changed", seq=0, nth=9))
    assert changed == first.but(text="changed")
    assert await tk.message(OWN, "msg_1") == before.but(parts=(changed, before.parts[1]))
    assert (await tk.doctor()).problems == ()


async def test_a_part_that_is_not_there_cannot_be_recorded_anew(tk: Turnkeeper) -> None:
    await a_history(tk, 1)
    with pytest.raises(NotFound, match="there is no part 'prt_none'"):
        await tk.update_part(a_text(a_user(OWN, "msg_0"), "prt_none", "x"))
    with pytest.raises(NotFound):
        await tk.update_part(a_text(a_user("ses_none", "msg_0"), "prt_0z", "x"))


async def test_a_part_of_another_session_cannot_be_recorded_anew(tk: Turnkeeper) -> None:
    await a_history(tk, 1)
    other = await tk.create()
    with pytest.raises(Invalid, match="belongs to session 'ses_own'"):
        await tk.update_part(a_text(a_user(other.id, "msg_0"), "prt_0z", "x"))


async def test_a_part_leaves_its_message(tk: Turnkeeper) -> None:
    await a_history(tk, 1)
    await tk.remove_part(OWN, "msg_0", "prt_0z")
    assert [part.id for part in (await tk.message(OWN, "msg_0")).parts] == ["prt_0a"]
    for wrong in ((OWN, "msg_0", "prt_0z"), (OWN, "msg_9", "prt_0a"), ("ses_none", "msg_0", "prt_0a")):
        with pytest.raises(NotFound):
            await tk.remove_part(*wrong)
    assert (await tk.doctor()).problems == ()


async def test_a_message_leaves_the_history_with_its_parts(tk: Turnkeeper) -> None:
    await a_history(tk, 3)
    await tk.remove_message(OWN, "msg_1")
    assert names(await tk.messages(OWN)) == ["msg_2", "msg_0"]
    assert await tk.store.engine.scan(("part", "msg_1")) == []
    with pytest.raises(NotFound):
        await tk.remove_message(OWN, "msg_1")
    view = await tk.store.journal.view(OWN)
    assert (view.messages, view.parts) == (2, 4)
    assert (await tk.doctor()).problems == ()


async def test_the_message_of_an_open_turn_cannot_be_removed(tk: Turnkeeper) -> None:
    turn = an_assistant(OWN, "msg_open", "msg_0")
    await tk.store.journal.create(a_session(OWN), e.TurnStarted(message=turn))
    with pytest.raises(Busy, match="abort the turn first"):
        await tk.remove_message(OWN, "msg_open")


async def test_text_added_in_pieces_is_read_whole_before_and_after_the_turn_ends(tk: Turnkeeper) -> None:
    started, ended = a_turn(OWN, 1)[:7], a_turn(OWN, 1)[13]
    await tk.store.journal.create(a_session(OWN), *started)
    half = await tk.message(OWN, "msg_a1_own")
    assert [part.text for part in half.parts if isinstance(part, TextPart)] == ["Done"]
    await tk.store.journal.append(OWN, ended)
    whole = await tk.message(OWN, "msg_a1_own")
    assert whole.parts == half.parts
    text = next(part for part in whole.parts if isinstance(part, TextPart))
    assert await tk.update_part(text.but(text="Other")) == text.but(text="Other")
    assert (await tk.message(OWN, "msg_a1_own")).parts == tuple(
        part.but(text="Other") if part.id == text.id else part for part in whole.parts
    )
    assert (await tk.doctor()).ok


async def test_a_long_piece_added_to_a_part_is_read_back_in_its_place(tk: Turnkeeper) -> None:
    piece = "piece " * BLOB_CHARS_MIN
    started, ended = a_turn(OWN, 1)[:6], a_turn(OWN, 1)[13]
    await tk.store.journal.create(a_session(OWN), *started)
    for offset, text in ((0, "a "), (2, piece), (2 + len(piece), " z")):
        more = e.PartExtended(message_id="msg_a1_own", part_id="prt_1_own_c", offset=offset, text=text)
        await tk.store.journal.append(OWN, more)
    open_parts = (await tk.message(OWN, "msg_a1_own")).parts
    assert [part.text for part in open_parts if isinstance(part, TextPart)] == [f"a {piece} z"]
    await tk.store.journal.append(OWN, ended)
    assert (await tk.message(OWN, "msg_a1_own")).parts == open_parts
    assert (await tk.doctor()).problems == ()


async def test_diffs_are_kept_apart_from_the_session(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session(OWN), *every_event(OWN)[1:])
    [diff] = await tk.diffs(OWN)
    assert diff.file == "a.py"


async def test_words_are_found_in_titles_and_parts_newest_first(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session("ses_a", title="Parser work"))
    await tk.store.journal.append("ses_a", *a_turn("ses_a", 1, answer="the parser"))
    await tk.store.journal.create(a_session("ses_b"), *a_turn("ses_b", 1, prompt="Fix the PARSER now"))
    found = await tk.search("pars")
    assert [(one.session_id, one.part_id) for one in found] == [
        ("ses_b", "prt_1_b_a"),
        ("ses_a", "prt_1_a_c"),
        ("ses_a", None),
    ]
    assert [one.part_id for one in await tk.search("parser", session_id="ses_b")] == ["prt_1_b_a"]
    assert await tk.search("parser nowhere") == []
    assert len(await tk.search("parser", limit=1)) == 1


async def test_a_title_that_nobody_gave_is_not_searched(tk: Turnkeeper) -> None:
    session = await tk.create()
    assert await tk.search("session") == []
    await tk.rename(session.id, "A session of weather")
    assert [one.session_id for one in await tk.search("session")] == [session.id]
    await tk.rename(session.id, session.title)
    assert await tk.search("session") == []


async def test_words_inside_a_blob_are_found(tk: Turnkeeper) -> None:
    text = "filler " * BLOB_CHARS_MIN
    user = a_user(OWN, "msg_long")
    part = a_text(user, "prt_long", "needle " + text)
    await tk.store.journal.create(a_session(OWN), e.MessageRecorded(message=user, parts=(part,)))
    assert [one.part_id for one in await tk.search("needle")] == ["prt_long"]


async def test_words_that_were_edited_out_are_no_longer_found(tk: Turnkeeper) -> None:
    user = a_user(OWN, "msg_one")
    part = a_text(user, "prt_one", "needle")
    await tk.store.journal.create(a_session(OWN, title="haystack"), e.MessageRecorded(message=user, parts=(part,)))
    await tk.update_part(part.but(text=""))
    assert await tk.search("needle") == []
    await tk.rename(OWN, "barn")
    assert await tk.search("haystack") == []
