"""Sessions of all projects, archived ones too if wanted: in pages, with a cursor."""

from typing import Annotated, Literal

import msgspec

from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value
from turnkeeper.server import answer
from turnkeeper.server.answer import HttpResponse
from turnkeeper.server.call import HttpRequest
from turnkeeper.server.errors import checked_directory
from turnkeeper.server.names import ProjectName, SessionName
from turnkeeper.server.public import public
from turnkeeper.server.route import Route
from turnkeeper.server.routes.session import TIME_MAX
from turnkeeper.store import keys
from turnkeeper.store.store import Store


class EverywhereQuery(Value):
    """Which sessions are wanted: all, or those of a directory, a project or a parent. ``cursor`` is the header
    ``X-Next-Cursor`` of the page before.
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


class ProjectWords(Value):
    """A project in a word."""

    id: str
    worktree: str
    name: str | None = None


class SessionOfProject(Session, omit_defaults=True):
    """A session, and the project it belongs to."""

    project: ProjectWords | None


async def list_sessions(call: HttpRequest[EverywhereQuery, None]) -> HttpResponse:
    """Sessions of all directories, newest activity first; where older ones are is said in the headers."""
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
        return answer.json(found)
    more = ((b"x-next-cursor", page.older.encode()), (b"access-control-expose-headers", b"X-Next-Cursor"))
    return answer.json(found, headers=more)


async def _projects(store: Store, names: set[str]) -> dict[str, ProjectWords]:
    ordered = sorted(names)
    stored = await store.engine.get([keys.project(name) for name in ordered])
    decoder = msgspec.json.Decoder(ProjectWords)
    return {name: decoder.decode(body) for name, body in zip(ordered, stored, strict=True) if body is not None}


def _with(session: Session, project: ProjectWords | None) -> SessionOfProject:
    fields = {name: getattr(session, name) for name in session.__struct_fields__}
    return SessionOfProject(**fields, project=project)


ROUTES = (
    Route(
        method="GET",
        path="/experimental/session",
        operation="experimental.session.list",
        handler=list_sessions,
        query=EverywhereQuery,
        answer=list[SessionOfProject],
        errors=(Invalid, NotFound),
    ),
)
