"""Whether one version of a message or part is a later version of another: it was unfinished and is finished."""

from turnkeeper.model.message import AssistantMessage, Message, UserMessage
from turnkeeper.model.parts import Part, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, may_follow


def is_message_later(before: Message, after: Message) -> bool:
    """Whether ``after`` is the ended turn of ``before``, or the prompt of ``before`` with a summary of changes."""
    match before, after:
        case AssistantMessage(), AssistantMessage():
            return before.time.completed is None and after.time.completed is not None
        case UserMessage(), UserMessage():
            is_empty = before.summary is None or not before.summary.diffs
            return is_empty and before.but(summary=after.summary) == after
        case _:
            return False


def is_part_later(before: Part, after: Part) -> bool:
    """Whether ``after`` is the finished text of ``before``, or a later state of its call, or its pruned output."""
    match before, after:
        case (TextPart(), TextPart()) | (ReasoningPart(), ReasoningPart()):
            return _is_open(before) and not _is_open(after)
        case ToolPart(state=ToolCompleted() as old), ToolPart(state=ToolCompleted() as new):
            is_pruned = old.time.compacted is None and new.time.compacted is not None
            return is_pruned and before.but(state=old.but(time=new.time)) == after
        case ToolPart(state=ToolCompleted() | ToolError()), _:
            return False
        case ToolPart(), ToolPart():
            return before.call_id == after.call_id and may_follow(before.state, after.state)
        case _:
            return False


def _is_open(part: Part) -> bool:
    return isinstance(part, TextPart | ReasoningPart) and part.time is not None and part.time.end is None
