"""Layers are merged as the table says, and each value knows who set it."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnkeeper.core.provenance import MISSING, at, changes, merged, origins, path_of, setters
from turnkeeper.model.value import JsonObject

LEAVES = st.integers(0, 3) | st.sampled_from(["a", "b", ""]) | st.booleans() | st.none()
TREES = st.recursive(
    st.dictionaries(st.sampled_from("pqr"), LEAVES | st.lists(LEAVES, max_size=2), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("pqr"), LEAVES | inner, max_size=3),
    max_leaves=8,
)
LISTED = st.lists(st.sampled_from(["x", "y", "x@1", "x@2", "@s/z", "@s/z@3", "file:///a@b.js"]), max_size=3)
LAYERS = st.lists(
    st.builds(
        lambda tree, joined, plugin: {
            **tree,
            **({"instructions": joined} if joined is not None else {}),
            **({"plugin": plugin} if plugin is not None else {}),
        },
        TREES,
        st.none() | LISTED,
        st.none() | LISTED,
    ),
    max_size=5,
)


def flat(tree: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Every path of a tree to a value that is no object with members."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in tree.items():
        found |= flat(value, (*above, key)) if isinstance(value, dict) and value else {(*above, key): value}
    return found


def oracle(layers: list[dict[str, Any]]) -> dict[tuple[str, ...], tuple[Any, int]]:
    """Values and their layers, path by path: a layer first clears what its own values stand in the way of."""
    held: dict[tuple[str, ...], tuple[Any, int]] = {}
    for number, layer in enumerate(layers):
        for path, value in flat(layer).items():
            if path[0] in ("instructions", "plugin"):
                continue
            above = [path[:length] for length in range(1, len(path))]
            below = [known for known in held if known[: len(path)] == path]
            if value == {} and any(known != path or held[known][0] == {} for known in below):
                continue  # An empty object adds nothing to an object.
            held = {known: one for known, one in held.items() if known not in above and known not in below}
            held[path] = (value, number)
    return held


@given(LAYERS)
def test_each_value_is_that_of_the_strongest_layer_that_sets_it_and_says_so(layers: list[dict[str, Any]]) -> None:
    expected = oracle(layers)
    everything = origins(layers, merged(layers))
    single = [one for one in everything if one.entry is None and one.path[0] not in ("instructions", "plugin")]
    assert {one.path: one.value for one in single} == {path: value for path, (value, _) in expected.items()}
    for one in single:
        if one.value != {}:
            assert one.layer == expected[one.path][1]
        assert one.overrode == tuple(n for n in range(one.layer) if at(layers[n], one.path) is not MISSING)
        assert setters(layers, one.path)[-1] == one.layer


def without_removed(settings: Any) -> Any:
    """Settings without the keys whose value is None, which removes what a weaker layer set."""
    if not isinstance(settings, dict):
        return settings
    return {key: without_removed(value) for key, value in settings.items() if value is not None}


@example([{"p": {"p": 0}}, {"p": None}, {"p": {}}])
@given(LAYERS)
def test_what_changed_settings_is_a_layer_that_makes_them(layers: list[dict[str, Any]]) -> None:
    before, after = merged(layers[:1]), merged(layers)
    said = changes(before, after)
    assert without_removed(merged([before, said])) == without_removed(after)
    assert (said == {}) == (before == after)
    assert changes({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 2}}) == {"d": None, "a": {"b": None}}


@given(LAYERS)
def test_joined_lists_have_each_entry_once_and_know_where_it_is_from(layers: list[dict[str, Any]]) -> None:
    result = merged(layers)
    for key in ("instructions", "plugin"):
        given_lists = {n: layer[key] for n, layer in enumerate(layers) if key in layer}
        found = [one for one in origins(layers, result) if one.path == (key,) and one.entry is not None]
        assert [one.value for one in found] == result.get(key, [])
        assert all(one.value in given_lists[one.layer] for one in found)
        if len(given_lists) > 1 and key == "instructions":
            everything = [entry for entries in given_lists.values() for entry in entries]
            assert result[key] == sorted(set(everything), key=everything.index)


@given(LAYERS)
def test_merging_changes_no_layer_and_keys_keep_the_order_in_which_they_came(layers: list[dict[str, Any]]) -> None:
    before = repr(layers)
    result = merged(layers)
    assert repr(layers) == before
    seen = dict.fromkeys(key for layer in layers for key in layer)
    assert list(result) == list(seen)


@pytest.mark.parametrize(
    ("lists", "joined"),
    [
        ([["a@1", "b"], ["a@2"]], ["b", "a@2"]),
        ([["@s/p@1.0"], ["@s/p"]], ["@s/p"]),
        ([[["a", {"x": 1}]], ["a"]], ["a"]),
        ([["file:///p.js"], ["file:///q.js"]], ["file:///p.js", "file:///q.js"]),
    ],
)
def test_a_plugin_is_used_once_as_the_strongest_layer_names_it(lists: list[object], joined: list[object]) -> None:
    assert merged([{"plugin": one} for one in lists])["plugin"] == joined


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b.c")),
        ("a.b", ("a", "b")),
        ("a.b.d", ("a", "b", "d")),
        ("a.x", None),
        ("z", None),
    ],
)
def test_a_dotted_key_may_have_names_with_dots(key: str, path: tuple[str, ...] | None) -> None:
    assert path_of({"a": {"b": {"d": 1}, "b.c": 2}}, key) == path


def test_the_number_of_an_entry_means_its_list() -> None:
    settings: JsonObject = {"a": {"list": ["x", "y"]}}
    assert [path_of(settings, f"a.list.{number}") for number in (0, 1, 2)] == [("a", "list"), ("a", "list"), None]
