"""Every value of a JSONC or TOML text is found at its line and column."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.marks import Mark, Path, nearest, of_jsonc, of_toml

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def paths(value: object, above: Path = ()) -> "dict[Path, str]":
    """Each path of a value, with the text that begins at its place."""
    found: dict[Path, str] = {}
    if isinstance(value, dict):
        for key, one in value.items():
            found |= {(*above, key): json.dumps(key), **paths(one, (*above, key))}
    elif isinstance(value, list):
        for index, one in enumerate(value):
            found |= {(*above, index): json.dumps(one)[:1], **paths(one, (*above, index))}
    return found


def text_at(text: str, mark: Mark) -> str:
    return text.split("\n")[mark.line - 1][mark.column - 1 :]


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_the_text_at_the_place_of_a_value_is_its_key(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    marks, expected = of_jsonc(text), paths(value)
    assert set(marks) == set(expected)
    assert all(text_at(text, marks[path]).startswith(begins) for path, begins in expected.items())


def test_comments_trailing_commas_and_references_do_not_move_a_place() -> None:
    text = '{ // "model": 1\n  /* two\n lines */ "a": {env:SIZE},\n  "b": {"c": [1, {env:X}0, "{file:y}",],},\n "d": 1}'
    marks = of_jsonc(text)
    assert marks[("a",)] == Mark(3, 11)
    assert [marks[path] for path in (("b", "c"), ("b", "c", 1), ("b", "c", 2))] == [
        Mark(4, 9),
        Mark(4, 18),
        Mark(4, 28),
    ]
    assert marks["d",] == Mark(5, 2)


TOML = """\
# settings
model = "a/b"  # "x" = 1
"quoted key".inner = 'lit'
text = \"\"\"
[not.a.table]
a = 1\"\"\"
list = [ # comment ]
  "one",
  {a = 1, b.c = 2},
]
[permission]
bash = {"rm *" = "deny", ls = "allow"}
[provider.local.models."large.1"]
limit.context = 1000
[[rows]]
x = 1
[[rows]]
x = 2
"""


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        (("model",), "model ="),
        (("quoted key", "inner"), '"quoted key".inner'),
        (("text",), "text ="),
        (("list", 0), '"one"'),
        (("list", 1, "a"), "a = 1, b"),
        (("list", 1, "b", "c"), "b.c = 2"),
        (("permission",), "[permission]"),
        (("permission", "bash"), "bash = {"),
        (("permission", "bash", "rm *"), '"rm *" ='),
        (("provider", "local"), "[provider"),
        (("provider", "local", "models", "large.1", "limit", "context"), "limit.context"),
        (("rows", 0, "x"), "x = 1"),
        (("rows", 1, "x"), "x = 2"),
    ],
)
def test_the_text_at_the_place_of_a_toml_value_is_its_key(path: Path, begins: str) -> None:
    assert text_at(TOML, of_toml(TOML)[path]).startswith(begins)


@given(st.text(max_size=60))
def test_no_text_is_too_broken_to_be_looked_at(text: str) -> None:
    assert all(mark.line >= 1 for marks in (of_jsonc(text), of_toml(text)) for mark in marks.values())


def test_a_value_without_a_place_has_that_of_the_object_around_it() -> None:
    marks = of_jsonc('{"a": {"b": 1}}')
    assert nearest(marks, ("a", "b", "c")) == Mark(1, 8)
    assert nearest(marks, ("z",)) is None
