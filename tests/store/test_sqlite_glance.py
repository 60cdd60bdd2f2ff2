"""Reads made on the event loop's own thread: only those that nothing holds up."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.sqlite import GLANCE_ROWS, open_sqlite
from turnkeeper.store.engines.sqlite_file import StoreFile
from turnkeeper.store.engines.sqlite_glance import PAUSE_TIMES, PAUSE_TIMES_AGAIN, ROW_MAX, SLOW_S, Glance


class Clock:
    """A clock that a read can let run."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def reading(number: int = 1) -> Callable[[apsw.Connection], int]:
    return lambda connection: int(connection.execute("SELECT ?", (number,)).fetchall()[0][0])


@pytest.fixture
def file(tmp_path: Path) -> StoreFile:
    file = StoreFile(tmp_path / "store.db", busy_timeout_s=1, vfs=None, crash=crash_point)
    file.create()
    return file


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def glance(file: StoreFile, clock: Clock) -> Iterator[Glance]:
    glance = Glance(file, clock)
    glance.open()
    yield glance
    glance.close()


def test_a_few_rows_are_read_at_once(glance: Glance) -> None:
    seen = glance.read(reading(7))
    assert seen is not None
    assert seen.value == 7


def test_nothing_is_read_before_it_is_open_nor_after_it_is_closed(file: StoreFile) -> None:
    glance = Glance(file)
    assert glance.read(reading()) is None
    glance.open()
    assert glance.read(reading()) is not None
    glance.close()
    glance.open()
    assert glance.read(reading()) is None


@pytest.mark.parametrize(("reads", "times"), [(1, PAUSE_TIMES), (2, PAUSE_TIMES_AGAIN), (3, PAUSE_TIMES_AGAIN)])
def test_after_a_slow_read_the_threads_take_over_for_a_while(
    glance: Glance, clock: Clock, reads: int, times: int
) -> None:
    def slow(connection: apsw.Connection) -> int:
        clock.now += SLOW_S * 2
        return 1

    for _ in range(reads):
        clock.now += 10
        begun = clock.now
        assert glance.read(slow) is not None
    assert glance.read(reading()) is None
    clock.now = begun + SLOW_S * 2 * times - 0.001
    assert glance.read(reading()) is None
    clock.now = begun + SLOW_S * 2 * times + 0.001
    assert glance.read(reading()) is not None


def test_a_slow_read_after_a_quick_one_is_bad_luck(glance: Glance, clock: Clock) -> None:
    def slow(connection: apsw.Connection) -> int:
        clock.now += SLOW_S * 2
        return 1

    assert glance.read(slow) is not None
    clock.now += 10
    assert glance.read(reading()) is not None
    begun = clock.now
    assert glance.read(slow) is not None
    clock.now = begun + SLOW_S * 2 * PAUSE_TIMES + 0.001
    assert glance.read(reading()) is not None


def test_a_loop_of_reads_goes_to_a_thread_now_and_then(glance: Glance) -> None:
    seen = [glance.read(reading()) is not None for _ in range(2 * ROW_MAX + 2)]
    assert seen.count(False) == 2
    assert seen.index(False) == ROW_MAX


def test_who_finds_it_in_use_does_not_wait(glance: Glance) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def held(connection: apsw.Connection) -> int:
        inside.set()
        go_on.wait()
        return 1

    other = threading.Thread(target=glance.read, args=(held,))
    other.start()
    inside.wait()
    assert glance.read(reading()) is None
    go_on.set()
    other.join()
    assert glance.read(reading()) is not None


def test_a_lock_of_another_process_is_not_waited_for(glance: Glance, file: StoreFile) -> None:
    other = file.connect()
    other.execute("BEGIN IMMEDIATE")

    def wants_the_lock(connection: apsw.Connection) -> int:
        connection.execute("BEGIN IMMEDIATE")
        return 1

    assert glance.read(wants_the_lock) is None
    file.disconnect(other)


async def test_a_log_is_read_whole_however_much_is_new(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store.db")
    entries = [b'{"n":%d}' % number for number in range(3 * GLANCE_ROWS)]
    await engine.append("log", 0, entries)
    for after in (0, 1, len(entries) - GLANCE_ROWS - 1, len(entries) - GLANCE_ROWS, len(entries) - 1, len(entries)):
        assert await engine.read("log", after=after) == entries[after:]
        for limit in (0, 1, GLANCE_ROWS, GLANCE_ROWS + 1, GLANCE_ROWS + 2):
            assert await engine.read("log", after=after, limit=limit) == entries[after:][:limit]
    await engine.aclose()


async def test_a_closed_store_says_so_also_to_those_who_only_glance(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store.db")
    await engine.put({("a", "b"): b"{}"})
    assert await engine.get([("a", "b")]) == [b"{}"]
    assert await engine.get([("a", "b")]) == [b"{}"]
    await engine.aclose()
    with pytest.raises(StoreUnavailable, match="closed"):
        await engine.get([("a", "b")])
