"""JSONC is read as people write it, and a mistake is named by its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.jsonc import JsoncError, parse, plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
FILLING = st.sampled_from(["", " ", "\n", "// one, two ] }\n", "/* three, ] */", "/**/", "/* \n // */"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, // why\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": /* in the way */ 1}', {"a": 1}),
        ('{"a": [1, 2, ], }', {"a": [1, 2]}),
        ('{"a": [1, // last\n /* really */ ]}', {"a": [1]}),
        ('{"url": "https://x.y/z, ]"}', {"url": "https://x.y/z, ]"}),
        (r'{"a": "\" // not a comment", "b": "/* nor this */"}', {"a": '" // not a comment', "b": "/* nor this */"}),
        ("\ufeff{}", {}),
        ("// only a comment\n[]", []),
        ("[] // at the end", []),
    ],
)
def test_comments_and_trailing_commas_mean_nothing(text: str, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1,\n "b" 2}', 2, 6),
        ('{\n  // a comment\n  "a": tru\n}', 3, 8),
        ("[1,,2]", 1, 4),
        ("{} /* open", 1, 4),
        ("/*/ [] */ x", 1, 11),
        ("", 1, 1),
        ('{"a": "no end\n}', 1, 14),
    ],
)
def test_a_mistake_is_named_by_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(JsoncError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "[" * 100_000, "1" * 5000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(JsoncError):
        parse(text)


@given(VALUES)
def test_json_reads_as_itself(value: object) -> None:
    assert parse(json.dumps(value)) == value
    assert plain(json.dumps(value, indent=1)) == json.dumps(value, indent=1)


@given(VALUES, FILLING, FILLING)
def test_comments_between_tokens_and_a_trailing_comma_change_nothing(value: object, one: str, two: str) -> None:
    assert parse(f"{one}[{two}{json.dumps(value)}{one},{two}]{one}") == [value]


@given(st.text(alphabet='"\\/*,]}[{ \n1a', max_size=40))
def test_every_place_stays_where_it_was(text: str) -> None:
    blanked = plain(text)
    assert [len(line) for line in blanked.split("\n")] == [len(line) for line in text.split("\n")]


@pytest.mark.parametrize("piece", [",/**/x", '\\"', '"x\n', ", "])
def test_a_text_takes_no_longer_than_its_length(piece: str) -> None:
    # With a look ahead at each comma or quote these take hours, and the test ends by its time limit.
    text = '"' + piece * 1_500_000
    assert len(plain(text)) == len(text)
