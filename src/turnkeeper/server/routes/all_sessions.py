"""Sessions of all projects, in pages."""

from typing import Annotated, Literal

import msgspec

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value
from turnkeeper.server import response
from turnkeeper.server.errors import checked_directory
from turnkeeper.server.names import ProjectName, SessionName
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest
from turnkeeper.server.response import HttpResponse
from turnkeeper.server.route import route
from turnkeeper.server.routes.session import TIME_MAX
from turnkeeper.store import keys
from turnkeeper.store.store import Store


class AllSessionsQuery(Value):
    """Which sessions to return: all, or those of a directory, a project or a parent. ``cursor`` is the header
    ``X-Next-Cursor`` of the previous page.
    """

    directory: str | None = None
    project: ProjectName | None = None
    parent: SessionName | None = None
    roots: Literal["true", "false"] = "false"
    archived: Literal["true", "false"] = "false"
    start: Annotated[float, msgspec.Meta(ge=0, lt=TIME_MAX)] | None = None
    search: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 100
    cursor: str | None = None


class ProjectEntry(Value):
    """The project of a listed session."""

    id: str
    worktree: str
    name: str | None = None


class SessionOfProject(Session, omit_defaults=True):
    """A session with its project."""

    project: ProjectEntry | None


async def list_sessions(call: HttpRequest[AllSessionsQuery, None]) -> HttpResponse:
    """Sessions of all projects in pages, newest activity first; the header ``X-Next-Cursor`` leads to older ones."""
    wanted = call.query
    if wanted.directory is not None:
        checked_directory(wanted.directory, "Query")
    page = await call.turnkeeper.list(
        directory=wanted.directory,
        project_id=wanted.project,
        parent_id=wanted.parent,
        roots=wanted.roots == "true",
        archived=wanted.archived == "true",
        since=int(wanted.start) if wanted.start is not None else None,
        search=wanted.search or None,
        limit=wanted.limit,
        after=wanted.cursor,
    )
    projects = await _projects(call.turnkeeper.store, {one.project_id for one in page.items})
    found = [_with(public(one), projects.get(one.project_id)) for one in page.items]
    if page.older is None:
        return response.json(found)
    more = ((b"x-next-cursor", page.older.encode()), (b"access-control-expose-headers", b"X-Next-Cursor"))
    return response.json(found, headers=more)


async def _projects(store: Store, names: set[str]) -> dict[str, ProjectEntry]:
    ordered = sorted(names)
    stored = await store.engine.get([keys.project(name) for name in ordered])
    decoder = msgspec.json.Decoder(ProjectEntry)
    return {name: decoder.decode(body) for name, body in zip(ordered, stored, strict=True) if body is not None}


def _with(session: Session, project: ProjectEntry | None) -> SessionOfProject:
    fields = {name: getattr(session, name) for name in session.__struct_fields__}
    return SessionOfProject(**fields, project=project)


ROUTES = (
    route(
        "GET",
        "/experimental/session",
        "experimental.session.list",
        list_sessions,
        NotFound,
        answer=list[SessionOfProject],
    ),
)
