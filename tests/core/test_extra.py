"""Unknown fields survive the way through our values."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.extra import restore, unknown

names = st.text("abcdef", min_size=1, max_size=3)
leaves = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4)
json = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=12
)


@st.composite
def raw_and_known(draw: st.DrawFn) -> tuple[object, object]:
    """JSON as it came, and what our values keep of it: some fields of some objects are dropped, at any depth."""
    raw = draw(st.dictionaries(names, json, max_size=4))
    return raw, draw_known(draw, deepcopy(raw))


def draw_known(draw: st.DrawFn, raw: object) -> object:
    if isinstance(raw, dict):
        kept = draw(st.sets(st.sampled_from(sorted(raw)))) if raw else set()
        return {key: draw_known(draw, value) for key, value in raw.items() if key in kept}
    if isinstance(raw, list):
        return [draw_known(draw, item) for item in raw]
    return raw


@given(raw_and_known())
def test_what_we_do_not_know_is_put_back_where_it_was(pair: tuple[object, object]) -> None:
    raw, known = pair
    assert restore(known, unknown(raw, known)) == raw


@given(json)
def test_what_we_know_whole_needs_no_overlay(value: object) -> None:
    assert unknown(value, value) is None
    assert restore(value, None) == value


def test_an_overlay_names_fields_and_places() -> None:
    raw = {"id": 1, "new": True, "time": {"start": 1, "zone": "Z"}, "list": [{"a": 1}, {"a": 2, "b": 3}]}
    known = {"id": 1, "time": {"start": 1}, "list": [{"a": 1}, {"a": 2}]}
    assert unknown(raw, known) == {
        "set": {"new": True},
        "in": {"time": {"set": {"zone": "Z"}}, "list": {"in": {"1": {"set": {"b": 3}}}}},
    }


def test_what_changed_since_keeps_its_new_value() -> None:
    overlay = unknown({"title": "old", "colour": "red"}, {"title": "old"})
    assert restore({"title": "new"}, overlay) == {"title": "new", "colour": "red"}
    assert restore({"title": "new", "colour": "blue"}, overlay) == {"title": "new", "colour": "blue"}


def test_what_is_gone_takes_its_unknown_fields_with_it() -> None:
    overlay = unknown({"a": {"x": 1, "y": 2}, "l": [{"z": 1}]}, {"a": {"x": 1}, "l": [{}]})
    assert restore({"l": []}, overlay) == {"l": []}
    assert restore({"a": "now a string"}, overlay) == {"a": "now a string"}
