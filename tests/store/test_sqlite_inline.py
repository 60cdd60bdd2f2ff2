"""Reads made on the event loop's own thread: only those that are quick and wait for nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.sqlite.connection import StoreFile
from turnkeeper.store.engines.sqlite.engine import INLINE_ROWS_MAX
from turnkeeper.store.engines.sqlite.read import InlinePolicy, SqliteReader
from turnkeeper.store.sqlite_layout import LAYOUT, open_sqlite


def is_inline(connection: apsw.Connection) -> bool:
    """What a read sees of the thread it is made on."""
    return threading.current_thread() is threading.main_thread()


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[SqliteReader]:
    file = StoreFile(tmp_path / "store.db", LAYOUT, busy_timeout_s=30, vfs=None, crash=crash_point)
    file.create()
    reader = SqliteReader(file)
    yield reader
    reader.close()
    reader.join()


def test_quick_reads_are_inline_and_give_way_now_and_then() -> None:
    policy = InlinePolicy()
    allowed = []
    for _ in range(100):
        allowed.append(policy.allows())
        if allowed[-1]:
            policy.charge(policy.LIMIT_S / 9.5)
    assert allowed[:11] == [True] * 10 + [False]
    assert 5 < allowed.count(False) < 15


def test_slow_reads_are_nearly_all_made_by_threads() -> None:
    policy = InlinePolicy()
    allowed = []
    for _ in range(100):
        allowed.append(policy.allows())
        if allowed[-1]:
            policy.charge(policy.LIMIT_S * 24.5)
    assert allowed.count(True) == 4


async def test_the_first_read_is_made_by_a_thread_which_opens_the_connections(reader: SqliteReader) -> None:
    assert [await reader.read_few(is_inline) for _ in range(3)] == [False, True, True]
    assert not await reader.read(is_inline)


async def test_an_inline_read_does_not_wait_for_a_lock(reader: SqliteReader, tmp_path: Path) -> None:
    await reader.read_few(is_inline)
    inline: list[bool] = []
    has_given_up = threading.Event()

    def want_a_lock(connection: apsw.Connection) -> None:
        inline.append(is_inline(connection))
        if inline == [True]:
            connection.execute("BEGIN IMMEDIATE")
        else:
            has_given_up.set()

    def hold_a_lock(is_held: threading.Event) -> None:
        with closing(apsw.Connection(str(tmp_path / "store.db"))) as other:
            other.execute("BEGIN IMMEDIATE")
            is_held.set()
            has_given_up.wait(2)  # A read that waited would get the lock after this time.

    is_held = threading.Event()
    holding = asyncio.create_task(asyncio.to_thread(hold_a_lock, is_held))
    assert await asyncio.to_thread(is_held.wait, 30)
    await reader.read_few(want_a_lock)
    await holding
    assert inline == [True, False]


async def test_a_read_that_finds_the_inline_connection_in_use_goes_to_a_thread(reader: SqliteReader) -> None:
    await reader.read_few(is_inline)
    is_held, may_end = threading.Event(), threading.Event()

    def hold(connection: apsw.Connection) -> None:
        is_held.set()
        assert may_end.wait(30)

    other = asyncio.create_task(asyncio.to_thread(asyncio.run, reader.read_few(hold)))
    assert await asyncio.to_thread(is_held.wait, 30)
    assert not await reader.read_few(is_inline)
    may_end.set()
    await other
    # The other read was slow, so it is paid back first.
    assert any([await reader.read_few(is_inline) for _ in range(20_000)])


async def test_a_log_is_read_completely_however_much_is_new(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store.db")
    rows = INLINE_ROWS_MAX
    entries = [b'{"n":%d}' % number for number in range(3 * rows)]
    await engine.append("log", 0, entries)
    for after in (0, 1, len(entries) - rows - 1, len(entries) - rows, len(entries) - 1, len(entries)):
        assert await engine.read("log", after=after) == entries[after:]
        for limit in (0, 1, rows, rows + 1, rows + 2):
            assert await engine.read("log", after=after, limit=limit) == entries[after:][:limit]
    await engine.aclose()


async def test_a_closed_store_refuses_inline_reads_too(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store.db")
    await engine.put({("a", "b"): b"{}"})
    assert await engine.get([("a", "b")]) == [b"{}"]
    assert await engine.get([("a", "b")]) == [b"{}"]
    await engine.aclose()
    with pytest.raises(StoreUnavailable, match="closed"):
        await engine.get([("a", "b")])
