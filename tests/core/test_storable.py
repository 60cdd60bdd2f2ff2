"""How deep JSON is nested, and what can be read again once it is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.core.storable import is_too_deep, readable, storable
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import SessionModel
from turnkeeper.model.value import encode

brackets = st.text(alphabet='[]{}"\\ ab', max_size=12)
values = st.recursive(
    st.none() | st.integers() | brackets,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(brackets, inner, max_size=4),
    max_leaves=30,
)


def depth(value: object) -> int:
    match value:
        case dict():
            return 1 + max(map(depth, value.values()), default=0)
        case list():
            return 1 + max(map(depth, value), default=0)
        case _:
            return 0


@given(values)
def test_the_depth_is_that_of_objects_and_arrays_whatever_strings_hold(value: object) -> None:
    text = encode(value)
    assert not is_too_deep(text, depth(value))
    assert depth(value) == 0 or is_too_deep(text, depth(value) - 1)


@pytest.mark.parametrize("text", ["[" * 129 + "]" * 129, b"[" * 129, '{"a":' * 129 + "1" + "}" * 129])
def test_one_level_more_than_the_bound_is_too_deep(text: str | bytes) -> None:
    assert is_too_deep(text)
    assert not is_too_deep(text, 129)


def test_many_values_side_by_side_are_not_deep() -> None:
    assert not is_too_deep(encode([[{}]] * 10_000), 3)


def test_a_value_is_given_back_as_its_json_reads() -> None:
    assert storable({"a": (1, 2), "b": None}, dict[str, object], "it") == (
        {"a": [1, 2], "b": None},
        b'{"a":[1,2],"b":null}',
    )
    assert storable({"id": "m", "providerID": "p"}, SessionModel, "it")[0] == SessionModel(id="m", provider_id="p")


@pytest.mark.parametrize(
    "value", ["a/b", {"id": 3, "providerID": "p"}, object(), "\ud800", None], ids=lambda value: type(value).__name__
)
def test_a_value_of_another_shape_is_refused_by_name(value: object) -> None:
    with pytest.raises(Invalid, match="the model cannot be stored"):
        storable(value, SessionModel, "the model")


@pytest.mark.parametrize("value", [{3: 1}, [float("nan")], {"a": [float("-inf")]}, {"a": b"x"}, {"a": {1}}], ids=repr)
def test_what_json_would_say_as_something_else_is_refused(value: object) -> None:
    with pytest.raises(Invalid, match=r"^it holds "):
        storable(value, object, "it")
    assert readable(value, object, "it"), "what was checked before is not looked at again"


@pytest.mark.parametrize("levels", [JSON_DEPTH_MAX + 1, 900, 10_000])
def test_a_value_that_is_too_deep_is_refused(levels: int) -> None:
    value: object = 1
    for _ in range(levels):
        value = [value]
    with pytest.raises(Invalid, match="more than 128 deep"):
        storable(value, list[object], "it")
