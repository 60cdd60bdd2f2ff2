"""Subtasks: parts of a user message that the loop hands to Child Sessions before the model is asked.

Each is run once, in its order, as the only call of an assistant message of its own. The id of that call is the id of
the part, so the history shows which of them were run.
"""

from typing import Final

from turnkeeper.core.child_rules import TASK
from turnkeeper.core.history import History, HistoryItem
from turnkeeper.model.message import AssistantMessage, MessageTime, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import SubtaskPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import RunningTime, ToolRunning
from turnkeeper.model.value import Value

PART: Final = "prt_"
"""How the ids of parts begin. Calls of models have other ids."""

GO_ON: Final = "Summarise the output of the task above, and go on with your work."


class PendingSubtask(Value):
    """A subtask that was not run yet, and the user message that it belongs to."""

    user: HistoryItem
    part: SubtaskPart


def pending_subtask(history: History) -> PendingSubtask | None:
    """The first subtask since the model answered that was not run."""
    run: set[str] = set()
    found: PendingSubtask | None = None
    for entry in reversed(history.entries):
        if isinstance(entry.message, AssistantMessage):
            if (call := _call_of(entry)) is None:
                break
            run.add(call.call_id)
        elif isinstance(entry.message, UserMessage):
            for part in reversed(entry.parts):
                if isinstance(part, SubtaskPart) and part.id not in run:
                    found = PendingSubtask(user=entry, part=part)
    return found


def subtask_call(part: SubtaskPart, message: AssistantMessage, part_id: str, now: int) -> ToolPart:
    """The running call of a subtask."""
    given: dict[str, object] = {"prompt": part.prompt, "description": part.description, "subagent_type": part.agent}
    if part.command is not None:
        given["command"] = part.command
    return ToolPart(
        id=part_id,
        session_id=message.session_id,
        message_id=message.id,
        call_id=part.id,
        tool=TASK,
        state=ToolRunning(input=given, title=part.description, time=RunningTime(start=now)),
    )


def follow_up(
    history: History, turn: HistoryItem, *, message_id: str, part_id: str, now: int
) -> MessageWithParts | None:
    """The prompt after the subtask of a command, which has the model go on; None after any other turn."""
    call = _call_of(turn)
    if call is None or (isinstance(turn.message, AssistantMessage) and turn.message.error is not None):
        return None
    for entry in reversed(history.entries):
        for part in entry.parts:
            if isinstance(part, SubtaskPart) and part.id == call.call_id:
                user = entry.message
                if part.command is None or not isinstance(user, UserMessage):
                    return None
                asked = user.but(id=message_id, seq=0, time=MessageTime(created=now), summary=None, extra=None)
                said = TextPart(
                    id=part_id, session_id=user.session_id, message_id=message_id, text=GO_ON, synthetic=True
                )
                return MessageWithParts(info=asked, parts=(said,))
    return None


def _call_of(turn: HistoryItem) -> ToolPart | None:
    """The call that runs a subtask, if this turn has one."""
    calls = [part for part in turn.parts if isinstance(part, ToolPart)]
    is_one = len(calls) == 1 and calls[0].tool == TASK and calls[0].call_id.startswith(PART)
    return calls[0] if is_one else None
