"""Passing messages between the processes of a Postgres store: in order, bounded, and dropped rather than waited for."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psycopg
import pytest
from stores import store_url

from turnkeeper.model.notification import Delta
from turnkeeper.store.engine import Messenger
from turnkeeper.store.engines import open_engine
from turnkeeper.store.engines.postgres import PostgresEngine, live, notify
from turnkeeper.store.engines.postgres.address import parse
from turnkeeper.store.fanout import _messages, _read

DEADLINE_S = 60
HOSTILE = (
    "'; DROP TABLE log; -- %s $1 {}",
    "line\nbreak\r\ndata: x\n\nid: 9\x00\x01\x7f\x1b[31m",
    "\u2028\u2029\ufeff\u202e\ufffe\U0010ffff e\u0301 👩‍👩‍👧 \ud7ff",
    '"\\"\\\\n\\u0000 \x85 <script>alert(1)</script>',
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return store_url("postgres", tmp_path)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresEngine]:
    engine = await open_engine(url)
    assert isinstance(engine, PostgresEngine)
    assert isinstance(engine, Messenger)
    try:
        yield engine
    finally:
        await engine.aclose()


class Heard:
    """What was heard, and a way to wait for it."""

    def __init__(self, engine: PostgresEngine) -> None:
        self.messages: list[str] = []
        self._news = anyio.Event()
        self.end = engine.hear(self._take)

    def _take(self, messages: Sequence[str]) -> None:
        self.messages += messages
        self._news.set()

    async def wait(self, message: str) -> None:
        with anyio.fail_after(DEADLINE_S):
            while message not in self.messages:
                self._news = anyio.Event()
                await self._news.wait()


async def connected(sender: PostgresEngine, heard: Heard, word: str = "first") -> None:
    """Send until it is heard: the first ones may be lost while connections are made."""
    with anyio.fail_after(DEADLINE_S):
        while word not in heard.messages:
            if sender.is_heard():
                sender.send([word])
            with anyio.move_on_after(0.2):
                await heard.wait(word)


async def test_messages_arrive_in_order_and_those_of_the_own_process_do_not(url: str) -> None:
    async with opened(url) as one, opened(url) as two:
        heard, own = Heard(one), Heard(two)
        await connected(two, heard)
        sent = [f"{number} {'x' * (number % 500)}" for number in range(2000)]
        for begin in range(0, len(sent), 100):
            assert two.send(sent[begin : begin + 100]) == 0
        await heard.wait(sent[-1])
        assert [one for one in heard.messages if one != "first"] == sent
        assert own.messages == []


async def test_nobody_is_sent_anything_by_a_process_that_nobody_hears(url: str) -> None:
    async with opened(url) as alone:
        with anyio.fail_after(DEADLINE_S):
            assert alone.is_heard()  # It has not asked yet.
            while alone.is_heard():
                await anyio.sleep(0)
        async with opened(url) as other:
            heard = Heard(other)
            with anyio.fail_after(DEADLINE_S):
                while not alone.is_heard():  # The other one has said that it hears.
                    await anyio.sleep(0)
            await connected(alone, heard)


async def test_a_lost_connection_is_made_again_and_messages_go_on(url: str) -> None:
    mine = f"messages{os.getpid()}"
    async with opened(f"{url}&application_name={mine}") as one, opened(f"{url}&application_name={mine}") as two:
        heard = Heard(one)
        await connected(two, heard)
        with psycopg.connect(autocommit=True, **dict(parse(url).parameters)) as admin:  # type: ignore[arg-type]
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (mine,))
        await connected(two, heard, "again")


async def test_more_than_may_wait_and_messages_that_are_too_long_are_dropped_and_counted(url: str) -> None:
    outbox = live.Outbox()
    message = "x" * live.MESSAGE_BYTES_MAX
    fit = live.WAITING_BYTES_MAX // live.MESSAGE_BYTES_MAX
    assert outbox.add([f"{message}x"]) == 1
    assert outbox.add([message] * (fit + 5)) == 5
    taken = 0
    while batch := outbox.take():
        assert sum(map(len, batch)) < live.STATEMENT_BYTES_MAX + live.MESSAGE_BYTES_MAX
        taken += len(batch)
    assert taken == fit
    assert outbox.add([message]) == 0


async def test_payloads_are_below_the_limit_of_postgres(url: str) -> None:
    async with opened(url) as one, opened(url) as two:
        heard = Heard(one)
        await connected(two, heard)
        sent = [letter * (live.MESSAGE_BYTES_MAX // len(letter.encode())) for letter in "aé漢👍"]
        assert two.send(sent) == 0
        await heard.wait(sent[-1])
        assert heard.messages[-len(sent) :] == sent
    packed = list(notify.packed("w" * 32, [*sent, "short", "short"]))
    assert [len(one.encode()) < 8000 for one in packed] == [True] * (len(sent) + 1)


@pytest.mark.parametrize("text", [*HOSTILE, "漢" * 30_000, "\x00" * 20_000, "", "".join(HOSTILE) * 500])
async def test_a_delta_of_any_length_and_text_arrives_as_it_was(url: str, text: str) -> None:
    delta = Delta(
        session_id="ses_1",
        directory="/" + "d" * 5000,
        message_id="msg_1",
        part_id="prt_1",
        field="text",
        delta=text,
        offset=7,
    )
    async with opened(url) as one, opened(url) as two:
        heard = Heard(one)
        await connected(two, heard)
        messages = list(_messages(delta, two.message_bytes_max))
        assert two.send([*messages, "last"]) == 0
        await heard.wait("last")
    arrived = [_read(one) for one in heard.messages if one not in ("first", "last")]
    assert "".join(one.delta for one in arrived) == text
    length = 7
    for piece in arrived:
        assert piece.offset == length
        length += len(piece.delta)


async def test_who_may_not_read_the_store_does_not_know_its_channels(url: str) -> None:
    async with opened(url) as one, opened(url) as two:
        heard = Heard(one)
        await connected(two, heard)
        schema = parse(url).schema
        with psycopg.connect(autocommit=True, **dict(parse(url).parameters)) as other:  # type: ignore[arg-type]
            [(number,)] = other.execute(f'SELECT value FROM "{schema}".meta WHERE name = %s'.encode(), ("channel",))
            assert len(number) == 32
            # What somebody else sends who knows it is dropped or delivered, and ends nothing.
            other.execute("SELECT pg_notify(%s, '')", (f"turnkeeper_live_{number}",))
            other.execute("SELECT pg_notify(%s, E'\\n\\n?')", (f"turnkeeper_here_{number}",))
        await connected(two, heard, "still there")
