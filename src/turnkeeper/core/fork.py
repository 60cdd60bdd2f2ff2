"""Fork: copies a history under new ids, with links between its messages kept inside the copy."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from turnkeeper.core.open_calls import is_open
from turnkeeper.core.transcribe import interrupted
from turnkeeper.model.event import MessageRecorded, PartsQuarantined
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.parts import CompactionPart, FilePart, Part, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted

_LINKED: Final = frozenset({CompactionPart, ToolPart})
"""Part types that may name messages or hold parts."""


class Copier:
    """Copies messages one by one into another session, oldest first: links point to earlier messages."""

    def __init__(
        self,
        session_id: str,
        message_id: Callable[[], str],
        part_id: Callable[[], str],
        quarantined: Collection[str] = frozenset(),
        now: int | None = None,
    ) -> None:
        """``quarantined`` are the quarantined parts of the source. With ``now``, what is under way ends in the copy."""
        self._now = now
        self._session_id, self._message_id, self._part_id = session_id, message_id, part_id
        self._quarantined = quarantined
        self._new: dict[str, str] = {}

    def copy(self, message: Message, parts: Iterable[Part]) -> MessageRecorded:
        """The event that records the copy of one message with its parts."""
        new = self._new[message.id] = self._message_id()
        changes: dict[str, object] = {"id": new, "session_id": self._session_id, "seq": 0}
        if isinstance(message, AssistantMessage):
            changes["parent_id"] = self._new.get(message.parent_id, message.parent_id)
            if message.time.completed is None and self._now is not None:
                changes["time"] = message.time.but(completed=self._now)
        return MessageRecorded(message=message.but(**changes), parts=self._parts(parts, new))

    def quarantine(self, event: PartsQuarantined) -> list[PartsQuarantined]:
        """The quarantine of the copied parts; empty if none of them was copied."""
        ids = tuple(self._new[part_id] for part_id in event.part_ids if part_id in self._new)
        return [event.but(message_id=self._new[event.message_id], part_ids=ids)] if ids else []

    def _parts(self, parts: Iterable[Part], message_id: str) -> tuple[Part, ...]:
        session_id, part_id, copied = self._session_id, self._part_id, []
        for part in parts:
            own = part_id()
            if part.id in self._quarantined:
                self._new[part.id] = own
            if type(part) in _LINKED:
                part = self._linked(part, message_id)
            copied.append(part.but(id=own, session_id=session_id, message_id=message_id, seq=0, nth=0))
        return tuple(copied)

    def _linked(self, part: Part, message_id: str) -> Part:
        if isinstance(part, CompactionPart) and part.tail_start_id is not None:
            return part.but(tail_start_id=self._new.get(part.tail_start_id))
        if isinstance(part, ToolPart) and is_open(part) and self._now is not None:
            # The call goes on in the source. The copy and its requests to the user would never be settled.
            return part.but(state=interrupted(part, self._now))
        if isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
            shown, withheld = part.state.attachments, part.state.withheld
            if shown or withheld:
                files = {"attachments": self._files(shown, message_id), "withheld": self._files(withheld, message_id)}
                return part.but(state=part.state.but(**files))
        return part

    def _files(self, files: tuple[FilePart, ...] | None, message_id: str) -> tuple[FilePart, ...] | None:
        if not files:
            return files
        place = {"session_id": self._session_id, "message_id": message_id, "seq": 0, "nth": 0}
        return tuple(file.but(id=self._part_id(), **place) for file in files)
