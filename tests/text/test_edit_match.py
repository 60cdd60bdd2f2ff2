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


# --- Never a wrong silent match -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "old", "expected"),
    [
        ("    foo()\nelse:\n        foo()\n", "foo() ", Ambiguous(count=2)),
        ("\tfoo\n  foo\n", "foo ", Ambiguous(count=2)),
        ("foo\n  bar foo\n", "foo", Ambiguous(count=2)),
        ("a  b\na\tb\n", "a b", Ambiguous(count=2)),
        ("if x:\nalpha = 12\nend\nif x:\nalpha = 13\nend\n", "if x:\nalpha = 10\nend", Ambiguous(count=2)),
        ("a\n1\nsame\nz\na\n2\nsame\nz\n", "a\n3\nsame\nz", Ambiguous(count=2)),
        # Indentation tells apart what is alike without it.
        ("if a:\nb\n\nx\n    if a:\n        b\n", "if a:\n    b", edited("if a:\nb\n\nx\nNEW\n", "other indentation")),
    ],
)
def test_of_several_places_that_are_alike_none_is_taken(content: str, old: str, expected: object) -> None:
    assert edit(content, old, "NEW") == expected


LINE = st.text("ab(", min_size=1, max_size=3)
INDENT = st.sampled_from(["", "  ", "    ", "\t"])


def collapsed(one: str) -> str:
    """A text without what the strategies forgive in blanks."""
    return "\n".join(" ".join(line.split()) for line in one.strip("\n").split("\n"))


def trimmed(one: str) -> str:
    """A text without what the stricter of them forgive."""
    return "\n".join(line.strip() for line in one.strip("\n").split("\n"))


@given(st.lists(st.tuples(INDENT, LINE, st.sampled_from(["", " b", "  b"])), min_size=1, max_size=7), st.data())
def test_a_text_remembered_with_other_blanks_is_replaced_in_its_own_place_or_not_at_all(
    parts: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """Some lines of a file, each with other blanks around and between its words: what the model remembers of it."""
    lines = ["".join(part) for part in parts]
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    remembered = "\n".join(
        data.draw(INDENT) + line.strip().replace("  ", " ") + data.draw(st.sampled_from(["", " "]))
        for line in lines[start:end]
    )
    content = "\n".join(lines)
    outcome = edit(content, remembered, "<NEW>")
    if not isinstance(outcome, Edited):
        return
    assert outcome.count == 1
    before, after = outcome.content.split("<NEW>")
    taken = content[len(before) : len(content) - len(after)]
    assert collapsed(taken).strip() == collapsed(remembered).strip()
    # There is no second place that is as near to what was remembered as the one that was taken.
    if outcome.strategy in ("trimmed lines", "collapsed blanks"):
        plain = trimmed if outcome.strategy == "trimmed lines" else collapsed
        blocks = ["\n".join(lines[at : at + end - start]) for at in range(len(lines) - (end - start) + 1)]
        assert [plain(block) for block in blocks].count(plain(remembered)) == 1
    elif outcome.strategy == "exact":
        assert content.count(remembered) == 1


@given(
    st.lists(st.text("abcdef ", min_size=3, max_size=8), min_size=4, max_size=12),
    st.integers(0, 8),
    st.text("abcdef", min_size=1, max_size=3),
)
def test_a_text_that_is_remembered_wrongly_never_replaces_lines_that_it_does_not_name(
    lines: list[str], start: int, slip: str
) -> None:
    """One line in the middle of a block is remembered with a slip: the block is found by its ends, or nothing is."""
    block = lines[start : start + 4]
    if len(block) < 3:
        return
    remembered = "\n".join([block[0], block[1] + slip, *block[2:]])
    content = "\n".join(lines)
    outcome = edit(content, remembered, "<NEW>")
    if isinstance(outcome, Edited):
        before, after = outcome.content.split("<NEW>")
        taken = content[len(before) : len(content) - len(after)].strip("\n").split("\n")
        assert (taken[0].strip(), taken[-1].strip()) == (block[0].strip(), block[-1].strip())
        assert abs(len(taken) - len(block)) <= 1
