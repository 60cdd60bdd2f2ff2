"""Stored documents as answers: they say what the values would have said."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model.event import MessageRecorded
from turnkeeper.model.message import Message
from turnkeeper.model.parts import (
    AgentPart,
    CompactionPart,
    FilePart,
    ForeignPart,
    Part,
    ReasoningPart,
    SnapshotPart,
    StepStartPart,
    TextPart,
)
from turnkeeper.model.parts.base import Span
from turnkeeper.model.session import Origin
from turnkeeper.model.value import encode
from turnkeeper.server import handed, wire
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.written import Written
from turnkeeper.testing.builders import a_call, a_session, a_system, a_text, a_user, an_assistant, completed, running

SESSION = "ses_one"
USER = a_user(SESSION, "msg_one")
ANSWER = an_assistant(SESSION, "msg_two", "msg_one")
IMPORTED = {"from": "elsewhere"}
TRAPS = {"seq": 5, "nth": 6, "$extra": {}, "origin": 1, "raw": "raw", "says": ',"seq":7,"nth":8'}
"""What looks like ours in a place where it is somebody else's."""


class Clock:
    def now(self) -> int:
        return 1


def part(kind: type[Part], **given: object) -> Part:
    return kind(id="prt_one", session_id=SESSION, message_id=USER.id, **given)


def every_part() -> Iterator[Part]:
    yield a_text(USER, "prt_one", 'a "quoted" word, and \n\x01')
    yield a_text(USER, "prt_one", ',"seq":1,"nth":2', metadata=TRAPS)
    yield a_text(USER, "prt_one", "imported", extra=IMPORTED)
    yield part(ReasoningPart, text="hm", time=Span(start=1, end=2), metadata=TRAPS)
    yield part(StepStartPart)
    yield part(SnapshotPart, snapshot="abc")
    yield part(AgentPart, name="build")
    yield part(CompactionPart, auto=True)
    yield part(ForeignPart, body=TRAPS)
    yield a_call(ANSWER, "prt_one", running(), metadata=TRAPS)
    yield a_call(ANSWER, "prt_one", completed().but(raw="{}", full="all of it", output_paths=("a",)))
    yield a_call(ANSWER, "prt_one", completed())
    file = FilePart(id="prt_file", session_id=SESSION, message_id=ANSWER.id, seq=4, nth=1, mime="a/b", url="data:")
    yield a_call(ANSWER, "prt_one", completed().but(attachments=(file,), withheld=(file,), structured=TRAPS))


def messages() -> Iterator[Message]:
    yield USER
    yield USER.but(extra=IMPORTED)
    yield USER.but(id="msg-with-strokes")
    yield USER.but(system='say ,"seq":3', tools={"seq": True})
    yield ANSWER
    yield ANSWER.but(structured=TRAPS)


async def stored(message: Message, *parts: Part) -> Written:
    """The documents that a journal writes."""
    engine = MemoryEngine()
    await Journal(engine, Clock(), lambda _: None).create(
        a_session(SESSION), MessageRecorded(message=message, parts=parts)
    )
    return await Queries(engine).written_message(SESSION, message.id)


def told(answer: object) -> Any:
    """An answer as clients read it."""
    return msgspec.json.decode(encode(answer))


def assert_the_same(written: Written) -> None:
    assert told(handed.message(written)) == told(wire.with_parts(written.value()))


@pytest.mark.parametrize("one", list(every_part()), ids=lambda one: type(one).__name__)
async def test_a_part_is_handed_through_as_it_would_be_decoded(one: Part) -> None:
    assert_the_same(await stored(USER, one.but(message_id=USER.id)))


@pytest.mark.parametrize("one", list(messages()), ids=lambda one: one.id)
async def test_a_message_is_handed_through_as_it_would_be_decoded(one: Message) -> None:
    assert_the_same(await stored(one, TextPart(id="prt_one", session_id=SESSION, message_id=one.id, text="a")))


async def test_several_messages_are_told_as_each_of_them_would_be() -> None:
    two = await stored(USER, a_text(USER, "prt_one", "a"), a_text(USER, "prt_two", "b"))
    none = await stored(USER)
    one = await stored(ANSWER, a_text(ANSWER, "prt_one", "c"))
    assert told(handed.messages([two, none, one, two])) == [
        told(handed.message(each)) for each in (two, none, one, two)
    ]


def test_a_session_is_not_even_read_where_clients_know_all_of_it() -> None:
    assert encode(handed.session(b'{"id": this is no JSON}')) == b'{"id": this is no JSON}'


async def test_parts_come_in_their_order_and_not_in_that_of_their_ids() -> None:
    ids = [f"prt_{number}" for number in (9, 10, 2, 11, 1, 3, 4, 5, 6, 7, 8)]
    written = await stored(USER, *(a_text(USER, id, id) for id in ids))
    assert [one["id"] for one in told(handed.message(written))["parts"]] == ids
    assert_the_same(written)


async def test_text_that_still_comes_in_is_put_together() -> None:
    written = await stored(USER, a_text(USER, "prt_one", "half"))
    key, _ = written.parts[0]
    growing = Written(written.info, [*written.parts, ((*key, "0000000004"), b'" and half"')])
    assert told(handed.message(growing))["parts"][0]["text"] == "half and half"


async def test_a_long_text_is_spelt_out() -> None:
    text = 'long "and" ünicode \n' * BLOB_CHARS_MIN
    written = await stored(USER, a_text(USER, "prt_one", text))
    assert told(handed.message(written))["parts"][0]["text"] == text


async def test_what_the_system_told_the_model_is_not_shown() -> None:
    news = await stored(a_system(SESSION, "msg_news", "It is Monday."))
    said = await stored(USER)
    assert handed.messages([news, said, news]) == [handed.message(said)]


@pytest.mark.parametrize(
    "changes",
    [{}, {"origin": Origin(session_id="ses_two")}, {"extra": IMPORTED}, {"metadata": TRAPS}, {"title": '"origin":'}],
    ids=["plain", "fork", "imported", "traps", "title"],
)
def test_a_session_is_handed_through_as_it_would_be_decoded(changes: dict[str, object]) -> None:
    session = a_session(SESSION, **changes)
    assert told(handed.session(encode(session))) == told(wire.session(session))
