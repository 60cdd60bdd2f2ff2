"""Records: create, read, change and copy the sessions of a store and their messages."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.api.opener import Opener
from turnkeeper.core.arguments import checked
from turnkeeper.core.entry import Recorded
from turnkeeper.core.limits import RECALL_HITS_MAX, RECALL_PAGE_CHARS
from turnkeeper.model.message import ModelName, session_model
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.page import Page
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject
from turnkeeper.sessions import create, edit, history, listing
from turnkeeper.sessions.listing import SessionFilter
from turnkeeper.store.queries import SearchHit
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import identify

if TYPE_CHECKING:
    from turnkeeper.core.recall import RecallHit, RecallPage
    from turnkeeper.model.ledger import LedgerRow
    from turnkeeper.model.status import Status
    from turnkeeper.sessions.context import ContextReport


@checked
class Records:
    """The methods that need neither a model nor subscribers. ``Turnkeeper`` adds the others."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store, self._opener = store, Opener()
        self._directory = directory

    @property
    def store(self) -> Store:
        """The open store. Raises StoreUnavailable in a process that was forked from the one that opened it."""
        self._opener.check()
        return self._store

    async def status(self, session_id: str) -> "Status":
        """The status of a session: idle, busy, or waiting to try again."""
        return (await self.store.queries.state(session_id)).status

    async def create(
        self,
        *,
        directory: str | Path | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        title: str | None = None,
        permission: Ruleset | None = None,
        agent: str | None = None,
        model: ModelName | None = None,
        metadata: JsonObject | None = None,
        label: str | None = None,
    ) -> Session:
        """Create a session in a directory. With an ``id`` that exists: the stored session, unchanged.

        Only hosts with the ``label`` run it; its directory exists there.
        """
        place = await identify(directory or self._directory)
        return await create.create(
            self.store,
            place,
            id=id,
            parent_id=parent_id,
            title=title,
            permission=permission,
            agent=agent,
            model=session_model(model),
            metadata=metadata,
            label=label,
        )

    async def get(self, session_id: str) -> Session:
        """One session."""
        return await self.store.queries.session(session_id)

    async def list(
        self,
        *,
        project_id: str | None = None,
        directory: str | Path | None = None,
        parent_id: str | None = None,
        roots: bool = True,
        archived: bool = False,
        search: str | None = None,
        since: int | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[Session]:
        """A page of sessions, newest activity first. ``after`` is the ``older`` cursor of the page before."""
        place = str(directory) if directory is not None else None
        wanted = SessionFilter(project_id, place, parent_id, roots, archived, search, since, limit, after)
        return await listing.sessions(self.store, wanted)

    async def children(self, session_id: str, *, recursive: bool = False) -> Sequence[Session]:
        """The Child Sessions of a session."""
        await self.store.queries.state(session_id)
        return await self.store.queries.children(session_id, recursive=recursive)

    async def update(self, session_id: str, editor: Callable[[Session], Session]) -> Session:
        """Change a session by a pure function, atomically: ``lambda session: session.but(title="New")``."""
        return await edit.update(self.store, session_id, editor)

    async def rename(self, session_id: str, title: str) -> Session:
        """Give a session a title."""
        return await edit.rename(self.store, session_id, title)

    async def touch(self, session_id: str) -> Session:
        """Set the time of the last activity of a session to now."""
        return await edit.touch(self.store, session_id)

    async def archive(self, session_id: str) -> Session:
        """Leave a session out of the list. Its data stays."""
        return await edit.archive(self.store, session_id)

    async def restore(self, session_id: str) -> Session:
        """Show an archived session in the list again."""
        return await edit.restore(self.store, session_id)

    async def move(self, session_id: str, directory: str | Path | None = None, *, label: str | None = None) -> Session:
        """Change the directory of a session, and its project to that of the directory; or its label.

        Only hosts with the label run it, and have its directory. An empty text removes the label.
        """
        place = await identify(directory) if directory is not None else None
        return await edit.move(self.store, session_id, place, label=label)

    async def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]:
        """A page of the history, oldest message first: the newest page, or the one next to a cursor."""
        return await self.store.queries.messages(session_id, limit=limit, before=before, after=after)

    async def iter_messages(self, session_id: str, *, reverse: bool = True) -> AsyncIterator[MessageWithParts]:
        """Every message, newest first unless ``reverse`` is False. The history is loaded in pages."""
        await self.store.queries.state(session_id)
        async for message in self.store.queries.stream(session_id, reverse=reverse):
            yield message

    async def message(self, session_id: str, message_id: str) -> MessageWithParts:
        """One message with its parts."""
        return await self.store.queries.message(session_id, message_id)

    async def update_part(self, part: Part) -> Part:
        """Replace a part. It keeps its place in the message."""
        return await history.update_part(self.store, part)

    async def remove_part(self, session_id: str, message_id: str, part_id: str) -> None:
        """Remove a part from its message."""
        await history.remove_part(self.store, session_id, message_id, part_id)

    async def remove_message(self, session_id: str, message_id: str) -> None:
        """Remove a message and its parts from the history."""
        await history.remove_message(self.store, session_id, message_id)

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """The task list of a session."""
        await self.store.queries.state(session_id)
        return await self.store.queries.todos(session_id)

    async def set_todos(self, session_id: str, todos: Iterable[Todo]) -> tuple[Todo, ...]:
        """Replace the task list of a session."""
        return await edit.set_todos(self.store, session_id, tuple(todos))

    async def explain_context(self, session_id: str) -> "ContextReport":
        """The System Context of a session, and how much of each request its provider could reuse."""
        from turnkeeper.sessions import context

        return await context.report(self.store, await self.store.journal.view(session_id))

    async def ledger(self, session_id: str | None = None) -> "AsyncIterator[LedgerRow]":
        """The ledger: a row with tokens and cost for each attempt, of one session or of all."""
        if session_id is not None:
            await self.store.queries.state(session_id)
        async for row in self.store.queries.ledger(session_id):
            yield row

    async def diffs(self, session_id: str) -> tuple[FileDiff, ...]:
        """The changes of a session on disk, file by file."""
        await self.store.queries.state(session_id)
        return await self.store.queries.diffs(session_id)

    async def search(self, words: str, *, session_id: str | None = None, limit: int = 50) -> Sequence[SearchHit]:
        """The messages and titles that contain all of these words, newest first, of one session or of all."""
        if session_id is not None:
            await self.store.queries.state(session_id)
        return await self.store.queries.search(words, session_id=session_id, limit=limit)

    async def recall(
        self, session_id: str, handle: str, *, offset: int = 0, limit: int | None = RECALL_PAGE_CHARS
    ) -> "RecallPage":
        """A page of the text with this handle, from a character on; also of a text that the model is not sent."""
        from turnkeeper.core.recall import page
        from turnkeeper.store.recall import SessionRecall

        await self.store.queries.state(session_id)
        found = await SessionRecall(self.store.queries, session_id).find(handle)
        return page(found, offset, chars_max=limit, bytes_max=None)

    async def recall_search(
        self, session_id: str, query: str, *, limit: int = RECALL_HITS_MAX
    ) -> "Sequence[RecallHit]":
        """Texts with these words and their handles. Those that the model is not sent come first."""
        from turnkeeper.store.recall import SessionRecall

        await self.store.queries.state(session_id)
        return await SessionRecall(self.store.queries, session_id).search(query, limit)

    async def tail(self, session_id: str, *, after: int = 0) -> AsyncIterator[Recorded]:
        """The events of a session from ``after + 1`` on, then each new one of every process.

        It ends only with the session: NotFound is raised once that is removed.
        """
        if after < 0:
            raise Invalid(f"after is the number of an event, or 0 to begin at the first, not {after}")
        await self.store.queries.state(session_id)
        async for recorded in self.store.journal.tail(session_id, after):
            yield recorded
