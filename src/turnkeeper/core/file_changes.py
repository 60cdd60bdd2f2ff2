"""File changes of turns: the snapshots before and after the calls of a turn, and the files that differ.

A turn without calls changes nothing, so one snapshot is both. The files that other programs change while calls run are
counted among those of the turn: nothing tells them apart.
"""

from collections.abc import Callable, Iterable, Sequence

from turnkeeper.core.history import History
from turnkeeper.model.event import Event, MessageRecorded, SummaryRecorded
from turnkeeper.model.message import AssistantMessage, MessageSummary, UserMessage
from turnkeeper.model.parts import Part, PatchPart
from turnkeeper.model.session import FileDiff, Summary
from turnkeeper.model.value import Value


class TurnFiles(Value):
    """What happened to the files of a project in one turn; absolute paths."""

    before: str
    after: str
    files: tuple[str, ...] = ()

    def patch(self, message: AssistantMessage, part_id: Callable[[], str]) -> list[Part]:
        """The part that records it; none if nothing changed."""
        if not self.files:
            return []
        return [
            PatchPart(
                id=part_id(),
                session_id=message.session_id,
                message_id=message.id,
                hash=self.before,
                files=self.files,
                after=self.after,
            )
        ]


def files_since(history: History, user_id: str, newest: TurnFiles) -> TurnFiles:
    """What the turns that answer a prompt did together. ``newest`` is the last one, which the history has not."""
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


def summarised(
    session_diffs: Sequence[FileDiff], user: UserMessage | None, prompt_diffs: Sequence[FileDiff]
) -> list[Event]:
    """The events that record the diffs of a session, and those of its newest prompt."""
    summary = Summary(
        additions=sum(one.additions for one in session_diffs),
        deletions=sum(one.deletions for one in session_diffs),
        files=len(session_diffs),
    )
    events: list[Event] = [SummaryRecorded(summary=summary, diffs=tuple(session_diffs))]
    if user is not None:
        known = user.summary or MessageSummary(diffs=())
        events.append(MessageRecorded(message=user.but(summary=known.but(diffs=tuple(prompt_diffs)))))
    return events
