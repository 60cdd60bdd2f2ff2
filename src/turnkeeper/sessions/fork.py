"""Fork a session: a new one with a copy of the history, in one transaction."""

from collections.abc import Iterator
from typing import Final

from turnkeeper.core.fork import Copier
from turnkeeper.core.titles import base_of_fork, fork_title, number_of_fork
from turnkeeper.mint import Mint
from turnkeeper.model.event import MessageRecorded
from turnkeeper.model.session import ZERO_TOKENS, Origin, Session, SessionTime
from turnkeeper.model.version import __version__
from turnkeeper.sessions.create import remember_project
from turnkeeper.store import keys
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace

IDS_AT_ONCE: Final = 256


async def fork(
    store: Store, session_id: str, *, message_id: str | None = None, place: ProjectPlace | None = None
) -> Session:
    """Copy a history, whole or up to (without) a message, into a new session. Raises NotFound for either id.

    The copy has cost nothing: what was paid for its history stands in the ledger of the session that paid.
    """
    source = await store.queries.session(session_id)
    new_id = store.mint.session_id()
    copier = Copier(new_id, _ids(store.mint, "msg").__next__, _ids(store.mint, "prt").__next__)
    copied = await _copies(store, copier, session_id, message_id)
    now = store.mint.now()
    session = Session(
        id=new_id,
        slug=store.mint.slug(),
        project_id=place.id if place else source.project_id,
        workspace_id=source.workspace_id,
        directory=str(place.directory) if place else source.directory,
        path=place.path if place else source.path,
        origin=Origin(session_id=session_id, message_id=message_id),
        title=await _title(store, source),
        version=__version__,
        metadata=source.metadata,
        cost=0,
        tokens=ZERO_TOKENS,
        time=SessionTime(created=now, updated=now),
    )
    if place is not None:
        await remember_project(store, place)
    return (await store.journal.create(session, *copied, source=session_id)).session


def _ids(mint: Mint, prefix: str) -> Iterator[str]:
    """New ids without end, made many at a time."""
    while True:
        yield from mint.several(prefix, IDS_AT_ONCE)


async def _copies(store: Store, copier: Copier, session_id: str, message_id: str | None) -> list[MessageRecorded]:
    """Of each message in order, ending before the named one. By place in the list: ids say nothing about order."""
    if message_id is not None:
        await store.queries.message(session_id, message_id)  # An unknown message is refused, not ignored.
    copied: list[MessageRecorded] = []
    async for messages in store.queries.stored(session_id):
        for message in messages:
            if message.info.id == message_id:
                return copied
            copied.append(copier.copy(message.info, message.parts))
    return copied


async def _title(store: Store, source: Session) -> str:
    """The next free number behind the title the source was forked from first."""
    title = fork_title(source.title)
    taken = await store.engine.scan(keys.forks(source.project_id, base_of_fork(title)), limit=1, reverse=True)
    if taken and (newest := int(taken[0][0][-2])) >= number_of_fork(title):
        return f"{base_of_fork(title)} (fork #{newest + 1})"
    return title
