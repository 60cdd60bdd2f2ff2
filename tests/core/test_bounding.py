"""Bounding: both limits hold, both ends stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.bounding import HINT, Bounded, TurnMedia, TurnShare, bound, kept_hint
from turnkeeper.core.limits import (
    CALLS_PER_TURN_MAX,
    OUTPUT_BYTES_MAX,
    OUTPUT_LINES_MAX,
    RESULT_MEDIA_CHARS_MAX,
    RESULT_MEDIA_MAX,
    TURN_MEDIA_CHARS_MAX,
    TURN_MEDIA_MAX,
    TURN_OUTPUT_BYTES_MAX,
    TURN_RESULT_BYTES_MIN,
)


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("é\n\n", 2)])
def test_a_text_within_the_limits_is_left_alone(text: str, lines: int) -> None:
    assert bound(text) == Bounded(text=text, full=None, lines=lines, bytes=len(text.encode()))


def test_a_text_exactly_at_the_limits_is_left_alone() -> None:
    assert bound("x\n" * OUTPUT_LINES_MAX).full is None
    assert bound("x" * OUTPUT_BYTES_MAX).full is None


def test_too_many_lines_leave_the_first_and_the_last_around_a_line_that_counts_the_rest() -> None:
    text = "".join(f"{n}\n" for n in range(1, 21))
    bounded = bound(text, lines_max=10, bytes_max=10_000)
    assert bounded == Bounded(
        text=f"1\n2\n3\n[... 14 lines, 36 bytes left out here. {HINT} ...]\n18\n19\n20\n", full=text, lines=20, bytes=51
    )


def test_too_many_bytes_are_cut_at_line_ends() -> None:
    text = "".join(f"{n:099}\n" for n in range(30))
    kept = [
        line for line in bound(text, lines_max=100, bytes_max=1000, hint="Look.").text.splitlines() if line[0] == "0"
    ]
    assert kept == [f"{n:099}" for n in (0, 1, 2, 3, 26, 27, 28, 29)]


def test_one_long_line_is_cut_inside_but_never_inside_a_character() -> None:
    bounded = bound("é" * 5000, lines_max=10, bytes_max=1001, hint="")
    head, tail = bounded.text.split("\n")[0], bounded.text.split("\n")[-1]
    assert set(head) == set(tail) == {"é"}
    assert len(head) == len(tail) == 210


@given(
    st.lists(st.text("aé\U0001f600 ", max_size=80), max_size=60).map("\n".join),
    st.integers(8, 40),
    st.integers(300, 1200),
)
def test_the_limits_hold_and_both_ends_are_those_of_the_text(text: str, lines_max: int, bytes_max: int) -> None:
    bounded = bound(text, lines_max=lines_max, bytes_max=bytes_max, hint="Look.")
    assert len(bounded.text.encode()) <= bytes_max
    assert len(bounded.text.split("\n")) <= lines_max + 1
    assert bounded.bytes == len(text.encode())
    if bounded.full is None:
        assert bounded.text == text
    else:
        assert bounded.full == text
        head, _, tail = bounded.text.partition("\n[... ")
        assert text.startswith(head)
        assert text.endswith(tail.partition(" ...]\n")[2])


def test_lone_surrogates_are_survived() -> None:
    assert bound("\udc80" * 600, lines_max=10, bytes_max=1000).full == "\udc80" * 600


@pytest.mark.parametrize(
    ("lines_max", "bytes_max"), [(1, 10_000), (5, 10_000), (2000, 1), (2000, 200), (1, 1)], ids=str
)
def test_where_there_is_no_room_the_line_that_counts_is_all_that_stays(lines_max: int, bytes_max: int) -> None:
    bounded = bound("word\n" * 3000, lines_max=lines_max, bytes_max=bytes_max)
    assert bounded.text == f"[... 3000 lines, 15000 bytes left out here. {HINT} ...]"
    assert bounded.full == "word\n" * 3000


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (("r1",), "All of it: recall with handle r1"),
        (("r1", "/out/tool_1"), "All of it: recall with handle r1, or read (with offset) or grep /out/tool_1"),
        (("r1", None, "No space left"), "All of it: recall with handle r1 (no file holds it: No space left)"),
    ],
)
def test_the_hint_says_how_to_have_the_rest(given: tuple[str, ...], hint: str) -> None:
    assert kept_hint(*given) == hint


def test_the_hint_says_what_is_lost_for_good() -> None:
    assert kept_hint("r1", lost_bytes=7) == "All of it but 7 bytes in the middle, which are lost: recall with handle r1"


def test_the_later_a_result_of_a_turn_comes_the_less_room_it_has() -> None:
    share = TurnShare()
    rooms = []
    for _ in range(10):
        room = min(share.room, OUTPUT_BYTES_MAX)
        rooms.append(room)
        share.take(room)
    kib = 1024
    assert rooms == [50 * kib, 50 * kib, 50 * kib, 25 * kib, 12800, 6400, 3200, 2 * kib, 2 * kib, 2 * kib]


def test_small_results_take_little_from_the_others() -> None:
    share = TurnShare()
    for _ in range(50):
        share.take(1024)
    assert share.room == (200 - 50) * 1024 // 2


def test_a_larger_limit_for_one_result_is_a_larger_one_for_the_turn() -> None:
    assert TurnShare(1_000_000).room == 2_000_000
    assert TurnShare(10).room == 100 * 1024


@given(st.lists(st.integers(0, 400_000), max_size=CALLS_PER_TURN_MAX))
def test_whatever_comes_a_turn_stays_within_its_limit(sizes: list[int]) -> None:
    share, taken = TurnShare(), 0
    for size in sizes:
        shown = min(size, share.room)
        share.take(shown)
        taken += shown
    assert taken <= TURN_OUTPUT_BYTES_MAX + len(sizes) * TURN_RESULT_BYTES_MIN


def test_files_of_a_result_are_shown_until_they_are_too_many() -> None:
    media = TurnMedia()
    assert media.admit([1] * 22) == [True] * RESULT_MEDIA_MAX + [False] * 2
    assert media.admit([1] * 21).count(True) == TURN_MEDIA_MAX - RESULT_MEDIA_MAX
    assert media.admit([1]) == [False]


def test_files_of_a_result_are_shown_until_they_are_too_large() -> None:
    media = TurnMedia()
    half = RESULT_MEDIA_CHARS_MAX // 2
    assert media.admit([half, half + 1, half]) == [True, False, True]
    assert media.admit([TURN_MEDIA_CHARS_MAX - 2 * half + 1, 5]) == [False, True]
