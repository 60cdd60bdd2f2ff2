"""History: the messages of a session that a model is shown, as a fold of the log.

It begins at the newest completed compaction (or its tail) and ends with the newest message. Older messages are not
loaded, so its cost depends on the context window and not on the length of the session.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from turnkeeper.core import changes as c
from turnkeeper.core.changes import Change
from turnkeeper.core.entry import Recorded
from turnkeeper.core.persistent_list import PersistentList
from turnkeeper.core.projector import apply
from turnkeeper.core.view import SessionView
from turnkeeper.model.message import AssistantMessage, Message, SystemMessage, UserMessage
from turnkeeper.model.parts import CompactionPart, FilePart, Part, ReasoningPart, StepStartPart, TextPart
from turnkeeper.model.value import Value

STANDS_IN = "left_out"
"""Metadata key of a text that replaces a quarantined part."""


class HistoryItem(Value):
    """A message with its parts in order."""

    message: Message
    parts: tuple[Part, ...]


Entry = HistoryItem
"""The name that scripts outside this project import. Inside it, an entry is an event as bytes (``core/entry.py``)."""


class History(Value):
    """Entries in order, and the session after event ``view.seq``, with which the fold goes on."""

    view: SessionView
    entries: Sequence[HistoryItem] = ()

    @property
    def seq(self) -> int:
        """The seq of the newest event in this history."""
        return self.view.seq


def extend(history: History, *news: Recorded) -> History:
    """The history after these events. An event that is in it already is skipped."""
    view, entries = history.view, PersistentList.of(history.entries)
    for recorded in news:
        if recorded.seq <= view.seq:
            continue
        # Events of other processes may stand in between. The writer loads the history anew then (run/histories.py).
        view, changes = apply(view if recorded.seq == view.seq + 1 else view.but(seq=recorded.seq - 1), recorded)
        for change in changes:
            entries = _changed(entries, change)
    return History(view=view, entries=entries)


def _changed(entries: PersistentList[HistoryItem], change: Change) -> PersistentList[HistoryItem]:
    match change:
        case c.MessagePut(message=message, parts=parts):
            return _put(entries, HistoryItem(message=message, parts=tuple(parts)))
        case c.ContextPut(message=message) | c.TurnOpened(message=message):
            return _put(entries, HistoryItem(message=message, parts=()))
        case c.TurnClosed(message=message):
            return _replace(entries, message.id, lambda entry: entry.but(message=message))
        case c.MessageGone(message_id=message_id):
            return _without(entries, message_id)
        case c.PartPut(part=part):
            return _replace(entries, part.message_id, lambda entry: _with_part(entry, part))
        case c.PartGrown(message_id=message_id, part_id=part_id, offset=offset, text=text):
            return _replace(entries, message_id, lambda entry: _extended(entry, part_id, offset, text))
        case c.PartGone(message_id=message_id, part_id=part_id):
            return _replace(
                entries, message_id, lambda entry: entry.but(parts=tuple(p for p in entry.parts if p.id != part_id))
            )
        case (
            c.SessionPut()
            | c.DirectoryPut()
            | c.AgentPut()
            | c.ModelPut()
            | c.RevertPut()
            | c.RevertGone()
            | c.DiffsPut()
            | c.TodosPut()
            | c.StatusPut()
            | c.Spent()
            | c.PromptPut()
            | c.PromptGone()
            | c.PartsRejected()
            | c.AskPut()
            | c.AskAnswered()
            | c.AskGone()
        ):
            return entries  # Not part of the messages.
        case _:
            assert_never(change)


def visible(entries: Iterable[HistoryItem]) -> tuple[HistoryItem, ...]:
    """The messages that a model is shown: from the newest completed compaction on, with the tail after the Summary."""
    kept = list(entries)
    done = summarised(kept)
    for index in range(len(kept) - 1, -1, -1):
        message = kept[index].message
        mark = compaction_of(kept[index])
        if mark is None or message.id not in done:
            continue
        summary = next((i for i in range(index, len(kept)) if _answers(kept[i].message, message.id)), None)
        if summary is None:  # A Summary before its marker, in imported data, is no compaction.
            continue
        tail = _index(kept, mark.tail_start_id)
        between = _without_compactions(kept[tail:index]) if tail is not None and tail < index else []
        between = _without_asked_again(between, kept[summary + 1 :])
        rest = [*kept[index + 1 : summary], *kept[summary + 1 :]]
        return (kept[index], kept[summary], *between, *_without_failed(rest, done))
    return tuple(_without_failed(kept, done))


def trimmed(history: History) -> History:
    """The history without the messages before the newest completed compaction and its tail."""
    entries = history.entries
    done = summarised(entries)
    for index in range(len(entries) - 1, -1, -1):
        mark = compaction_of(entries[index])
        if mark is not None and entries[index].message.id in done:
            tail = _index(entries, mark.tail_start_id)
            return history.but(entries=entries[min(index, tail if tail is not None else index) :])
    return history


def since_epoch(entries: Iterable[HistoryItem], epoch_seq: int) -> tuple[HistoryItem, ...]:
    """The entries without system messages of earlier epochs: the baseline has their content."""
    return tuple(one for one in entries if not isinstance(one.message, SystemMessage) or one.message.seq > epoch_seq)


def boundary_reached(newest_first: list[HistoryItem]) -> bool:
    """Whether a backward walk has passed all messages that a model is shown."""
    done = summarised(newest_first)
    for entry in newest_first:
        mark = compaction_of(entry)
        if mark is not None and entry.message.id in done:
            return mark.tail_start_id is None or any(one.message.id == mark.tail_start_id for one in newest_first)
    return False


def summarised(entries: Iterable[HistoryItem]) -> set[str]:
    """The ids of the compaction markers that have a completed Summary."""
    messages = (entry.message for entry in entries)
    return {one.parent_id for one in messages if isinstance(one, AssistantMessage) and is_completed_summary(one)}


def is_completed_summary(message: AssistantMessage) -> bool:
    """Whether a message is a Summary whose turn succeeded."""
    return bool(message.summary) and message.finish is not None and message.error is None


def last_root(history: History) -> str | None:
    """The worktree of the last turn."""
    messages = (entry.message for entry in reversed(history.entries))
    return next((one.path.root for one in messages if isinstance(one, AssistantMessage)), None)


def compaction_of(entry: HistoryItem) -> CompactionPart | None:
    """The compaction mark of a user message; None if there is none."""
    if not isinstance(entry.message, UserMessage):
        return None
    return next((part for part in entry.parts if isinstance(part, CompactionPart)), None)


def _without_compactions(entries: list[HistoryItem]) -> list[HistoryItem]:
    """A tail without older compactions: the newest Summary includes theirs."""
    return [
        entry
        for entry in entries
        if not (compaction_of(entry) is not None and _only_mark(entry))
        and not (isinstance(entry.message, AssistantMessage) and entry.message.summary)
    ]


def _without_asked_again(tail: list[HistoryItem], after: list[HistoryItem]) -> list[HistoryItem]:
    """A tail without the prompts at its end, if ``after`` begins with copies of them."""
    start = len(tail)
    while start and (not isinstance(tail[start - 1].message, AssistantMessage) or _is_nothing(tail[start - 1])):
        start -= 1
    waiting = [entry for entry in tail[start:] if isinstance(entry.message, UserMessage)]
    copies = after[: len(waiting)]
    return tail[:start] if waiting and len(copies) == len(waiting) and all(map(_is_again, waiting, copies)) else tail


def _is_nothing(turn: HistoryItem) -> bool:
    return all(isinstance(part, StepStartPart) for part in turn.parts)


def _is_again(prompt: HistoryItem, copy: HistoryItem) -> bool:
    """Whether a message is the copy of a prompt: equal parts under new ids; text may replace media."""
    ours, theirs = prompt.parts, copy.parts
    return isinstance(copy.message, UserMessage) and len(ours) == len(theirs) and all(map(_is_same, ours, theirs))


def _is_same(part: Part, copy: Part) -> bool:
    if isinstance(copy, TextPart) and (isinstance(part, FilePart) or (copy.metadata or {}).get(STANDS_IN)):
        return True
    return part.but(id="", message_id="", seq=0, nth=0) == copy.but(id="", message_id="", seq=0, nth=0)


def _without_failed(entries: list[HistoryItem], done: set[str]) -> list[HistoryItem]:
    """The entries without compactions that have no completed Summary."""
    failed = {one.message.id for one in entries if compaction_of(one) is not None and one.message.id not in done}
    if not failed:
        return entries

    def kept(entry: HistoryItem) -> bool:
        message = entry.message
        if message.id in failed:
            return not _only_mark(entry) or message is entries[-1].message
        return not (isinstance(message, AssistantMessage) and message.summary and message.parent_id in failed)

    return [entry for entry in entries if kept(entry)]


def _only_mark(entry: HistoryItem) -> bool:
    return all(isinstance(part, CompactionPart) for part in entry.parts)


def _answers(message: Message, parent_id: str) -> bool:
    return isinstance(message, AssistantMessage) and message.parent_id == parent_id and is_completed_summary(message)


def _index(entries: Sequence[HistoryItem], message_id: str | None) -> int | None:
    """The index of a message, searched from the end: most changed messages are new."""
    for nth, entry in enumerate(reversed(entries), 1):
        if entry.message.id == message_id:
            return len(entries) - nth
    return None


def _put(entries: PersistentList[HistoryItem], entry: HistoryItem) -> PersistentList[HistoryItem]:
    """Insert an entry by its seq, or replace the message of the entry with the same id."""
    place = len(entries)
    for before in reversed(entries):
        if before.message.id == entry.message.id:
            known = {part.id for part in before.parts}
            parts = (*before.parts, *(part for part in entry.parts if part.id not in known))
            return entries.replaced(place - 1, entry.but(parts=parts))
        if before.message.seq < entry.message.seq:
            break
        place -= 1
    return entries.inserted(place, entry)


def _replace(
    entries: PersistentList[HistoryItem], message_id: str, change: Callable[[HistoryItem], HistoryItem]
) -> PersistentList[HistoryItem]:
    place = _index(entries, message_id)
    return entries if place is None else entries.replaced(place, change(entries[place]))


def _without(entries: PersistentList[HistoryItem], message_id: str) -> PersistentList[HistoryItem]:
    place = _index(entries, message_id)
    return entries if place is None else entries.first(place).plus(entries[place + 1 :])


def _with_part(entry: HistoryItem, part: Part) -> HistoryItem:
    for index, old in enumerate(entry.parts):
        if old.id == part.id:
            return entry.but(parts=(*entry.parts[:index], part, *entry.parts[index + 1 :]))
    return entry.but(parts=(*entry.parts, part))


def _extended(entry: HistoryItem, part_id: str, offset: int, text: str) -> HistoryItem:
    for part in entry.parts:
        if part.id == part_id and isinstance(part, TextPart | ReasoningPart) and len(part.text) == offset:
            return _with_part(entry, part.but(text=part.text + text))
    return entry
