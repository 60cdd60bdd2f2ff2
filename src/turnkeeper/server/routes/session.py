"""Sessions: create, list, read, change, remove."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Busy, Conflict, NotFound
from turnkeeper.model.session import FileDiff, Session, SessionModel
from turnkeeper.model.status import Idle, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.errors import checked_directory
from turnkeeper.server.names import MessageName, SessionName
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.server.share.making import shared_by_itself
from turnkeeper.sessions import edit, listing

TIME_MAX = 253_402_300_800_000
"""The end of the year 9999 in milliseconds: an upper bound for times in requests."""


class NewSession(Value):
    """Fields of a new session. If a session with this ``id`` exists, it is returned unchanged."""

    id: SessionName | None = None
    parent_id: SessionName | None = None
    title: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    metadata: JsonObject | None = None
    label: str | None = None
    permission: tuple[Rule, ...] | None = None


class ListQuery(Value):
    """Which sessions to return. A directory in the query filters the list; one in the header names the project."""

    directory: str | None = None
    scope: Literal["project"] | None = None
    path: str | None = None
    roots: Literal["true", "false"] = "false"
    start: Annotated[float, msgspec.Meta(ge=0, lt=TIME_MAX)] | None = None
    search: str | None = None
    limit: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] | None = None


class TimeChange(Value):
    """The time of the archiving; null restores the session."""

    archived: Annotated[float, msgspec.Meta(ge=0, lt=TIME_MAX)] | UnsetType | None = UNSET


class SessionChange(Value):
    """Fields to change. Permission rules are appended to the existing rules."""

    title: str | None = None
    metadata: JsonObject | None = None
    permission: tuple[Rule, ...] | None = None
    time: TimeChange | None = None


class ForkBody(Value):
    """The first message that is not copied. Clients of opencode know only this field.

    ``at``: the history is copied as it was after this event. ``worktree``: a new directory for the copy, with the files
    of that moment.
    """

    message_id: MessageName | None = None
    at: Annotated[int, msgspec.Meta(ge=1)] | None = None
    worktree: str | None = None


class DiffQuery(Value):
    """The prompt whose changes are requested."""

    message_id: MessageName | None = None


async def create(call: HttpRequest[None, NewSession]) -> Session:
    """Create a session in the directory that the request names."""
    given = call.body
    made = await call.turnkeeper.create(
        directory=call.directory,
        id=given.id,
        parent_id=given.parent_id,
        title=given.title,
        permission=given.permission,
        agent=given.agent,
        model=given.model,
        metadata=given.metadata,
        label=given.label,
    )
    return public(await shared_by_itself(call, made) if given.id is None else made)


async def list_sessions(call: HttpRequest[ListQuery, None]) -> list[Session]:
    """Sessions of a project or directory, newest activity first."""
    wanted = call.query
    place = await call.place()
    directory: str | None = None
    if wanted.scope is None and wanted.path is None and wanted.directory:
        directory = str(place.directory)
    chosen = listing.SessionFilter(
        directory=directory,
        project_id=place.id if directory is None else None,
        roots=wanted.roots == "true",
        search=wanted.search or None,
        since=int(wanted.start) if wanted.start is not None else None,
        limit=int(wanted.limit or 0) or 100,
    )
    return [public(one) for one in (await listing.gathered(call.turnkeeper.store, chosen, wanted.path)).items]


async def get(call: PlainRequest) -> Session:
    """A session."""
    return public(await call.turnkeeper.store.queries.session(call.session_id))


async def update(call: HttpRequest[None, SessionChange]) -> Session:
    """Change a session's title, metadata or permission rules, archive it or restore it."""
    given = call.body
    changes: dict[str, object] = {}
    if given.title is not None:
        changes["title"] = given.title
    if given.metadata is not None:
        changes["metadata"] = given.metadata

    def editor(session: Session) -> Session:
        more = dict(changes)
        if given.permission is not None:
            more["permission"] = (*(session.permission or ()), *given.permission)
        if given.time is not None and given.time.archived is not UNSET:
            more["time"] = session.time.but(archived=_whole(given.time.archived))
        return session.but(**more)

    return public(await edit.patch(call.turnkeeper.store, call.session_id, editor))


def _whole(time: float | UnsetType | None) -> float | int | None:
    return int(time) if isinstance(time, float | int) and time == int(time) else time or None


async def remove(call: PlainRequest) -> bool:
    """Remove a session, its children and everything that belongs to them."""
    await call.turnkeeper.remove(call.session_id)
    return True


async def status(call: PlainRequest) -> dict[str, Status]:
    """The status of each session that is not idle."""
    store = call.turnkeeper.store
    busy = [key[-1] for key, _ in await store.engine.scan(("busy",))]
    found: dict[str, Status] = {}
    for session_id in busy:
        try:
            one = (await store.queries.state(session_id)).status
        except NotFound:  # Removed since the scan.
            continue
        if not isinstance(one, Idle):
            found[session_id] = one
    return found


async def children(call: PlainRequest) -> list[Session]:
    """The Child Sessions of a session."""
    return [public(one) for one in await call.turnkeeper.children(call.session_id)]


async def todos(call: PlainRequest) -> tuple[Todo, ...]:
    """The task list of a session."""
    return public(await call.turnkeeper.todos(call.session_id))


async def diff(call: HttpRequest[DiffQuery, None]) -> tuple[FileDiff, ...]:
    """The files that a session, or one of its prompts, changed; empty if that is not known."""
    try:
        if call.query.message_id is None:
            return await call.turnkeeper.diffs(call.session_id)
        found = (await call.turnkeeper.message(call.session_id, call.query.message_id)).info
    except NotFound:
        return ()
    summary = getattr(found, "summary", None)
    return getattr(summary, "diffs", ())


async def fork(call: HttpRequest[None, ForkBody]) -> Session:
    """Copy a session's history into a new session."""
    given = call.body
    worktree = checked_directory(given.worktree, "Payload") if given.worktree is not None else None
    forked = await call.turnkeeper.fork(call.session_id, message_id=given.message_id, at=given.at, worktree=worktree)
    return public(forked)


ROUTES = (
    route("GET", "/session", "session.list", list_sessions),
    route("POST", "/session", "session.create", create, NotFound),
    route("GET", "/session/status", "session.status", status),
    route("GET", "/session/{sessionID}", "session.get", get, NotFound),
    route("DELETE", "/session/{sessionID}", "session.delete", remove, NotFound),
    route("PATCH", "/session/{sessionID}", "session.update", update, NotFound),
    route("GET", "/session/{sessionID}/children", "session.children", children, NotFound),
    route("GET", "/session/{sessionID}/todo", "session.todo", todos, NotFound),
    route("GET", "/session/{sessionID}/diff", "session.diff", diff),
    route("POST", "/session/{sessionID}/fork", "session.fork", fork, Busy, Conflict, NotFound),
)
