"""The shape of ids: packed, taken apart, dated across the wraps, and checked when a caller brings one."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.model import identifier
from turnkeeper.model.identifier import LENGTH_MAX, PREFIXES, WINDOW_MS, Parsed

TAIL = "Ji9f7CUTHYjUSS"
DAY_MS = 86_400_000

moments = st.integers(0, 4_102_444_800_000)
nearby = st.integers(-397 * DAY_MS, 397 * DAY_MS)
prefixes = st.sampled_from(sorted(PREFIXES.values()))


def ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).replace(tzinfo=UTC).timestamp() * 1000)


def an_id(prefix: str, at: int, counter: int = 1) -> str:
    return f"{prefix}_{identifier.pack(at, counter, prefix in identifier.DESCENDING)}{TAIL}"


WRAP_2026 = ms("2026-08-14T11:19:55.136")
WRAP_2028 = ms("2028-10-17T20:04:31.872")


@pytest.mark.parametrize(
    ("at", "counter", "descending", "digits"),
    [
        (1_794_767_533_915, 1, False, "1e07b375b001"),
        (1_794_767_525_690, 1, True, "e1f84e8c5ffe"),
        (0, 0, False, "000000000000"),
        (0, 0, True, "ffffffffffff"),
        (5, 4096, False, "000000006000"),
        (-1, 1, False, "fffffffff001"),
    ],
)
def test_time_and_counter_pack_into_twelve_digits(at: int, counter: int, descending: bool, digits: str) -> None:
    assert identifier.pack(at, counter, descending) == digits


def test_the_time_in_an_id_starts_again_at_each_wrap() -> None:
    assert (WRAP_2026, WRAP_2028) == (26 * WINDOW_MS, 27 * WINDOW_MS)
    for wrap in (WRAP_2026, WRAP_2028):
        assert identifier.timestamp(an_id("msg", wrap - 1)) == WINDOW_MS - 1
        assert identifier.timestamp(an_id("msg", wrap)) == 0


def test_an_id_from_after_a_wrap_sorts_before_one_from_before_it() -> None:
    assert an_id("msg", WRAP_2026) < an_id("msg", WRAP_2026 - 1)
    assert an_id("ses", WRAP_2026) > an_id("ses", WRAP_2026 - 1)


@pytest.mark.parametrize("prefix", ["msg", "ses"])
@pytest.mark.parametrize("wrap", [WRAP_2026, WRAP_2028])
@pytest.mark.parametrize("minted", [-1, 0, 1])
@pytest.mark.parametrize("read", [-1, 0, 1])
def test_a_time_near_a_wrap_is_recovered_from_either_side(prefix: str, wrap: int, minted: int, read: int) -> None:
    assert identifier.timestamp(an_id(prefix, wrap + minted), near=wrap + read * DAY_MS) == wrap + minted


@given(at=moments, distance=nearby, counter=st.integers(0, 4095), prefix=prefixes)
def test_the_time_is_recovered_within_397_days(at: int, distance: int, counter: int, prefix: str) -> None:
    assert identifier.timestamp(an_id(prefix, at, counter), near=at + distance) == at


@given(at=moments, near=moments, prefix=prefixes)
def test_the_recovered_time_is_the_candidate_closest_to_the_reference(at: int, near: int, prefix: str) -> None:
    recovered = identifier.timestamp(an_id(prefix, at), near=near)
    assert recovered % WINDOW_MS == at % WINDOW_MS
    assert abs(recovered - near) <= WINDOW_MS // 2


@given(at=moments, counter=st.integers(0, 4095), prefix=prefixes)
def test_what_was_packed_is_parsed_again(at: int, counter: int, prefix: str) -> None:
    assert identifier.parse(an_id(prefix, at, counter)) == Parsed(prefix, at % WINDOW_MS, counter, TAIL)


def test_an_id_observed_in_the_wild_is_dated() -> None:
    # Its record says that the message was created one millisecond after its id was minted.
    observed = "msg_1e07b24c1001" + TAIL
    assert identifier.timestamp(observed, near=ms("2026-12-31T00:00:00")) == 1_794_767_529_154 - 1


@pytest.mark.parametrize("given", ["", "msg", "msg_", "msg_hello", "msg_1e07b375b00", "1e07b375b001" + TAIL])
def test_an_id_of_another_make_has_no_time(given: str) -> None:
    with pytest.raises(ValueError, match="carries no time"):
        identifier.timestamp(given)


@pytest.mark.parametrize(
    ("kind", "given"),
    [("session", "ses_x"), ("message", "msg_my-own_ID9"), ("part", "prt_" + "a" * 60)],
)
def test_a_callers_id_of_the_right_kind_is_kept_as_it_is(kind: identifier.IdKind, given: str) -> None:
    assert identifier.check(kind, given) == given


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("session", ""),
        ("session", "ses"),
        ("session", "ses_"),
        ("session", "sesX"),
        ("session", "msg_1"),
        ("session", "SES_1"),
        ("message", "msg_../../etc/passwd"),
        ("message", "msg_a b"),
        ("message", "msg_a\n"),
        ("message", "msg_é"),
        ("part", "prt_" + "a" * 61),
    ],
)
def test_a_callers_id_that_could_not_be_one_is_refused_by_name(kind: identifier.IdKind, given: str) -> None:
    with pytest.raises(ValueError) as refusal:
        identifier.check(kind, given)
    assert repr(given) in str(refusal.value)
    assert repr(PREFIXES[kind] + "_") in str(refusal.value)


def test_a_refusal_does_not_repeat_an_endless_id() -> None:
    with pytest.raises(ValueError) as refusal:
        identifier.check("session", "x" * 1_000_000)
    assert len(str(refusal.value)) < 4 * LENGTH_MAX


def test_every_kind_has_a_prefix_of_its_own() -> None:
    assert len(set(PREFIXES.values())) == len(PREFIXES)
