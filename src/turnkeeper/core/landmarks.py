"""Landmarks: what the boundary asks of a history before every turn. Kept, so that only what is new is looked at."""

from collections import OrderedDict

from turnkeeper.core.history import Entry, History, is_completed_summary
from turnkeeper.core.limits import CONVERSATIONS_MAX
from turnkeeper.core.strand import Strand
from turnkeeper.model.message import AssistantMessage, SystemMessage


class Landmarks:
    """What was seen of one history."""

    def __init__(self) -> None:
        self._entries: Strand[Entry] = Strand()
        self.compacted_at = 0
        """The place in the log of the newest completed Summary; 0 if there is none."""
        self.news: list[SystemMessage] = []
        """The Mid-Conversation System Messages, in order."""

    def is_extended_by(self, history: History) -> bool:
        """Whether the history only grew."""
        return Strand.of(history.entries).begins_with(self._entries)

    def add(self, history: History) -> None:
        """Look at what is new."""
        for entry in history.entries[len(self._entries) :]:
            match entry.message:
                case SystemMessage() as message:
                    self.news.append(message)
                case AssistantMessage() as message if is_completed_summary(message):
                    self.compacted_at = max(self.compacted_at, message.seq)
                case _:
                    pass
        self._entries = Strand.of(history.entries)


class Surveys:
    """The landmarks of each session. Only a memory: without it the same is found again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Landmarks] = OrderedDict()

    def of(self, session_id: str, history: History) -> Landmarks:
        """The landmarks of a session's history as it is now."""
        known = self._kept.pop(session_id, None)
        found = known if known is not None and known.is_extended_by(history) else Landmarks()
        found.add(history)
        self._kept[session_id] = found
        while len(self._kept) > CONVERSATIONS_MAX:
            self._kept.popitem(last=False)
        return found
