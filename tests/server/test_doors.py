"""What no route takes: empty names, JSON that is too deep, endless numbers, paths that no system has."""

from base64 import urlsafe_b64encode
from pathlib import Path

import msgspec
import pytest
from served import served

from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.server import routes
from turnkeeper.server.route import Route

ROUTES = [route for route in routes.load() if route.media == "application/json"]
"""All but the streams, which do not end."""

WITH_QUERY = [route for route in ROUTES if route.query is not type(None)]
WITH_BODY = [route for route in ROUTES if route.body is not type(None)]


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize("route", WITH_QUERY, ids=name_of)
async def test_an_empty_word_in_a_query_is_no_filter_or_refused(route: Route, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        path = route.path.replace("{sessionID}", session)
        for field in msgspec.structs.fields(route.query):
            answer = await server.http.request(route.method, path, params={field.encode_name: ""})
            assert answer.status_code < 500, f"?{field.encode_name}= answers {answer.text}"


async def test_an_empty_parent_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await server.get("/experimental/session?parent=", 400)
        await server.get("/experimental/session?project=", 400)


@pytest.mark.parametrize("route", WITH_BODY, ids=name_of)
async def test_a_body_that_is_too_deep_is_refused(route: Route, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        path = route.path.replace("{sessionID}", await server.session()).replace("{", "x").replace("}", "")
        for levels in (JSON_DEPTH_MAX + 1, 950, 100_000):
            answer = await server.http.request(route.method, path, content=deep(levels))
            assert 400 <= answer.status_code < 500, answer.text


DEEP_CURSOR = urlsafe_b64encode(b'{"seq":1,"order":"asc","direction":"next","x":' + deep(5000) + b"}").decode()
LONG_NUMBER = "9" * 5000
LONG_PLACE = urlsafe_b64encode(b'{"order":"asc","at":"%b"}' % LONG_NUMBER.encode()).decode()


@pytest.mark.parametrize(
    "address",
    [
        f"/session/{{id}}/message?limit=2&before={DEEP_CURSOR}",
        f"/experimental/session?cursor={DEEP_CURSOR}",
        f"/tk/sessions?cursor={DEEP_CURSOR}",
        f"/api/session/{{id}}/message?cursor={DEEP_CURSOR}",
        f"/api/session?cursor={DEEP_CURSOR}",
        f"/api/session?cursor={LONG_PLACE}",
        f"/api/session/{{id}}/event?after={LONG_NUMBER}",
    ],
)
async def test_a_cursor_that_is_too_deep_or_too_long_is_refused(address: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await server.get(address.replace("{id}", await server.session()), 400)


async def test_metadata_as_deep_as_the_bound_is_kept(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        body = b'{"metadata":' + deep(JSON_DEPTH_MAX - 2) + b"}"
        made = (await server.http.post("/session", content=body)).raise_for_status().json()
        assert (await server.get(f"/session/{made['id']}"))["metadata"] == made["metadata"]


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
async def test_a_directory_of_five_thousand_characters_is_refused(route: Route, tmp_path: Path) -> None:
    long = "/" + "x" * 5000
    async with served(tmp_path) as server:
        path = route.path.replace("{sessionID}", await server.session()).replace("{", "x").replace("}", "")
        words = {"directory": long, "location[directory]": long}
        body = b"{}" if route.body is not type(None) else None
        answer = await server.http.request(route.method, path, params=words, content=body)
        assert answer.status_code < 500, answer.text
