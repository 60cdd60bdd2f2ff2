"""Retention: which snapshots are no longer kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.limits import SNAPSHOT_RETENTION_DAYS
from turnkeeper.core.retention import KeptTree, SnapshotLimits, idle, limits, surplus
from turnkeeper.model.config import Config, SnapshotConfig

DAY = 24 * 3600 * 1000
NOW = 100 * DAY


def kept(session: str, days_ago: float, tree: str = "1") -> KeptTree:
    return KeptTree(session=session, tree=tree, captured=int(NOW - days_ago * DAY))


def test_a_session_keeps_all_or_none_by_its_last_capture() -> None:
    busy = [kept("a", 30), kept("a", 6.9, "2")]
    resting = [kept("b", 30), kept("b", 7.1, "2")]
    assert idle([*busy, *resting], NOW, SNAPSHOT_RETENTION_DAYS) == tuple(resting)


def test_a_protected_session_is_never_idle() -> None:
    assert idle([kept("a", 30)], NOW, 7, protected={"a"}) == ()


def test_as_many_of_the_oldest_go_as_the_bytes_are_over_the_quota() -> None:
    trees = [kept("a", 3), kept("b", 4), kept("a", 1), kept("b", 2)]
    assert surplus(trees, 100, 100, until=NOW) == ()
    assert surplus(trees, 101, 100, until=NOW) == (trees[1],)
    assert surplus(trees, 200, 100, until=NOW) == (trees[1], trees[0])
    assert surplus(trees, 200, 100, until=trees[1].captured) == (trees[1],)
    assert surplus(trees, 200, 100, until=NOW, protected={"b"}) == (trees[0],)
    assert surplus(trees, 200, 0, until=NOW, protected={"a", "b", "c"}) == ()
    assert surplus([], 200, 100, until=NOW) == ()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=20), st.integers(0, 100))
def test_while_there_is_too_much_some_tree_goes_until_none_is_left(trees: list[tuple[str, int]], quota: int) -> None:
    left = [kept(session, days, str(number)) for number, (session, days) in enumerate(trees)]
    for _ in range(len(left)):
        gone = surplus(left, 101, quota, until=NOW)
        assert gone
        assert max(one.captured for one in gone) <= min((one.captured for one in left if one not in gone), default=NOW)
        left = [one for one in left if one not in gone]
        if not left:
            break
    assert surplus(left, 101, quota, until=NOW) == ()


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (None, SnapshotLimits()),
        (True, SnapshotLimits()),
        (False, None),
        (SnapshotConfig(quota_bytes=5), SnapshotLimits(quota_bytes=5)),
        (
            SnapshotConfig(retention_days=0, max_file_bytes=1),
            SnapshotLimits(retention_days=0, file_bytes=1),
        ),
    ],
)
def test_the_limits_follow_the_configuration(given_: bool | SnapshotConfig | None, expected: SnapshotLimits) -> None:
    assert limits(Config(snapshot=given_)) == expected
