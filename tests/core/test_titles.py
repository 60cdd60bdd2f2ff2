"""Titles: the default ones, how they are recognised, and how forks are numbered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.titles import base_of_fork, default_title, fork_title, is_default, number_of_fork, prompt_title


def test_a_session_without_a_title_is_named_after_its_creation() -> None:
    assert default_title(1_794_767_525_690) == "New session - 2026-11-15T18:32:05.690Z"
    assert default_title(1_794_767_525_690, child=True) == "Child session - 2026-11-15T18:32:05.690Z"
    assert default_title(0) == "New session - 1970-01-01T00:00:00.000Z"


@given(st.integers(0, 253_402_300_799_999), st.booleans())
def test_every_default_title_is_recognised(now_ms: int, child: bool) -> None:
    assert is_default(default_title(now_ms, child=child))


@pytest.mark.parametrize(
    "title",
    [
        "",
        "New session",
        "New session - ",
        "New session - 2026-11-15",
        "New session - 2026-11-15T18:32:05Z",
        "New session - 2026-11-15T18:32:05.690Z\n",
        "New session - 2026-11-15T18:32:05.690Z (fork #1)",
        "My New session - 2026-11-15T18:32:05.690Z",
        "New session - 2026-11-15T18:32:05x690Z",
        "New session - ٢٠٢٦-11-15T18:32:05.690Z",
    ],
)
def test_a_title_somebody_gave_is_not_a_default_one(title: str) -> None:
    assert not is_default(title)


@pytest.mark.parametrize(
    ("title", "forked"),
    [
        ("X", "X (fork #1)"),
        ("X (fork #1)", "X (fork #2)"),
        ("X (fork #9)", "X (fork #10)"),
        ("X (fork #007)", "X (fork #8)"),
        ("(fork #1)", "(fork #1) (fork #1)"),
        (" (fork #1)", " (fork #1) (fork #1)"),
        ("", " (fork #1)"),
        ("X (fork #1) (fork #1)", "X (fork #1) (fork #2)"),
        ("X (fork #1)!", "X (fork #1)! (fork #1)"),
        ("X(fork #1)", "X(fork #1) (fork #1)"),
    ],
)
def test_the_titles_of_forks_are_numbered(title: str, forked: str) -> None:
    assert fork_title(title) == forked


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (" \n ", None),
        ("read\n  tides.py ", "read tides.py"),
        ("x" * 50, "x" * 50),
        ("x" * 51, "x" * 50 + "…"),
        ("word " * 10 + "more", "word " * 9 + "word…"),
        ("a" * 48 + " bcd", "a" * 48 + "…"),
        ("a" * 46 + " bcd e", "a" * 46 + " bcd…"),
    ],
)
def test_a_title_from_a_prompt_ends_at_a_word(text: str, title: str | None) -> None:
    assert prompt_title(text) == title


def test_a_forks_title_is_a_base_and_a_number() -> None:
    assert (base_of_fork("X (fork #12)"), number_of_fork("X (fork #12)")) == ("X", 12)
    assert (base_of_fork("X"), number_of_fork("X")) == ("X", 0)


def test_a_title_with_a_number_without_end_is_just_a_title() -> None:
    title = f"X (fork #{'9' * 5000})"
    assert fork_title(title) == f"{title} (fork #1)"
