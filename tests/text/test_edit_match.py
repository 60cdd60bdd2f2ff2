"""Edits: strict first, forgiving after, never guessing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.edit_match import Ambiguous, Edited, NoMatch, Oversized, edit
from turnkeeper.text.edit_strategies import similarity


def edited(content: str, strategy: str, count: int = 1) -> Edited:
    return Edited(content=content, strategy=strategy, count=count)


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        ("a b c", "b", "x", edited("a x c", "exact")),
        ("def f():\n    pass\n", "def f():\npass\n", "def g():\n    x\n", edited("def g():\n    x\n", "trimmed lines")),
        ("  a\n  b\nc", "a\nb\n", "x\n", edited("x\nc", "trimmed lines")),
        (
            "if x:\n    alpha = 1\n    beta = 2\nend\n",
            "if x:\n    alpha = 10\n    beta = 2\nend",
            "gone",
            edited("gone\n", "anchored block"),
        ),
        ("x = f(a,   b)\n", "f(a, b)", "g()", edited("x = g()\n", "collapsed blanks")),
        ("x  =\t1\ny =  2\n", "x = 1\ny = 2", "z", edited("z\n", "collapsed blanks")),
        ('say("a\nb")\n', 'say("a\\nb")', "quiet", edited("quiet\n", "unescaped")),
        ("cost: \\$5\n", "cost: $5", "free", edited("free\n", "unescaped")),
        ("a\nb\nc\nd", "\n\nb\nc\n\n", "x", edited("a\nx\nd", "trimmed ends")),
        ("a\n1111\nsame\nz\n", "a\n2222\nsame\nz", "new", edited("new\n", "context lines")),
        ("b\nb\n", "c", "x", NoMatch()),
        ("", "a", "x", NoMatch()),
        ("b\nb\n", "b", "x", Ambiguous(count=2)),
        ("aaa", "aa", "x", Ambiguous(count=2)),
        ("  b\n  b\n", "b \n", "x", Ambiguous(count=2)),
        ("a\n\nb\n", "   ", "x", NoMatch()),
    ],
)
def test_a_text_is_replaced_where_it_is_and_only_if_that_is_clear(
    content: str, old: str, new: str, expected: object
) -> None:
    assert edit(content, old, new) == expected


def test_a_block_that_is_shifted_as_a_whole_is_found() -> None:
    content = "class A:\n        def f():\n            x\n"
    assert edit(content, "def f():\n    x", "pass") == edited("class A:\npass\n", "trimmed lines")


def test_every_occurrence_is_replaced_on_demand() -> None:
    assert edit("b\nb\nab", "b", "xb", every=True) == edited("xb\nxb\naxb", "exact", 3)


def test_an_ambiguous_place_does_not_hide_a_clear_one_of_a_later_strategy() -> None:
    content = "x = 1\nx = 1\n"
    assert edit(content, "x = 1", "y") == Ambiguous(count=2)


def test_a_match_far_larger_than_what_was_asked_for_is_refused() -> None:
    content = "begin\n" + "b " * 900 + "\nend\n"
    assert edit(content, "begin\n" + "b" * 80 + "\nend", "x") == NoMatch()
    assert edit("start\n" + " " * 10 + "a" + " " * 3000 + "b\nstop\n", "start\na b\nstop", "x") == Oversized(lines=3)


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\nc\r\n"),
        ("a\nb\r\nc\nd", "b\nc", "x", "a\nx\nd"),
        ("a\r\n  b\r\nc", "b \nc", "x", "a\r\nx"),
        ("a\nb", "a\r\nb", "x\r\ny", "x\ny"),
        ("\r\n\r\nb\r\n", "b\n", "", "\r\n\r\n"),
    ],
)
def test_line_endings_are_those_of_the_file_and_others_stay(content: str, old: str, new: str, expected: str) -> None:
    outcome = edit(content, old, new)
    assert isinstance(outcome, Edited)
    assert outcome.content == expected


TEXT = st.text("ab \n\t{}", max_size=30)


@given(TEXT, st.text("ab \n", min_size=1, max_size=6), TEXT)
def test_a_text_that_occurs_once_is_replaced_exactly_there(before: str, old: str, after: str) -> None:
    content = before + old + after
    if content.find(old) == content.rfind(old):
        assert edit(content, old, "NEW") == edited(content.replace(old, "NEW"), "exact")


@given(st.text("ab \n\r", max_size=40), st.text("ab \n", min_size=1, max_size=8), st.booleans())
def test_what_is_outside_the_replaced_stretch_is_never_touched(content: str, old: str, every: bool) -> None:
    outcome = edit(content, old, "<NEW>", every=every)
    if isinstance(outcome, Edited):
        pieces = outcome.content.split("<NEW>")
        assert len(pieces) == outcome.count + 1
        assert content.startswith(pieces[0])
        assert content.endswith(pieces[-1])


@pytest.mark.parametrize(
    ("one", "other", "expected"), [("", "", 1), ("abc", "abc", 1), ("abc", "", 0), ("kitten", "sitting", 4 / 7)]
)
def test_similarity_counts_single_character_edits(one: str, other: str, expected: float) -> None:
    assert similarity(one, other) == pytest.approx(expected)


def test_a_search_in_a_huge_repetitive_file_gives_up_instead_of_stalling() -> None:
    content = "{\n" + ("x" * 200 + "\n" + "}\n{\n") * 3000
    assert edit(content, "{\n" + "y" * 200 + "\n}", "z") == NoMatch()
