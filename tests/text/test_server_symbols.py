"""Symbols of language servers, in the shapes and with the names that servers of several languages send."""

import pytest

from turnkeeper.model.value import Json
from turnkeeper.text.server_symbols import DEPTH_MAX, server_symbols


def a_range(first: int, last: int, character: int = 1) -> dict[str, Json]:
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": character}}


def told(answer: Json) -> list[tuple[str, int, int, int]]:
    return [(one.name, one.kind, one.first, one.last) for one in server_symbols(answer)]


def test_a_tree_has_names_within_names() -> None:
    method: Json = {"name": "run", "kind": 6, "range": a_range(2, 4, 0), "selectionRange": a_range(2, 2)}
    assert told([{"name": "App", "kind": 5, "range": a_range(0, 8), "children": [method]}]) == [
        ("App", 5, 1, 9),
        ("App.run", 6, 3, 4),
    ]


def test_a_flat_list_names_the_container() -> None:
    place: Json = {"uri": "file:///a.py", "range": a_range(3, 5)}
    assert told(
        [
            {"name": "run", "kind": 6, "location": place, "containerName": "App"},
            {"name": "main", "kind": 12, "location": place},
        ]
    ) == [("App.run", 6, 4, 6), ("main", 12, 4, 6)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("(*App).Run", "App.Run"),
        ("(App[T]).Run", "App.Run"),
        ("impl App", "App"),
        ("impl<T> Display for App<T>", "App"),
        ("implement", "implement"),
        ("run(int, String)", "run"),
        ("App::run", "App.run"),
        ("Box<T>", "Box"),
    ],
)
def test_names_are_what_people_write(name: str, expected: str) -> None:
    assert told([{"name": name, "kind": 12, "range": a_range(0, 0)}]) == [(expected, 12, 1, 1)]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {},
        [1, None, {}, {"name": 1, "range": a_range(0, 0)}, {"name": "x", "range": None}],
        [{"name": "<anonymous>", "kind": 12, "range": a_range(0, 0)}],
        [{"name": "x", "kind": 12, "range": a_range(5, 2)}],
        [{"name": "x", "kind": 12, "range": a_range(-1, 2)}],
    ],
)
def test_what_is_no_symbol_is_left_out(answer: Json) -> None:
    assert told(answer) == []


def test_a_tree_is_read_to_a_depth() -> None:
    tree: Json = []
    for _ in range(DEPTH_MAX * 40):
        tree = [{"name": "x", "kind": 12, "range": a_range(0, 0), "children": tree}]
    assert len(told(tree)) == DEPTH_MAX + 1
