"""Values as official clients know them: without what only we keep, such as places in the log."""

from typing import Final, assert_never

from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning, ToolState
from turnkeeper.model.session import Session
from turnkeeper.model.todo import Todo
from turnkeeper.store.queries import MessageWithParts

OURS_IN_SESSION: Final = ("origin", "extra")
OURS_IN_PART: Final = ("seq", "nth", "extra")
OURS_IN_CALL: Final = (*OURS_IN_PART, "provider")
"""The second generation has a place for more of a call."""
OURS_IN_OUTPUT: Final = ("raw", "structured", "content", "output_paths", "full", "withheld")


def session(value: Session) -> Session:
    """A session without where it was copied from and what was unknown in an import."""
    return value.but(**dict.fromkeys(OURS_IN_SESSION)) if value.origin or value.extra else value


def todo(value: Todo) -> Todo:
    """A line of a task list without its id, which only imports have."""
    return value.but(id=None)


def message(value: Message) -> Message:
    """A message without its place in the log."""
    return value.but(seq=0, extra=None)


def part(value: Part) -> Part:
    """A part without its place in the log; of a call, without what only the second generation has a place for."""
    if isinstance(value, ToolPart):
        return value.but(seq=0, nth=0, extra=None, provider=None, state=_state(value.state))
    return value.but(seq=0, nth=0, extra=None)


def _state(state: ToolState) -> ToolState:
    match state:
        case ToolPending():
            return state
        case ToolCompleted():
            files = tuple(part(file) for file in state.attachments) if state.attachments else None
            return state.but(attachments=files, **dict.fromkeys(OURS_IN_OUTPUT))
        case ToolRunning() | ToolError():
            return state.but(raw=None) if state.raw is not None else state
        case _:
            assert_never(state)


def with_parts(value: MessageWithParts) -> MessageWithParts:
    """The same of both."""
    return MessageWithParts(info=message(value.info), parts=tuple(map(part, value.parts)))
