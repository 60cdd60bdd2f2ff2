"""List sessions: newest activity first, filtered."""

from collections.abc import Mapping

from turnkeeper.model.page import Page
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.store import keys
from turnkeeper.store.documents import Listing
from turnkeeper.store.engine import Key
from turnkeeper.store.session_reader import Filter
from turnkeeper.store.store import Store


async def sessions(
    store: Store,
    *,
    project_id: str | None = None,
    directory: str | None = None,
    parent_id: str | None = None,
    roots: bool = True,
    archived: bool = False,
    search: str | None = None,
    since: int | None = None,
    limit: int = 100,
    after: str | None = None,
) -> Page[Session]:
    """A page of sessions. The scope is one of project, directory and parent; the rest narrows it."""
    scope, lists = await _lists(store, project_id, directory, parent_id, roots, archived, search)
    return await store.queries.sessions(scope, lists=lists, since=since, limit=limit, after=after)


async def _lists(
    store: Store,
    project_id: str | None,
    directory: str | None,
    parent_id: str | None,
    roots: bool,
    archived: bool,
    search: str | None,
) -> tuple[Key, Mapping[str, Filter | None]]:
    """The scope of a list, and which of its two lists are looked into, each with its filter."""
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

    # All that are in the first list pass, but for the words; it is not looked into where none are given.
    lists: dict[str, Filter | None] = {keys.LISTED: is_named if words is not None else None}
    if archived or not roots:
        lists[keys.UNLISTED] = keep
    return scope, lists
