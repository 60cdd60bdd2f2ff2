"""Overview of sessions: pages by newest activity, each session with its status and cost, and with its descendants."""

from collections.abc import Iterator
from contextlib import suppress

from turnkeeper.core.family import Kin, family
from turnkeeper.model.failure import AbortedFailure, words_of
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session, Summary
from turnkeeper.model.status import Status
from turnkeeper.model.value import Value
from turnkeeper.sessions.listing import SessionFilter, sessions
from turnkeeper.store.damaged import DamagedDocument
from turnkeeper.store.store import Store

FAILURE_CHARS = 200


class ListedSession(Value):
    """A session of a list. ``origin_id``: the session it is a fork of, ``origin_seq``: after which event.

    ``failure``: the newest turn failed, and why. ``is_undone``: an undo is pending, and ``summary`` has the changes
    that it took back. ``total_cost`` adds the cost of all descendants.
    """

    id: str
    title: str
    directory: str
    project_id: str
    parent_id: str | None = None
    origin_id: str | None = None
    origin_seq: int | None = None
    status: Status
    failure: str | None = None
    summary: Summary | None = None
    is_undone: bool = False
    cost: int | float
    total_cost: int | float
    updated: int


class Overview(Value):
    """A page of sessions, each followed by its descendants. ``older`` is the cursor of the next page."""

    items: tuple[ListedSession, ...]
    older: str | None = None


async def overview(store: Store, *, limit: int = 60, after: str | None = None) -> Overview:
    """A page of the sessions of all projects, newest activity first."""
    page = await sessions(store, SessionFilter(limit=limit, after=after))
    found: list[ListedSession] = []
    for root in page.items:
        below = await store.queries.children(root.id, recursive=True)
        totals = dict(_totals(family(root, below, {})))
        for one in (root, *below):
            with suppress(NotFound, DamagedDocument):  # Removed meanwhile, or one that `doctor` reports.
                found.append(await _listed(store, one, totals.get(one.id, one.cost)))
    return Overview(items=tuple(found), older=page.older)


def _totals(kin: Kin) -> Iterator[tuple[str, float]]:
    yield kin.id, kin.total_cost
    for one in kin.children:
        yield from _totals(one)


async def _listed(store: Store, session: Session, total: float) -> ListedSession:
    summary, origin = session.summary, session.origin
    return ListedSession(
        id=session.id,
        title=session.title,
        directory=session.directory,
        project_id=session.project_id,
        parent_id=session.parent_id,
        origin_id=origin.session_id if origin is not None else None,
        origin_seq=origin.seq if origin is not None else None,
        status=(await store.queries.state(session.id)).status,
        failure=await _failure(store, session.id),
        summary=summary.but(diffs=None) if summary is not None else None,
        is_undone=session.revert is not None,
        cost=session.cost,
        total_cost=total,
        updated=session.time.updated,
    )


async def _failure(store: Store, session_id: str) -> str | None:
    """Why the newest turn failed; None if it did not, or the user stopped it."""
    last = await store.queries.newest(session_id)
    if not isinstance(last, AssistantMessage) or last.error is None or isinstance(last.error, AbortedFailure):
        return None
    return words_of(last.error)[:FAILURE_CHARS]
