"""Search texts: the texts of a session that are in the search index."""

from collections.abc import Iterator, Mapping

from turnkeeper.core.handles import whole_output
from turnkeeper.core.titles import is_default
from turnkeeper.model.parts import Part, ReasoningPart, SubtaskPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.session import Session
from turnkeeper.model.value import Json


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
        case ToolPart(state=ToolCompleted(title=title, input=given) as state):
            # The whole output, also if the model was shown a part of it.
            return "\n".join((title, *_values(given), whole_output(state)))
        case ToolPart(state=ToolError(error=error, input=given)):
            return "\n".join((*_values(given), error))
        case SubtaskPart(prompt=prompt, description=description):
            return f"{description}\n{prompt}"
        case _:
            return None


def _values(given: Json) -> Iterator[str]:
    """The texts and numbers in the input of a call: people search for these, such as a command or a file name."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        for value in given.values():
            yield from _values(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _values(value)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        yield str(given)
