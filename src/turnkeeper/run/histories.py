"""Histories in memory: loaded once from documents, then kept up with the log, so a turn reads only what is new."""

from collections import OrderedDict
from collections.abc import Sequence

from turnkeeper.core import blobs, entry
from turnkeeper.core.entry import Recorded
from turnkeeper.core.history import (
    History,
    HistoryItem,
    boundary_reached,
    compaction_of,
    extend,
    is_completed_summary,
    trimmed,
)
from turnkeeper.core.persistent_list import PersistentList
from turnkeeper.model.event import RevertCommitted, TurnEnded
from turnkeeper.model.message import AssistantMessage
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.store.store import Store

KEPT_MAX = 128
"""How many histories stay in memory."""


class Histories:
    """The model-visible history of each session that is being run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, History] = OrderedDict()

    async def get(self, session_id: str) -> History:
        """The history as of now."""
        history = self._kept.pop(session_id, None) or await self._load(session_id)
        news = await self._news(session_id, history.seq)
        if any(isinstance(one.event, RevertCommitted) for one in news):
            # It may have removed the Summary at which this history begins.
            history = await self._load(session_id)
            news = await self._news(session_id, history.seq)
        history = _grown(history, news)
        self._keep(session_id, history)
        return history

    async def follow(self, writer: FencedWriter) -> History:
        """The history for the session's owner: with what the writer holds, and without reading what the writer wrote.

        Held events are added to what is returned and not to what is kept: it is not certain yet where they will stand.
        """
        history = self._kept.get(writer.session_id)
        news = writer.events_after(history.seq) if history is not None else None
        if history is None or news is None:
            await writer.flush()  # The log is read, which may take its time.
            return await self.get(writer.session_id)
        history = _grown(history, news)
        self._keep(writer.session_id, history)
        return _grown(history, writer.held_after(history.seq))

    def forget(self, session_id: str) -> None:
        """Let go of a session that was removed, or whose history must be read again."""
        self._kept.pop(session_id, None)

    def _keep(self, session_id: str, history: History) -> None:
        self._kept[session_id] = history
        self._kept.move_to_end(session_id)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)

    async def _load(self, session_id: str) -> History:
        """Walk back to the newest completed compaction; what lies before it is never read."""
        # The place is read before the documents: events that came in between are applied again, which changes nothing.
        view = await self._store.journal.view(session_id)
        newest_first: list[HistoryItem] = []
        may_end = False
        async for message in self._store.queries.stream(session_id):
            one = HistoryItem(message=message.info, parts=message.parts)
            newest_first.append(one)
            is_summary = isinstance(one.message, AssistantMessage) and bool(one.message.summary)
            may_end = may_end or is_summary or compaction_of(one) is not None
            if may_end and boundary_reached(newest_first):
                break
        inbox = tuple([await self._store.queries.whole(one) for one in view.inbox])
        turn = await self._store.queries.whole(view.turn) if view.turn is not None else None
        return History(view=view.but(inbox=inbox, turn=turn), entries=PersistentList(reversed(newest_first)))

    async def _news(self, session_id: str, after: int) -> list[Recorded]:
        """The events after ``after``, with the text of their blobs."""
        news: list[Recorded] = []
        for seq, stored in enumerate(await self._store.engine.read(session_id, after=after), after + 1):
            recorded, _ = entry.read(stored, seq)
            if blobs.is_marked([stored]):
                recorded = recorded._replace(event=await self._store.queries.whole(recorded.event))
            news.append(recorded)
        return news


def _grown(history: History, news: Sequence[Recorded]) -> History:
    if not news:
        return history
    ended = (one.event.message for one in news if isinstance(one.event, TurnEnded))
    is_cut = any(map(is_completed_summary, ended))
    return trimmed(extend(history, *news)) if is_cut else extend(history, *news)
