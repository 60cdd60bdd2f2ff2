"""The OpenAPI document, derived from the table of routes and their types, with opencode's operation ids."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from turnkeeper.model.value import Value
from turnkeeper.model.version import __version__
from turnkeeper.server.errors import status_of
from turnkeeper.server.route import Route

Schema = dict[str, Any]
"""A piece of the document: JSON of the shapes that the OpenAPI specification defines."""

NAMES: Final = "#/components/schemas/{name}"
TITLE: Final = "Turnkeeper"


class FirstError(Value):
    """The body of an error in the first generation. Clients show ``data.message``, else ``message``."""

    name: str | None = None
    tag: str | None = msgspec.field(default=None, name="_tag")
    data: Mapping[str, object] | None = None
    message: str | None = None


class SecondError(Value):
    """The body of an error in the second generation."""

    tag: str = msgspec.field(name="_tag")
    message: str


def document(routes: Sequence[Route]) -> Schema:
    """The OpenAPI document of these routes."""
    kinds = [getattr(route, name) for route in routes for name in _parts(route)] + [FirstError, SecondError]
    schemas, components = msgspec.json.schema_components(kinds, schema_hook=_anything, ref_template=NAMES)
    known = iter(schemas)
    paths: dict[str, Schema] = {}
    for route in routes:
        found = {name: next(known) for name in _parts(route)}
        paths.setdefault(_path(route), {})[route.method.lower()] = _operation(route, found, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": __version__, "description": "Durable agent sessions over HTTP."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
    }


def _anything(kind: type) -> Schema:
    """The schema of ``object``: any JSON value."""
    assert kind is object, f"no schema is known for {kind}"
    return {"description": "Any JSON value."}


def _parts(route: Route) -> list[str]:
    """The fields of a route that hold the type of a query, a body or an answer."""
    return [name for name in ("query", "body", "answer") if getattr(route, name) not in (None, type(None))]


def _path(route: Route) -> str:
    return re.sub(r"/\*$", "/{path}", route.path)


def _operation(route: Route, found: Mapping[str, Schema], components: Mapping[str, Schema]) -> Schema:
    operation: Schema = {
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [route.operation.partition(".")[0]],
        "parameters": [*_path_parameters(route), *_query_parameters(found.get("query"), components), *_place(route)],
        "responses": _responses(route, found.get("answer")),
    }
    if "body" in found:
        is_needed = bool(_resolved(found["body"], components).get("required"))
        operation["requestBody"] = {"required": is_needed, "content": {"application/json": {"schema": found["body"]}}}
    return operation


def _path_parameters(route: Route) -> Iterable[Schema]:
    for name in re.findall(r"\{(\w+)\}", _path(route)):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(query: Schema | None, components: Mapping[str, Schema]) -> Iterable[Schema]:
    if query is None:
        return
    struct = _resolved(query, components)
    for name, schema in struct.get("properties", {}).items():
        is_needed = name in struct.get("required", ())
        yield {"name": name, "in": "query", "required": is_needed, "schema": _without_null(schema)}


def _without_null(schema: Schema) -> Schema:
    """The schema of a query parameter, without null: a query cannot hold one."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema


def _place(route: Route) -> Iterable[Schema]:
    """The parameter that names the directory of a request."""
    if route.path.startswith("/api/"):
        place = {"type": "object", "properties": {"directory": {"type": "string"}}}
        yield {"name": "location", "in": "query", "style": "deepObject", "explode": True, "schema": place}
    elif route.operation != "session.list":  # Its query type already has the directory, as a filter.
        yield {"name": "directory", "in": "query", "required": False, "schema": {"type": "string"}}


def _responses(route: Route, answer: Schema | None) -> Schema:
    done: Schema = {"description": "Done."}
    if answer is not None:
        done["content"] = {route.media: {"schema": answer}}
    elif route.media == "text/event-stream":
        done["content"] = {route.media: {"schema": {"type": "string"}}}
    name = "SecondError" if route.path.startswith("/api/") else "FirstError"
    schema = {"$ref": NAMES.format(name=name)}
    refused = {"description": "Refused.", "content": {"application/json": {"schema": schema}}}
    statuses = {400, *map(status_of, route.refusals)}
    if route.body is not type(None):
        statuses.add(413)
    return {str(route.status): done, **{str(status): refused for status in sorted(statuses)}}


def _resolved(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    reference = schema.get("$ref")
    return components[reference.rpartition("/")[2]] if isinstance(reference, str) else schema
