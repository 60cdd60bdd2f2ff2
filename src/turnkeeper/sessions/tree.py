"""Tree of a session: its parents, Child Sessions and forks, with the status and cost of each."""

from typing import Literal, TypeAlias

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.model.status import Status
from turnkeeper.model.value import Value
from turnkeeper.sessions.listing import SessionFilter, sessions
from turnkeeper.store.store import Store

LOOKED_AT_MAX = 2000
"""Sessions of the project that are searched for forks."""
DEPTH_MAX = 100

Relation: TypeAlias = Literal["self", "parent", "child", "fork", "origin"]


class Relative(Value):
    """A session of the tree. ``of`` is the session it is a child or fork of; ``seq`` is where a fork was made."""

    id: str
    title: str
    relation: Relation
    of: str | None = None
    seq: int | None = None
    status: Status
    cost: int | float
    updated: int


class Tree(Value):
    """The relatives of a session, parents first. ``is_partial``: the project has more sessions than were searched."""

    id: str
    relatives: tuple[Relative, ...]
    is_partial: bool = False


async def tree(store: Store, session_id: str) -> Tree:
    """The tree of a session. Raises NotFound."""
    session = await store.queries.session(session_id)
    found = [*await _above(store, session), await _relative(store, session, "self", session.parent_id)]
    if session.origin is not None:
        found += await _known(store, session.origin.session_id, "origin")
    below = await store.queries.children(session_id, recursive=True)
    found += [await _relative(store, child, "child", child.parent_id) for child in below]
    forks, is_partial = await _forks(store, session)
    found += [await _relative(store, fork, "fork", session_id) for fork in forks]
    return Tree(id=session_id, relatives=tuple(found), is_partial=is_partial)


async def _above(store: Store, session: Session) -> list[Relative]:
    found: list[Relative] = []
    parent_id = session.parent_id
    while parent_id is not None and len(found) < DEPTH_MAX:
        try:
            parent = await store.queries.session(parent_id)
        except NotFound:
            break
        found.append(await _relative(store, parent, "parent", parent.parent_id))
        parent_id = parent.parent_id
    return found[::-1]


async def _known(store: Store, session_id: str, relation: Relation) -> list[Relative]:
    try:
        return [await _relative(store, await store.queries.session(session_id), relation, None)]
    except NotFound:  # Removed.
        return []


async def _forks(store: Store, session: Session) -> tuple[list[Session], bool]:
    found: list[Session] = []
    seen, after = 0, None
    while seen < LOOKED_AT_MAX:
        wanted = SessionFilter(project_id=session.project_id, roots=False, archived=True, after=after)
        page = await sessions(store, wanted)
        seen += len(page.items)
        found += [one for one in page.items if one.origin is not None and one.origin.session_id == session.id]
        if (after := page.older) is None:
            return found, False
    return found, True


async def _relative(store: Store, session: Session, relation: Relation, of: str | None) -> Relative:
    return Relative(
        id=session.id,
        title=session.title,
        relation=relation,
        of=of,
        seq=session.origin.seq if session.origin is not None and relation == "fork" else None,
        status=(await store.queries.state(session.id)).status,
        cost=session.cost,
        updated=session.time.updated,
    )
