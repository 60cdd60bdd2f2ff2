"""Open calls: the calls of a turn that are not settled."""

from turnkeeper.core.view import OpenTurn
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolPending, ToolRunning


def is_open(part: Part) -> bool:
    """Whether a part is a call that is not settled."""
    return isinstance(part, ToolPart) and isinstance(part.state, ToolPending | ToolRunning)


def has_open_call(turn: OpenTurn | None, message_id: str, call_id: str) -> bool:
    """Whether this call is one of the open turn and not settled."""
    if turn is None or turn.message.id != message_id:
        return False
    return any(isinstance(part, ToolPart) and part.call_id == call_id and is_open(part) for part in turn.parts.values())
