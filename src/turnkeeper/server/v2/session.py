"""Sessions of the second generation, and pages of them."""

from turnkeeper.api import Turnkeeper
from turnkeeper.model.session import Revert, Session, SessionModel
from turnkeeper.model.value import Value
from turnkeeper.server.errors import InvalidCursor
from turnkeeper.server.names import number_in
from turnkeeper.server.public import public
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.reading import Cursors, Order
from turnkeeper.server.v2.shape import Location, TokenUsage
from turnkeeper.store.cursor import cursor

TRAIL_MAX = 20
"""How many pages a client can go back."""


class Times(Value):
    """Milliseconds since 1970."""

    created: int
    updated: int
    archived: int | float | None = None


class SessionInfo(Value):
    """A session as the second generation sends it."""

    id: str
    parent_id: str | None = None
    project_id: str
    agent: str | None = None
    model: SessionModel | None = None
    cost: int | float
    tokens: TokenUsage
    time: Times
    title: str
    location: Location
    subpath: str | None = None
    revert: Revert | None = None


class SessionsPage(Value, omit_defaults=False):
    """A page of sessions in the requested order."""

    data: tuple[SessionInfo, ...]
    cursor: Cursors


class ListPlace(Value):
    """The position between two pages of sessions. ``trail`` holds the start cursors of the pages before."""

    order: Order
    at: str | None = None
    trail: tuple[str | None, ...] = ()


class SessionsQuery(Value):
    """Filters of a list of sessions."""

    directory: str | None = None
    project: str | None = None
    subpath: str | None = None
    search: str | None = None


def session_info(session: Session) -> SessionInfo:
    """A session as the second generation sends it."""
    return SessionInfo(
        id=session.id,
        parent_id=session.parent_id,
        project_id=session.project_id,
        agent=session.agent,
        model=session.model,
        cost=session.cost,
        tokens=shape.usage(session.tokens),
        time=Times(created=session.time.created, updated=session.time.updated, archived=session.time.archived),
        title=session.title,
        location=Location(directory=session.directory),
        subpath=session.path or None,
        revert=public(session.revert),
    )


async def sessions(
    turnkeeper: Turnkeeper, wanted: SessionsQuery, *, limit: int, order: Order, place: ListPlace | None
) -> SessionsPage:
    """A page of sessions, ordered by activity. A cursor holds its order."""
    place = place or ListPlace(order=order)
    if place.order == "desc":
        found, following = await _newest(turnkeeper, wanted, limit, place.at)
    else:
        found, following = await _oldest(turnkeeper, wanted, limit, place.at)
    trail = (*place.trail, place.at)[-TRAIL_MAX:]
    after = cursor(ListPlace(order=place.order, at=following, trail=trail)) if following is not None else None
    before = cursor(ListPlace(order=place.order, at=place.trail[-1], trail=place.trail[:-1])) if place.trail else None
    return SessionsPage(data=tuple(map(session_info, found)), cursor=Cursors(previous=before, next=after))


async def _newest(
    turnkeeper: Turnkeeper, wanted: SessionsQuery, limit: int, at: str | None
) -> tuple[list[Session], str | None]:
    found: list[Session] = []
    after = at
    while True:
        page = await turnkeeper.list(
            project_id=wanted.project,
            directory=wanted.directory if wanted.project is None else None,
            roots=False,
            search=wanted.search or None,
            limit=limit - len(found),
            after=after,
        )
        found.extend(one for one in page.items if _is_below(one, wanted.subpath))
        after = page.older
        if after is None or len(found) >= limit:
            return found, after


async def _oldest(
    turnkeeper: Turnkeeper, wanted: SessionsQuery, limit: int, at: str | None
) -> tuple[list[Session], str | None]:
    """A page with the oldest activity first. The index has the newest first, so all sessions are read."""
    every: list[Session] = []
    after: str | None = None
    while True:
        some, after = await _newest(turnkeeper, wanted, 1000, after)
        every.extend(some)
        if after is None:
            break
    every.reverse()
    if (begin := number_in(at or "0")) is None:
        raise InvalidCursor("Invalid cursor")
    end = begin + limit
    return every[begin:end], str(end) if end < len(every) else None


def _is_below(session: Session, path: str | None) -> bool:
    return not path or session.path == path or (session.path or "").startswith(f"{path}/")
