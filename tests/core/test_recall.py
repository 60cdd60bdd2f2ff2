"""Recall: pages that are together the text, and words found where they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.handles import RecallText, handle
from turnkeeper.core.recall import Recalled, holding, page, snippet, words_of
from turnkeeper.model.refusal import Invalid


def recalled(text: str) -> Recalled:
    return Recalled(message_id="msg_1", piece=RecallText(label="bash", text=text, part_id="prt_1"))


@given(
    st.text(st.one_of(st.sampled_from("\0\r\n\ud800é\U0001f600a"), st.characters(exclude_categories=[])), min_size=1),
    st.integers(1, 7),
    st.integers(1, 9),
)
def test_the_pages_of_a_text_are_the_text(text: str, chars_max: int, bytes_max: int) -> None:
    got, offset = [], 0
    while True:
        one = page(recalled(text), offset, chars_max=chars_max, bytes_max=bytes_max)
        assert (one.handle, one.offset, one.total) == (handle(text), offset, len(text))
        assert 0 < len(one.text) <= chars_max
        assert len(one.text) == 1 or len(one.text.encode("utf-8", "surrogatepass")) <= bytes_max
        got.append(one.text)
        if one.next_offset is None:
            break
        offset = one.next_offset
    assert "".join(got) == text


def test_without_limits_a_page_is_all_of_the_rest() -> None:
    one = page(recalled("é" * 100_000), 3, chars_max=None, bytes_max=None)
    assert (one.text, one.next_offset) == ("é" * 99_997, None)


@pytest.mark.parametrize("offset", [-1, 3, 4])
def test_an_offset_outside_the_text_is_refused_with_its_length(offset: int) -> None:
    with pytest.raises(Invalid, match=f"offset {offset} is outside the text, which has 3 characters"):
        page(recalled("abc"), offset)


@pytest.mark.parametrize("query", ["", "  ", "-- !"])
def test_a_query_without_words_is_refused(query: str) -> None:
    with pytest.raises(Invalid, match="holds no word"):
        words_of(query)


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("The harbour master", "harb MASTER", True),
        ("The harbour master", "arbour", False),
        ("a snake_case name", "case", True),
        ("one", "one two", False),
        ("C++ (really)", "c++ really", True),
    ],
)
def test_each_word_must_begin_one_of_the_text(text: str, query: str, *, found: bool) -> None:
    piece = RecallText(label="user", text=text)
    assert holding([piece, piece.but(mime="image/png")], words_of(query)) == ([piece] if found else [])


def test_a_snippet_is_one_line_around_the_first_word() -> None:
    text = "x " * 500 + "the\nneedle\r\nis here" + " y" * 500
    line = snippet(text, ["needle"])
    assert "the needle is here" in line
    assert (line[0], line[-1]) == ("…", "…")
    assert len(line.splitlines()) == 1
    assert len(line) <= 242
    assert snippet("short", ["missing"]) == "short"
