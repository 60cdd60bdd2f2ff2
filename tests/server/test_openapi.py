"""The document that describes the API, derived from the table of routes."""

from pathlib import Path

import msgspec
from served import served

from turnkeeper.model.value import encode
from turnkeeper.server import openapi, routes

ROUTES = routes.load()
OURS = ("turnkeeper.", "share.", "global.ready")
"""How the ids of operations begin that opencode does not have."""

DOCUMENT = msgspec.json.decode(encode(openapi.document(ROUTES)))


async def test_the_document_is_served(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await server.get("/doc") == DOCUMENT


def test_every_operation_is_described_under_its_own_id() -> None:
    described = [one["operationId"] for path in DOCUMENT["paths"].values() for one in path.values()]
    assert sorted(described) == sorted(route.operation for route in ROUTES)


def test_every_reference_leads_somewhere() -> None:
    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}

    def references(piece: object) -> set[str]:
        if isinstance(piece, dict):
            own = {piece["$ref"]} if isinstance(piece.get("$ref"), str) else set()
            return own.union(*(references(value) for value in piece.values()))
        return set().union(*(references(value) for value in piece)) if isinstance(piece, list) else set()

    assert references(DOCUMENT) <= known


def test_what_a_query_may_say_is_a_parameter() -> None:
    listed = DOCUMENT["paths"]["/session"]["get"]["parameters"]
    assert {one["name"] for one in listed} == {"directory", "scope", "path", "roots", "start", "search", "limit"}
    assert all(one["in"] == "query" and not one["required"] for one in listed)


def test_a_body_is_needed_only_where_something_in_it_is() -> None:
    assert DOCUMENT["paths"]["/session"]["post"]["requestBody"]["required"] is False
    assert DOCUMENT["paths"]["/session/{sessionID}/message"]["post"]["requestBody"]["required"] is True


def test_routes_have_the_ids_methods_and_paths_of_the_official_document() -> None:
    lines = (Path(__file__).parents[2] / "scripts/opencode_operations.txt").read_text().splitlines()
    official = {(method, path, operation) for method, path, operation, _ in map(str.split, lines)}
    served = {(one.method, one.path, one.operation) for one in ROUTES}
    assert {one for one in served - official if not one[2].startswith(OURS)} == set()
