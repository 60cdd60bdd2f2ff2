"""The application by itself: routes found, requests decoded, whatever goes wrong answered."""

from turnkeeper.server.route import Route
from turnkeeper.server.table import Table


async def _nothing(call: object) -> None:
    return None


def a_route(path: str, operation: str) -> Route[None, None]:
    return Route(method="GET", path=path, operation=operation, tier=1, summary="", handler=_nothing)


def test_a_literal_segment_is_stronger_than_a_named_one() -> None:
    table = Table([a_route("/session/{sessionID}", "get"), a_route("/session/status", "status")])
    assert [table.find("GET", path)[0].operation for path in ("/session/ses_1", "/session/status")] == ["get", "status"]


def test_a_path_that_leaves_the_literal_way_later_is_still_found() -> None:
    table = Table([a_route("/session/{sessionID}/todo", "todo"), a_route("/session/status", "status")])
    route, params = table.find("GET", "/session/status/todo")
    assert (route.operation, params) == ("todo", {"sessionID": "status"})


def test_the_rest_of_a_path_may_be_taken_whole() -> None:
    assert Table([a_route("/api/fs/read/*", "read")]).find("GET", "/api/fs/read/a/b")[1] == {"*": "a/b"}


def test_an_unknown_path_an_unknown_method_and_an_empty_name_find_nothing() -> None:
    table = Table([a_route("/session/{sessionID}", "get")])
    assert [table.find(*asked) for asked in (("GET", "/x"), ("PUT", "/session/a"), ("GET", "/session/"))] == [None] * 3
