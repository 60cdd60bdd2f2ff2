"""Table: finds the route of a method and path, segment by segment, independent of the number of routes."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from turnkeeper.server.route import Route

REST = "*"
"""A last segment that matches the rest of the path."""

FOUND_MAX = 512
"""Paths whose lookup is cached: a client that works in a session requests few paths many times."""
FOUND_PATH_MAX = 256
"""A longer path is not cached, so that a client cannot fill the memory with long paths."""


class _Node(msgspec.Struct):
    """A path prefix: the segments that may follow, and the routes that end here, by method."""

    literals: dict[str, "_Node"] = {}
    any: "_Node | None" = None
    rest: dict[str, Route] = {}
    ends: dict[str, tuple[Route, tuple[str, ...]]] = {}


class Table:
    """The routes of a server. Two routes with one method and path, or one operation id, are a bug."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        self._remembered = lru_cache(maxsize=FOUND_MAX)(self._find)
        operations: set[str] = set()
        for route in routes:
            assert route.operation not in operations, f"two routes for {route.operation}"
            operations.add(route.operation)
            self._add(route)

    def _add(self, route: Route) -> None:
        node, names = self._root, []
        segments = route.path.split("/")
        for segment in segments[:-1] if segments[-1] == REST else segments:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.any = node = node.any or _Node()
            else:
                node = node.literals.setdefault(segment, _Node())
        if segments[-1] == REST:
            assert not names, f"{route.path} names segments before its rest"
            assert route.method not in node.rest, f"two routes for {route.method} {route.path}"
            node.rest[route.method] = route
        else:
            assert route.method not in node.ends, f"two routes for {route.method} {route.path}"
            node.ends[route.method] = (route, tuple(names))

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
        """The route, and the values of its path variables. HEAD is looked up as GET."""
        return self._remembered(method, path) if len(path) <= FOUND_PATH_MAX else self._find(method, path)

    def _find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
        return _find(self._root, "GET" if method == "HEAD" else method, path.split("/"), ())


def _find(
    node: _Node, method: str, segments: list[str], values: tuple[str, ...]
) -> tuple[Route, dict[str, str]] | None:
    if not segments:
        if (end := node.ends.get(method)) is None:
            return None
        return end[0], dict(zip(end[1], values, strict=True))
    head, tail = segments[0], segments[1:]
    if (literal := node.literals.get(head)) is not None and (found := _find(literal, method, tail, values)):
        return found
    if node.any is not None and head and (found := _find(node.any, method, tail, (*values, head))):
        return found
    return (node.rest[method], {REST: "/".join(segments)}) if method in node.rest else None
