"""Sessions of the second generation, and pages of them."""

import sys

from turnkeeper.model.page import Page
from turnkeeper.model.session import Revert, Session, SessionModel
from turnkeeper.model.value import Value
from turnkeeper.server.errors import InvalidCursor
from turnkeeper.server.public import public
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.reading import Cursors, Order
from turnkeeper.server.v2.shape import Location, TokenUsage
from turnkeeper.sessions.listing import SessionFilter, gathered
from turnkeeper.store.cursor import cursor
from turnkeeper.store.store import Store
from turnkeeper.text.number import number_in

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
    store: Store, wanted: SessionsQuery, *, limit: int, order: Order, place: ListPlace | None
) -> SessionsPage:
    """A page of sessions, ordered by activity. A cursor holds its order."""
    place = place or ListPlace(order=order)
    chosen = SessionFilter(
        project_id=wanted.project,
        directory=wanted.directory if wanted.project is None else None,
        roots=False,
        search=wanted.search or None,
        limit=limit,
    )
    if place.order == "desc":
        page = await gathered(store, chosen._replace(after=place.at), wanted.subpath)
    else:
        page = await _oldest(store, chosen, wanted.subpath, place.at)
    trail = (*place.trail, place.at)[-TRAIL_MAX:]
    after = cursor(ListPlace(order=place.order, at=page.older, trail=trail)) if page.older is not None else None
    before = cursor(ListPlace(order=place.order, at=place.trail[-1], trail=place.trail[:-1])) if place.trail else None
    return SessionsPage(data=tuple(map(session_info, page.items)), cursor=Cursors(previous=before, next=after))


async def _oldest(store: Store, chosen: SessionFilter, path: str | None, at: str | None) -> Page[Session]:
    """A page with the oldest activity first. The index has the newest first, so all sessions are read."""
    if (begin := number_in(at or "0")) is None:
        raise InvalidCursor("Invalid cursor")
    every = (await gathered(store, chosen._replace(limit=sys.maxsize), path)).items[::-1]
    end = begin + chosen.limit
    return Page(items=every[begin:end], older=str(end) if end < len(every) else None)
