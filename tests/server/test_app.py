"""The application by itself: routes found, requests decoded, whatever goes wrong answered."""

from collections.abc import Mapping

from turnkeeper.server.request import PlainRequest
from turnkeeper.server.route import Route, route
from turnkeeper.server.table import Table


async def _nothing(call: PlainRequest) -> None:
    return None


def a_route(path: str, operation: str) -> Route:
    return route("GET", path, operation, _nothing)


def found(table: Table, path: str) -> tuple[str, Mapping[str, str]]:
    """The operation behind a path, and what stands in it."""
    route = table.find("GET", path)
    assert route is not None
    return route[0].operation, route[1]


def test_a_literal_segment_is_stronger_than_a_named_one() -> None:
    table = Table([a_route("/session/{sessionID}", "get"), a_route("/session/status", "status")])
    assert [found(table, path)[0] for path in ("/session/ses_1", "/session/status")] == ["get", "status"]


def test_a_path_that_leaves_the_literal_way_later_is_still_found() -> None:
    table = Table([a_route("/session/{sessionID}/todo", "todo"), a_route("/session/status", "status")])
    assert found(table, "/session/status/todo") == ("todo", {"sessionID": "status"})


def test_the_rest_of_a_path_may_be_taken_whole() -> None:
    assert found(Table([a_route("/api/fs/read/*", "read")]), "/api/fs/read/a/b") == ("read", {"*": "a/b"})


def test_an_unknown_path_an_unknown_method_and_an_empty_name_find_nothing() -> None:
    table = Table([a_route("/session/{sessionID}", "get")])
    assert [table.find(*asked) for asked in (("GET", "/x"), ("PUT", "/session/a"), ("GET", "/session/"))] == [None] * 3
