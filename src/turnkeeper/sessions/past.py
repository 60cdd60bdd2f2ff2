"""Past of a session: its state after one of its events, from a fold of the log up to that event."""

from collections.abc import AsyncIterator, Sequence

from turnkeeper.core.entry import Damaged
from turnkeeper.core.view import SessionView
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.page import Page
from turnkeeper.model.permission import PermissionRequest
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.todo import Todo
from turnkeeper.sessions.doctor_log import Fold
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, Key
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store


class PastSession:
    """A session as a reader would have loaded it after event ``seq``."""

    def __init__(self, view: SessionView, queries: Queries) -> None:
        self.view, self.queries = view, queries
        """The view then, with marks in place of blobs, and the queries of the documents of that time."""
        self.id, self.seq = view.session.id, view.seq

    async def session(self) -> Session:
        """The session."""
        return await self.queries.session(self.id)

    async def messages(
        self, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]:
        """A page of the history, oldest message first: the newest page, or the one next to a cursor."""
        return await self.queries.messages(self.id, limit=limit, before=before, after=after)

    async def stream(self, *, reverse: bool = True) -> AsyncIterator[MessageWithParts]:
        """Every message, newest first unless ``reverse`` is False."""
        async for message in self.queries.stream(self.id, reverse=reverse):
            yield message

    async def todos(self) -> tuple[Todo, ...]:
        """The task list."""
        return await self.queries.todos(self.id)

    async def requests(self) -> list[PermissionRequest | QuestionRequest]:
        """The requests to the user that waited for an answer."""
        found = await self.queries.asks(self.id)
        return [ask.request for one in found for ask in one.asks if ask.reply is None]

    async def diffs(self) -> tuple[FileDiff, ...]:
        """The changes on disk, file by file."""
        return await self.queries.diffs(self.id)


async def past(store: Store, session_id: str, seq: int) -> PastSession:
    """A session after event ``seq``. Raises Invalid if it has no such event, and Damaged if its log cannot be read."""
    keys.checked(session_id)
    length = await store.engine.length(session_id)
    if not length:
        raise NotFound(f"there is no session {session_id!r}")
    if not 1 <= seq <= length:
        raise Invalid(f"session {session_id!r} has no event {seq}; its events are numbered from 1 to {length}")
    fold = Fold(store.engine, session_id)
    await fold.read_on(until=seq)
    if fold.damage is not None:
        raise Damaged(fold.damage.seq, fold.damage.reason)
    if fold.view is None or fold.seq < seq:
        raise Damaged(fold.seq + 1, f"is missing from the log of {session_id}")
    engine = _PastEngine(store.engine)
    await engine.put(fold.documents())
    return PastSession(fold.view, Queries(engine))


class _PastEngine(MemoryEngine):
    """The documents of the past in memory. Blobs are read from the store: they never change."""

    def __init__(self, present: Engine) -> None:
        super().__init__()
        self._present = present

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The documents under these keys, in their order."""
        found = dict(zip(keys, await super().get(keys), strict=True))
        blobs = [key for key in found if key[0] == "blob"]
        if blobs:
            found |= zip(blobs, await self._present.get(blobs), strict=True)
        return [found[key] for key in keys]
