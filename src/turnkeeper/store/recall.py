"""Recall: finds any text of a session by its handle or by words, also text that requests leave out."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal

from turnkeeper.core.handles import HANDLE, RecallText, pieces
from turnkeeper.core.history import HistoryItem, compaction_of, is_completed_summary
from turnkeeper.core.limits import RECALL_HITS_MAX
from turnkeeper.core.recall import TOOL, NamedFile, Recalled, RecallHit, holding, snippet, words_of
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.store.cursor import check_limit
from turnkeeper.store.queries import Queries

LOOKED_AT_MAX = 100
"""Hits of the search index that are read: more than shown, because hidden texts are listed first."""


class SessionRecall:
    """Finds texts of one session."""

    def __init__(self, queries: Queries, session_id: str) -> None:
        self._queries, self._session_id = queries, session_id

    async def find(self, handle: str) -> Recalled:
        """The text of this handle, from the newest message that has it. Raises NotFound."""
        if HANDLE.fullmatch(handle) is None:
            raise Invalid(f"{handle!r} is no handle; one is the letter r and ten hexadecimal digits")
        async for entry in self._entries():
            for piece in pieces(entry):
                if piece.handle == handle:
                    return Recalled(message_id=entry.message.id, piece=piece, files=tuple(_files(entry, piece)))
        raise NotFound(f"there is no text with the handle {handle!r} in session {self._session_id!r}")

    async def search(self, query: str, limit: int = RECALL_HITS_MAX) -> list[RecallHit]:
        """The hits for these words: texts that requests leave out first, then the newest first.

        Texts outside the search index (attached files, the end of huge outputs, inputs of calls that earlier versions
        indexed) are searched only if the index has no hit.
        """
        check_limit(limit)
        words = words_of(query)
        found = await self._indexed(query, words) or await self._looked_through(words, limit)
        if not found:
            return []
        begins = await self._begins(min(entry.message.seq for entry, _ in found))
        hits = {piece.handle: _hit(entry, piece, words, begins) for entry, piece in found}
        return sorted(hits.values(), key=lambda hit: hit.hidden is None)[:limit]

    async def _indexed(self, query: str, words: Sequence[str]) -> list[tuple[HistoryItem, RecallText]]:
        places = await self._queries.search(query, session_id=self._session_id, limit=LOOKED_AT_MAX)
        found: list[tuple[HistoryItem, RecallText]] = []
        for place in places:
            if place.message_id is None:
                continue  # The title.
            try:
                entry = _entry(await self._queries.message(self._session_id, place.message_id))
            except NotFound:
                continue  # The message was removed meanwhile.
            own = [piece for piece in _searched(entry) if piece.part_id == place.part_id]
            found.extend((entry, piece) for piece in holding(own, words) or own[-1:])
        return found

    async def _looked_through(self, words: Sequence[str], limit: int) -> list[tuple[HistoryItem, RecallText]]:
        found: list[tuple[HistoryItem, RecallText]] = []
        async for entry in self._entries():
            found.extend((entry, piece) for piece in holding(_searched(entry), words))
            if len(found) >= limit:
                break
        return found

    async def _begins(self, oldest: int) -> int:
        """The seq of the oldest message that requests include; 0 if it is before ``oldest``."""
        summarised: set[str] = set()
        async for entry in self._entries():
            message = entry.message
            if isinstance(message, AssistantMessage) and is_completed_summary(message):
                summarised.add(message.parent_id)
            mark = compaction_of(entry)
            if mark is not None and message.id in summarised:
                return min(message.seq, await self._seq(mark.tail_start_id, message.seq))
            if message.seq <= oldest:
                break
        return 0

    async def _seq(self, message_id: str | None, otherwise: int) -> int:
        if message_id is None:
            return otherwise
        try:
            return (await self._queries.message(self._session_id, message_id)).info.seq
        except NotFound:
            return otherwise

    async def _entries(self) -> AsyncIterator[HistoryItem]:
        async for message in self._queries.stream(self._session_id):
            yield _entry(message)


def _entry(message: MessageWithParts) -> HistoryItem:
    return HistoryItem(message=message.info, parts=message.parts)


def _searched(entry: HistoryItem) -> list[RecallText]:
    """The texts of a message, without outputs of the recall tool and without the whole message."""
    copies = {part.id for part in entry.parts if isinstance(part, ToolPart) and part.tool == TOOL}
    return [piece for piece in pieces(entry) if piece.part_id not in copies and not piece.is_whole]


def _files(entry: HistoryItem, piece: RecallText) -> Iterator[NamedFile]:
    """The other files in the part of a text, such as the image of a tool output."""
    for other in pieces(entry):
        if other.part_id == piece.part_id and other.mime is not None and other != piece:
            yield NamedFile(handle=other.handle, label=other.label)


def _hit(entry: HistoryItem, piece: RecallText, words: Sequence[str], begins: int) -> RecallHit:
    part = next((one for one in entry.parts if one.id == piece.part_id), None)
    return RecallHit(
        handle=piece.handle,
        label=piece.label,
        message_id=entry.message.id,
        part_id=piece.part_id,
        snippet=snippet(piece.text, words),
        total=len(piece.text),
        hidden="compacted" if entry.message.seq < begins else _hidden(part),
    )


def _hidden(part: Part | None) -> Literal["pruned", "bounded"] | None:
    if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
        return None
    if part.state.time.compacted is not None:
        return "pruned"
    return "bounded" if part.state.full is not None else None
