"""When a session may be taken from its owner, and what an owner does to keep it."""

import pytest

from turnkeeper.core.lease import (
    MANY_HOSTS,
    ONE_HOST,
    Process,
    Sign,
    Silence,
    Step,
    Tenure,
    Terms,
    listen,
    may_take,
    next_at,
    next_step,
)
from turnkeeper.model.status import Owner

HERE = Owner(host="here", pid=1, started="1", lease_s=10)
OTHER = Owner(host="there", pid=2, started="1", lease_s=10)
OLD = Owner(host="there", pid=2, started="1")
"""An owner of a version without leases."""
TERMS = Terms(beat_s=2, lease_s=10, margin_s=3)


def silence(owner: Owner = OTHER, *, seq: int = 7, until: float = 110) -> Silence:
    return Silence(Sign(owner, 3, seq), 100, until)


@pytest.mark.parametrize(
    ("owner", "process", "heard", "expected"),
    [
        (None, "ended", None, True),
        (HERE, "runs", None, True),
        (OTHER, "ended", None, True),
        (OTHER, "unseen", None, False),
        (OTHER, "unseen", silence(until=109.9), False),
        (OTHER, "unseen", silence(), True),
        (OTHER, "runs", silence(), True),
        (OTHER, "unseen", silence(seq=6, until=1000), False),
        (OTHER, "unseen", silence(HERE, until=1000), False),
        (OLD, "unseen", silence(OLD, until=1_000_000), False),
        (OLD, "ended", None, True),
    ],
)
def test_a_session_is_taken_from_the_dead_at_once_and_from_the_silent_after_their_lease(
    owner: Owner | None, process: Process, heard: Silence | None, expected: bool
) -> None:
    assert may_take(owner, HERE, process=process, silence=heard, seq=7) is expected


def test_every_sign_of_life_begins_the_silence_anew_and_the_same_one_does_not() -> None:
    first = listen(None, Sign(OTHER, 1, 7), 99, 100)
    assert first == Silence(Sign(OTHER, 1, 7), 100, 100)
    assert listen(first, Sign(OTHER, 1, 7), 105, 106) == first._replace(until=105)
    assert listen(first, Sign(OTHER, 2, 7), 105, 106).since == 106
    assert listen(first, Sign(OTHER, 1, 8), 105, 106).since == 106
    assert listen(first, Sign(HERE, 1, 7), 105, 106).since == 106


def test_an_answer_that_was_long_on_its_way_is_no_long_silence() -> None:
    first = listen(None, Sign(OTHER, 1, 7), 100, 100)
    late = listen(first, Sign(OTHER, 1, 7), 101, 120)
    assert not may_take(OTHER, HERE, process="unseen", silence=late, seq=7)


@pytest.mark.parametrize(
    ("tenure", "now", "expected"),
    [
        (Tenure(100), 101, "wait"),
        (Tenure(100), 102, "renew"),
        (Tenure(100), 106.9, "renew"),
        (Tenure(100), 107, "reclaim"),
        (Tenure(100), 1000, "reclaim"),
        (Tenure(100, failed=103), 104, "wait"),
        (Tenure(100, failed=103), 105, "renew"),
        (Tenure(100, failed=106), 107, "stop"),
        (Tenure(100, failed=107), 108, "wait"),
        (Tenure(100, failed=107), 109, "stop"),
    ],
)
def test_an_owner_renews_its_lease_and_stops_before_it_ends(tenure: Tenure, now: float, expected: Step) -> None:
    assert next_step(tenure, TERMS, now) == expected


@pytest.mark.parametrize("terms", [ONE_HOST, MANY_HOSTS])
def test_an_owner_stops_before_another_host_may_take_the_session(terms: Terms) -> None:
    """Also if the clock of the other one runs a fifth too fast, and every heartbeat fails."""
    tenure, now = Tenure(0.0), 0.0
    while next_step(tenure, terms, now) != "stop":
        now = next_at(tenure, terms)
        if next_step(tenure, terms, now) == "renew":
            tenure = tenure._replace(failed=now)
    assert now * 1.2 < terms.lease_s
