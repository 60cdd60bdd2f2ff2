"""Jobs that are written on the event loop's own thread: only those that have the store to themselves."""

import asyncio
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import LogConflict
from turnkeeper.store.engines.sqlite import open_sqlite
from turnkeeper.store.engines.sqlite_alone import (
    BYTES_MAX,
    CROWD_S,
    PAUSE_TIMES,
    ROW_MAX,
    SLOW_S,
    Alone,
)


class Clock:
    """A clock that runs when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def alone(clock: Clock) -> Alone:
    return Alone(clock)


def may(alone: Alone, log: str, *, is_new: bool = False, size: int = 100) -> bool:
    return alone.may_write(log, is_new=is_new, size=size)


def commit(alone: Alone, clock: Clock, took: float) -> None:
    with alone:
        clock.now += took


def test_one_session_after_the_other_is_alone_two_at_a_time_are_not(alone: Alone, clock: Clock) -> None:
    assert [may(alone, "ses_1"), may(alone, "ses_1")] == [True, True]
    assert [may(alone, "ses_2"), may(alone, "ses_2"), may(alone, "ses_1")] == [False, False, False]
    clock.now += CROWD_S
    assert [may(alone, "ses_1"), may(alone, "ses_1")] == [True, True]
    clock.now += CROWD_S
    assert may(alone, "ses_2")


def test_new_sessions_are_no_crowd(alone: Alone) -> None:
    assert [may(alone, f"ses_{number}", is_new=True) for number in range(9)] == [True] * 9


def test_a_large_job_and_every_now_and_then_a_small_one_go_to_the_thread(alone: Alone) -> None:
    assert not may(alone, "ses_1", size=BYTES_MAX + 1)
    assert [may(alone, "ses_1") for _ in range(ROW_MAX + 2)] == [*[True] * ROW_MAX, False, True]


def test_after_two_slow_commits_the_thread_waits_for_the_disk(alone: Alone, clock: Clock) -> None:
    slow = SLOW_S * 2
    commit(alone, clock, slow)
    assert may(alone, "ses_1")  # It may have been bad luck.
    commit(alone, clock, SLOW_S / 2)
    commit(alone, clock, slow)
    assert may(alone, "ses_1")
    commit(alone, clock, slow)
    assert not may(alone, "ses_1")
    clock.now += slow * PAUSE_TIMES
    assert may(alone, "ses_1")
    commit(alone, clock, slow)  # Nothing has changed.
    assert not may(alone, "ses_1")


def test_another_process_at_work_is_left_to_the_thread(alone: Alone, clock: Clock) -> None:
    alone.disturbed()
    assert not may(alone, "ses_1")
    clock.now += CROWD_S
    assert may(alone, "ses_1")


class Watch:
    """A crash hook that notes on which thread each commit is made, and may end one."""

    def __init__(self) -> None:
        self.here: list[bool] = []
        self.ends_at = ""

    def __call__(self, point: str) -> None:
        crash_point(point)
        if point == "sqlite.begin":
            self.here.append(threading.current_thread() is threading.main_thread())
        if point == self.ends_at:
            self.ends_at = ""
            raise KeyboardInterrupt


async def test_a_lone_append_is_written_where_it_is_made(tmp_path: Path) -> None:
    watch = Watch()
    engine = await open_sqlite(tmp_path / "store", crash=watch, clock=Clock())
    for number in range(3):
        await engine.append("ses_1", number, [b"x"], {("a", str(number)): b"x"})
    assert watch.here == [False, True, True]  # The thread makes the connection.
    with pytest.raises(LogConflict):
        await engine.append("ses_1", 1, [b"x"], {("a", "never"): b"x"})
    assert len(await engine.scan(("a",))) == 3
    await engine.aclose()


async def test_the_loop_does_not_wait_for_another_process(tmp_path: Path) -> None:
    watch = Watch()
    engine = await open_sqlite(tmp_path / "store", crash=watch, clock=Clock())
    await engine.append("ses_1", 0, [b"x"])
    with closing(apsw.Connection(str(tmp_path / "store"))) as other:
        other.execute("BEGIN IMMEDIATE")
        append = asyncio.create_task(engine.append("ses_1", 1, [b"y"]))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not append.done()
        other.execute("COMMIT")
    await append
    assert watch.here == [False, False]
    assert await engine.read("ses_1") == [b"x", b"y"]
    await engine.aclose()


@pytest.mark.parametrize("point", ["sqlite.begin", "sqlite.before-commit"])
async def test_an_append_that_is_broken_off_leaves_nothing_behind(tmp_path: Path, point: str) -> None:
    watch = Watch()
    engine = await open_sqlite(tmp_path / "store", crash=watch, clock=Clock())
    await engine.append("ses_1", 0, [b"x"])
    watch.ends_at = point
    with pytest.raises(KeyboardInterrupt):
        await engine.append("ses_1", 1, [b"y"])
    await engine.append("ses_1", 1, [b"z"])
    assert await engine.read("ses_1") == [b"x", b"z"]
    assert watch.here == [False, True, True]
    await engine.aclose()


async def test_what_cannot_be_written_is_told_and_the_next_append_is_made(tmp_path: Path) -> None:
    watch = Watch()
    engine = await open_sqlite(tmp_path / "store", crash=watch, clock=Clock())
    await engine.append("ses_1", 0, [b"x"])
    wrong: Any = ["no bytes"]
    with pytest.raises(TypeError):
        await engine.append("ses_1", 1, [b"y"], {("a",): wrong})
    await engine.append("ses_1", 1, [b"y"])
    assert watch.here == [False, True, True]
    assert await engine.read("ses_1") == [b"x", b"y"]
    await engine.aclose()
