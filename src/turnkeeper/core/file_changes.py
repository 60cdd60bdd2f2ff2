"""File changes of turns: the snapshots before and after the calls of a turn, and the files that differ.

A turn without calls changes nothing, so one snapshot is both. A call that names the files that it writes changes these
alone. The files that other programs change while a command runs are counted among those of the turn, unless another
session wrote them: nothing else tells them apart, so they are marked.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from turnkeeper.core.history import History, HistoryItem
from turnkeeper.model.event import Event, MessageRecorded, SummaryRecorded
from turnkeeper.model.message import AssistantMessage, MessageSummary, UserMessage
from turnkeeper.model.parts import Part, PatchPart
from turnkeeper.model.restore import FileRestore
from turnkeeper.model.session import FileDiff, Summary
from turnkeeper.model.value import Value
from turnkeeper.text.escapes import escaped

DURING: Final = "it changed while a command ran"
_NAMED_MAX: Final = 50
"""Names of files that are not recorded."""


class TurnFiles(Value):
    """The file changes of one turn in a project; paths are absolute."""

    before: str
    after: str
    files: tuple[str, ...] = ()
    during: tuple[str, ...] = ()
    """The files that changed while a command ran."""
    unrecorded: tuple[str, ...] = ()
    """Possible changes that are not recorded, with the reasons."""

    def patch(self, message: AssistantMessage, part_id: Callable[[], str]) -> list[Part]:
        """The part that records the changes; empty if nothing changed."""
        if not self.files and not self.unrecorded:
            return []
        return [
            PatchPart(
                id=part_id(),
                session_id=message.session_id,
                message_id=message.id,
                hash=self.before,
                files=self.files,
                after=self.after,
                during=self.during or None,
                unrecorded=self.unrecorded or None,
            )
        ]


def told(unrecorded: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Unrecorded changes as texts with the reasons. Of very many only some are named, and the others counted."""
    named = [f"{name} ({reason})" for name, reason in unrecorded[:_NAMED_MAX]]
    more = len(unrecorded) - len(named)
    return (*named, f"{more} more") if more else tuple(named)


def not_recorded(entries: Iterable[HistoryItem]) -> str | None:
    """A text about possible changes of these turns that are not recorded; None if there are none."""
    found = [part.unrecorded for entry in entries for part in entry.parts if isinstance(part, PatchPart)]
    names = dict.fromkeys(one for some in found if some is not None for one in some)
    return f"changes that are not recorded: {', '.join(map(escaped, names))}" if names else None


def noted(files: Sequence[FileRestore], entries: Iterable[HistoryItem], root: str) -> tuple[FileRestore, ...]:
    """The files with a note on those that others may have written, because a command of these turns ran."""
    found = [part.during for entry in entries for part in entry.parts if isinstance(part, PatchPart)]
    during = set(names_below(root, (one for some in found if some is not None for one in some)))
    return tuple(one.but(reason=DURING) if one.writes and one.file in during else one for one in files)


def files_since(history: History, user_id: str, newest: TurnFiles) -> TurnFiles:
    """The changes of all turns that answer a prompt. ``newest`` is the last turn, which is not in the history."""
    patches = [
        part
        for entry in history.entries
        if isinstance(entry.message, AssistantMessage) and entry.message.parent_id == user_id
        for part in entry.parts
        if isinstance(part, PatchPart) and part.after is not None
    ]
    names = {name: None for part in patches for name in part.files} | dict.fromkeys(newest.files)
    return newest.but(before=patches[0].hash if patches else newest.before, files=tuple(names))


def names_below(root: str, files: Iterable[str]) -> list[str]:
    """The names of files relative to the top of a project; those elsewhere are left out."""
    top = root.rstrip("/") + "/"
    return [file.removeprefix(top) for file in files if file.startswith(top)]


def summary_of(diffs: Sequence[FileDiff]) -> SummaryRecorded:
    """The record of what a session has changed."""
    additions, deletions = sum(one.additions for one in diffs), sum(one.deletions for one in diffs)
    summary = Summary(additions=additions, deletions=deletions, files=len(diffs))
    return SummaryRecorded(summary=summary, diffs=tuple(diffs))


def summarised(
    session_diffs: Sequence[FileDiff], user: UserMessage | None, prompt_diffs: Sequence[FileDiff]
) -> list[Event]:
    """The events that record the diffs of a session, and those of its newest prompt."""
    events: list[Event] = [summary_of(session_diffs)]
    if user is not None:
        known = user.summary or MessageSummary(diffs=())
        events.append(MessageRecorded(message=user.but(summary=known.but(diffs=tuple(prompt_diffs)))))
    return events
