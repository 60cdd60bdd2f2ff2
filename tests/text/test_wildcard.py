"""Wildcards of permission rules."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.wildcard import literal, matches


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("ls", "ls *", True),
        ("ls -la", "ls *", True),
        ("lsof", "ls *", False),
        ("a/b.env", "*.env", True),
        ("git status", "git ?tatus", True),
        ("echo a\nrm b", "echo *", True),
        ("echo a\nrm b", "*", True),
        ("", "*", True),
        ("", "?", False),
        ("a", "", False),
        ("C:\\x\\y", "C:/x/*", True),
        ("src/a/b.py", "src/**", True),
        ("a[1].txt", "a[1].*", True),
        ("a1.txt", "a[1].*", False),
        ("xaxbxc", "*a*b*c", True),
        ("xbxaxc", "*a*b*c", False),
        ("LS", "ls", False),
    ],
)
def test_a_pattern_covers_the_whole_text_or_nothing(text: str, pattern: str, expected: bool) -> None:
    assert matches(text, pattern) is expected


def test_a_pattern_of_many_stars_does_not_stall_on_a_long_text() -> None:
    assert not matches("a" * 50_000, "*a" * 30 + "b")


def test_a_literal_pattern_matches_its_text_and_nothing_longer() -> None:
    assert matches("rm *", literal("rm *"))
    assert not matches("rm a b", literal("rm *"))
    assert not matches("rm", literal("rm *"))


@given(st.text("ab*?/\\ \n", max_size=12), st.text("ab*?/\\ \n", max_size=8))
def test_matching_agrees_with_trying_every_possibility(text: str, pattern: str) -> None:
    assert matches(text, pattern) is slow(text.replace("\\", "/"), pattern.replace("\\", "/"))


@given(st.text(max_size=40))
def test_every_text_matches_its_own_literal(text: str) -> None:
    assert matches(text, literal(text))


def slow(text: str, pattern: str) -> bool:
    @cache
    def at(i: int, j: int) -> bool:
        if j == len(pattern):
            return i == len(text)
        if pattern[j:] == " *" and i == len(text):
            return True
        if pattern[j] == "*":
            return at(i, j + 1) or (i < len(text) and at(i + 1, j))
        return i < len(text) and pattern[j] in ("?", text[i]) and at(i + 1, j + 1)

    return at(0, 0)
