"""Whether one version of a message or part is a later version of another: it was unfinished and is finished."""

from turnkeeper.model.message import UNKNOWN_MODEL, AssistantMessage, Message, UserMessage
from turnkeeper.model.parts import Part, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, may_follow
from turnkeeper.store.fanout import is_growing


def is_newer_message(before: Message, after: Message) -> bool:
    """Whether ``after`` is the ended turn of ``before``, or the prompt of ``before`` with a summary or model."""
    match before, after:
        case AssistantMessage(), AssistantMessage():
            if before.time.completed is None:
                return after.time.completed is not None
            return _has_grown(before, after)
        case UserMessage(), UserMessage():
            is_empty = before.summary is None or not before.summary.diffs
            is_unanswered = UNKNOWN_MODEL in (before.model.provider_id, before.model.model_id)
            if is_unanswered and before != after and before.but(model=after.model) == after:
                return after.model.provider_id != UNKNOWN_MODEL
            return is_empty and before.but(summary=after.summary) == after
        case _:
            return False


def _has_grown(before: AssistantMessage, after: AssistantMessage) -> bool:
    """Whether a turn went on in a source that records no ends of turns: its end moved, or its usage increased."""
    ends = (before.time.completed or 0, after.time.completed or 0)
    pairs = [
        ends,
        (before.tokens.input, after.tokens.input),
        (before.tokens.output, after.tokens.output),
        (before.tokens.reasoning, after.tokens.reasoning),
        (before.tokens.cache.read, after.tokens.cache.read),
        (before.tokens.cache.write, after.tokens.cache.write),
        (before.cost, after.cost),
    ]
    grown = {name: getattr(after, name) for name in ("time", "tokens", "cost", "finish", "extra")}
    error = after.error if before.error is None else before.error
    is_same = before.but(**grown, error=error) == after and before.time.created == after.time.created
    # A call may come after a text, and never goes away again.
    has_its_calls = before.finish == after.finish or after.finish == "tool-calls"
    return is_same and before != after and has_its_calls and all(old <= new for old, new in pairs)


def is_newer_part(before: Part, after: Part) -> bool:
    """Whether ``after`` is the finished text of ``before``, or a later state of its call, or its pruned output."""
    match before, after:
        case (TextPart(), TextPart()) | (ReasoningPart(), ReasoningPart()):
            return is_growing(before) and not is_growing(after)
        case ToolPart(state=ToolCompleted() as old), ToolPart(state=ToolCompleted() as new):
            is_pruned = old.time.compacted is None and new.time.compacted is not None
            if old.full is None and new.full is not None:  # The source has the whole output in a file of its own.
                return before.but(state=old.but(full=new.full)) == after
            return is_pruned and before.but(state=old.but(time=new.time)) == after
        case ToolPart(state=ToolCompleted() | ToolError()), _:
            return False
        case ToolPart(), ToolPart():
            return before.call_id == after.call_id and may_follow(before.state, after.state)
        case _:
            return False
