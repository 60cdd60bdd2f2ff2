"""The hand that writes to a SQLite store: when it tidies, told by a clock that the tests hold."""

from pathlib import Path

import pytest

from turnkeeper.store.engines.sqlite_batch import Append
from turnkeeper.store.engines.sqlite_file import StoreFile
from turnkeeper.store.engines.sqlite_hand import (
    CHECKPOINT_TIMES,
    PAUSE_TIMES_AT_REST,
    PAUSE_TIMES_AT_WORK,
    REST_S,
    WORK_S,
    Hand,
)
from turnkeeper.store.engines.sqlite_words import WORKED_OFF_MAX


class Clock:
    """A clock that a commit, or a piece of tidying, lets run."""

    def __init__(self, point: str, takes: float) -> None:
        self.now, self._point, self._takes = 100.0, point, takes

    def __call__(self) -> float:
        return self.now

    def crash(self, passed: str) -> None:
        if passed == self._point:
            self.now += self._takes


def test_the_hand_tidies_at_rest_often_and_at_work_seldom(tmp_path: Path) -> None:
    took = 1 / 64
    clock = Clock("sqlite.before-tidied", took)
    file = StoreFile(tmp_path / "store", busy_timeout_s=1, vfs=None, crash=clock.crash)
    file.create()
    hand = Hand(file, clock=clock)
    many = [(f"t/{number:04d}", "tide") for number in range(4 * WORKED_OFF_MAX)]
    hand.write([Append("ses_1", 0, [b"x"], (), many, None)])
    assert hand.until_tidying() == pytest.approx(REST_S)
    hand.tidy(is_idle=True)  # Too early: nothing is done.
    clock.now += REST_S
    hand.tidy(is_idle=False)
    assert hand.until_tidying() == 0
    hand.tidy(is_idle=True)
    assert hand.until_tidying() == pytest.approx(PAUSE_TIMES_AT_REST * took)
    clock.now += PAUSE_TIMES_AT_REST * took
    assert hand.until_tidying() == 0
    begun = clock.now
    for seq in range(1, 1000):  # Somebody is always at work; it must be done some time, but not at once.
        hand.write([Append("ses_1", seq, [b"x"], (), (), None)])
        if hand.until_tidying() == 0:
            break
        assert hand.until_tidying() == pytest.approx(min(REST_S, begun + WORK_S - clock.now))
        clock.now += REST_S / 2
    assert clock.now - begun == pytest.approx(WORK_S, abs=REST_S)
    hand.tidy(is_idle=True)
    tidied = clock.now
    clock.now += REST_S / 2
    hand.write([Append("ses_1", seq + 1, [b"x"], (), (), None)])
    assert hand.until_tidying() == pytest.approx(REST_S)
    while clock.now < tidied + PAUSE_TIMES_AT_WORK * took:
        assert hand.until_tidying() != 0
        clock.now += REST_S / 2
        seq += 1
        hand.write([Append("ses_1", seq + 1, [b"x"], (), (), None)])
    assert hand.until_tidying() == 0
    for _ in range(2):
        hand.tidy(is_idle=True)
        clock.now += 1
    assert hand.until_tidying() is None
    hand.let_go()


def test_the_write_ahead_log_is_folded_at_rest_or_when_it_is_very_long(tmp_path: Path) -> None:
    folded: list[int] = []
    clock = Clock("", 0)

    def crash(passed: str) -> None:
        if passed == "sqlite.after-checkpoint":
            folded.append(written)

    file = StoreFile(tmp_path / "store", busy_timeout_s=1, vfs=None, crash=crash)
    file.create()
    hand = Hand(file, checkpoint_pages=20, clock=clock)

    def write() -> None:
        hand.write([Append("ses_1", written, [b"x" * 4000], (), (), None)])

    written = 0
    while not hand.is_untidy:
        write()
        written += 1
    few = written
    hand.tidy(is_idle=True)
    assert folded == []
    assert hand.until_tidying() == pytest.approx(REST_S)
    clock.now += REST_S
    hand.tidy(is_idle=False)
    assert folded == []
    hand.tidy(is_idle=True)
    assert folded == [few]
    assert not hand.is_untidy
    while len(folded) == 1 and written < 100 * few:
        write()
        written += 1
        hand.tidy(is_idle=False)  # Somebody always waits.
    assert (written - few) / few == pytest.approx(CHECKPOINT_TIMES, rel=0.3)
    hand.let_go()
