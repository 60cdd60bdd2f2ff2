"""Search texts: what of a session the search index has."""

from turnkeeper.core.handles import whole_output
from turnkeeper.core.titles import is_default
from turnkeeper.model.parts import Part, ReasoningPart, SubtaskPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.session import Session


def named_title(session: Session) -> str | None:
    """The title for the search index; None for a default title."""
    return None if is_default(session.title) else session.title


def searchable(part: Part) -> str | None:
    """The text of a part for the search index; None while the text is streaming."""
    if isinstance(part, TextPart):  # The most frequent type, and a pattern is three times slower.
        return part.text if part.time is None or part.time.end is not None else None
    match part:
        case ReasoningPart(text=text, time=time):
            return text if time.end is not None else None
        case ToolPart(state=ToolCompleted(title=title) as state):
            return f"{title}\n{whole_output(state)}"  # The whole output, also if the model was shown a part of it.
        case ToolPart(state=ToolError(error=error)):
            return error
        case SubtaskPart(prompt=prompt, description=description):
            return f"{description}\n{prompt}"
        case _:
            return None
