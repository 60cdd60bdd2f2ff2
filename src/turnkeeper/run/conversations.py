"""Conversations kept between turns: a turn lowers what is new, however long the history is."""

from collections import OrderedDict

from turnkeeper.core.history import History, HistoryItem, compaction_of, since_epoch, visible
from turnkeeper.core.limits import CONVERSATIONS_MAX
from turnkeeper.core.lowering import Lowered
from turnkeeper.core.persistent_list import PersistentList
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.message import AssistantMessage


class _Kept:
    """The lowered messages of one session, and the history items they were made from."""

    def __init__(self, model: ModelInfo, epoch_seq: int, left_out: tuple[str, ...]) -> None:
        self.lowered, self.epoch_seq, self.left_out = Lowered(model, frozenset(left_out)), epoch_seq, left_out
        self.entries: PersistentList[HistoryItem] = PersistentList()

    def is_extended_by(self, history: History, model: ModelInfo, epoch_seq: int, left_out: tuple[str, ...]) -> bool:
        """Whether the history only grew, and by nothing that changes what the model is shown of the rest."""
        known = len(self.entries)
        return (
            self.epoch_seq == epoch_seq
            and self.left_out == left_out
            and self.lowered.model == model
            and PersistentList.of(history.entries).begins_with(self.entries)
            # From the last known one on: a compaction that is not done yet is shown only while it is the last.
            and not any(_reshapes(entry) for entry in history.entries[max(0, known - 1) :])
        )


class Conversations:
    """The newest conversation of each session. A cache: without it the history is lowered again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def outputs(self, session_id: str) -> int:
        """How many characters of tool outputs a session's newest request had; 0 if that is not known."""
        kept = self._kept.get(session_id)
        return kept.lowered.outputs if kept is not None else 0

    def of(
        self, session_id: str, history: History, model: ModelInfo, epoch_seq: int, left_out: tuple[str, ...] = ()
    ) -> Lowered:
        """The history as the model is shown it in this epoch, without the parts that are ``left_out``."""
        kept = self._kept.pop(session_id, None)
        if kept is not None and kept.is_extended_by(history, model, epoch_seq, left_out):
            new = history.entries[len(kept.entries) :]
        else:
            kept = _Kept(model, epoch_seq, left_out)
            new = visible(history.entries)
        kept.lowered.add(since_epoch(new, epoch_seq))
        kept.entries = PersistentList.of(history.entries)
        self._kept[session_id] = kept
        while len(self._kept) > CONVERSATIONS_MAX:
            self._kept.popitem(last=False)
        return kept.lowered


def _reshapes(entry: HistoryItem) -> bool:
    """Whether an entry changes what is shown of those before it: a compaction does."""
    message = entry.message
    return compaction_of(entry) is not None or (isinstance(message, AssistantMessage) and bool(message.summary))
