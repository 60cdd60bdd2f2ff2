"""List sessions: a page by newest activity with filters, or the ids of all."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from turnkeeper.model.page import Page
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.store import keys
from turnkeeper.store.documents import Listing
from turnkeeper.store.engine import Engine, Key
from turnkeeper.store.session_reader import Filter
from turnkeeper.store.store import Store

IDS_AT_ONCE: Final = 1000


class SessionFilter(NamedTuple):
    """Which sessions a list has: those of one project, directory or parent, narrowed by the other fields."""

    project_id: str | None = None
    directory: str | None = None
    parent_id: str | None = None
    roots: bool = True
    """Whether Child Sessions are left out."""
    archived: bool = False
    """Whether archived sessions are included."""
    search: str | None = None
    """A text that the title contains."""
    since: int | None = None
    limit: int = 100
    after: str | None = None
    """The ``older`` cursor of the page before."""


async def sessions(store: Store, wanted: SessionFilter) -> Page[Session]:
    """A page of sessions, newest activity first."""
    scope, lists = await _lists(store, wanted)
    return await store.queries.sessions(scope, lists=lists, since=wanted.since, limit=wanted.limit, after=wanted.after)


async def gathered(store: Store, wanted: SessionFilter, path: str | None = None) -> Page[Session]:
    """As many sessions as the limit says, however large it is; with a path, those there or below, in their project."""
    found: list[Session] = []
    while True:
        page = await sessions(store, wanted._replace(limit=wanted.limit - len(found)))
        found += [one for one in page.items if not path or f"{one.path or ''}/".startswith(f"{path}/")]
        if page.older is None or len(found) >= wanted.limit:
            return Page(items=tuple(found), older=page.older)
        wanted = wanted._replace(after=page.older)


async def every_id(engine: Engine) -> list[str]:
    """The ids of all sessions that have a log."""
    names: list[str] = []
    while page := await engine.logs(after=names[-1] if names else "", limit=IDS_AT_ONCE):
        names.extend(page)
    return names


async def _lists(store: Store, wanted: SessionFilter) -> tuple[Key, Mapping[str, Filter | None]]:
    """The scope of a list, and the filter of each of its two index lists that is read."""
    project_id, directory, parent_id, roots, archived, search, *_ = wanted
    if sum(given is not None for given in (project_id, directory, parent_id)) > 1:
        raise Invalid("list by project, by directory or by parent, not by several of them")
    scope = keys.STORE
    if parent_id is not None:
        await store.queries.state(parent_id)
        scope, roots = keys.below(parent_id), False
    elif project_id is not None:
        scope = keys.in_project(project_id)
    elif directory is not None:
        scope = keys.in_directory(directory)
    words = search.casefold() if search else None

    def is_named(listing: Listing) -> bool:
        return words is None or words in listing.title.casefold()

    def keep(listing: Listing) -> bool:
        if (listing.archived and not archived) or (listing.parent and roots):
            return False
        return is_named(listing)

    # The first list has only roots that are not archived. Without search words all of them match, undecoded.
    lists: dict[str, Filter | None] = {keys.LISTED: is_named if words is not None else None}
    if archived or not roots:
        lists[keys.UNLISTED] = keep
    return scope, lists
