"""Registry: things come for a scope, leave with it, and are always found in the same order."""

import pytest

from turnkeeper.registry import DuplicateKey, Registry


def test_a_thing_stays_for_its_scope() -> None:
    registry: Registry[int] = Registry("tool")
    with registry.register("a", 1) as value:
        assert value == 1
        assert list(registry) == [1]
    assert list(registry) == []


def test_a_thing_leaves_even_when_its_scope_fails() -> None:
    registry: Registry[int] = Registry("tool")
    with pytest.raises(RuntimeError), registry.register("a", 1):
        raise RuntimeError
    assert list(registry) == []


def test_a_taken_key_is_refused_and_its_holder_stays() -> None:
    registry: Registry[int] = Registry("tool")
    registry.register("a", 1)
    with pytest.raises(DuplicateKey, match="tool with the key 'a' is already registered"):
        registry.register("a", 2)
    assert list(registry) == [1]


def test_a_thing_registered_anew_replaces_the_one_that_left() -> None:
    registry: Registry[int] = Registry("tool")
    old = registry.register("a", 1)
    old.close()
    registry.register("a", 2)
    old.close()
    assert list(registry) == [2]


def test_values_are_in_the_order_of_their_keys() -> None:
    registry: Registry[int] = Registry("component")
    for key, value in [("b", 2), ("a/x", 1), ("ä", 4), ("c", 3)]:
        registry.register(key, value)
    assert list(registry) == [1, 2, 3, 4]


def test_things_that_cannot_be_compared_are_ordered_all_the_same() -> None:
    registry: Registry[object] = Registry("tool")
    first, second = object(), object()
    registry.register("b", second)
    registry.register("a", first)
    assert list(registry) == [first, second]


def test_an_iteration_goes_on_over_what_was_there() -> None:
    registry: Registry[int] = Registry("tool")
    handles = [registry.register(key, value) for key, value in [("a", 1), ("b", 2)]]
    seen = []
    for value in registry:
        seen.append(value)
        for handle in handles:
            handle.close()
    assert seen == [1, 2]
