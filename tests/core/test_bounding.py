"""Bounding: both limits hold, both ends stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.bounding import HINT, Bounded, bound
from turnkeeper.core.limits import OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX


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
