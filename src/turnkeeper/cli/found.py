"""What a search found, as a person reads it: the session, the message, and the words around the match."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from turnkeeper.cli.screen import Screen, one_line, shortened
from turnkeeper.core.handles import whole_output
from turnkeeper.model.parts import Part, ReasoningPart, SubtaskPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.store.damaged import DamagedDocument

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.store.queries import Found

BEFORE = 40
AROUND = 160


class Line(NamedTuple):
    """One place in a session's history."""

    message_id: str
    kind: str
    excerpt: str


class Place(NamedTuple):
    """A session and where in it the words were said."""

    session: Session
    lines: list[Line]
    words: tuple[str, ...]

    def text(self, screen: Screen) -> str:
        """The place on the screen."""
        head = f"{screen.paint(self.session.id, 'cyan')}  {screen.paint(one_line(self.session.title), 'bold')}"
        return "\n".join([head, *(self._line(screen, line) for line in self.lines)])

    def _line(self, screen: Screen, line: Line) -> str:
        room = (screen.width or AROUND) - len(line.message_id) - len(line.kind) - 6
        said = shortened(line.excerpt, max(room, 20))
        marked = _pattern(self.words).sub(lambda found: screen.paint(found.group(), "yellow"), said)
        return f"  {screen.paint(f'{line.message_id}  {line.kind}', 'dim')}  {marked}"


async def places(tk: "Turnkeeper", found: "Sequence[Found]", words: Sequence[str], damaged: list[str]) -> list[Place]:
    """What was found, by session, in the order it was found.

    What cannot be read is left out, and named in ``damaged``.
    """
    by_session: dict[str, Place] = {}
    for one in found:
        try:
            if one.session_id not in by_session:
                by_session[one.session_id] = Place(await tk.get(one.session_id), [], tuple(" ".join(words).split()))
            if one.message_id is not None and one.part_id is not None:
                part = await tk.store.queries.part(one.message_id, one.part_id)
                kind, text = _said(part)
                by_session[one.session_id].lines.append(Line(one.message_id, kind, _excerpt(text, words)))
        except DamagedDocument as error:
            damaged.append(str(error))
        except NotFound:
            continue  # It was removed meanwhile.
    return list(by_session.values())


def _said(part: Part) -> tuple[str, str]:
    match part:
        case TextPart(text=text):
            return "text", text
        case ReasoningPart(text=text):
            return "reasoning", text
        case ToolPart(tool=tool, state=ToolCompleted(title=title) as state):
            return tool, f"{title} {whole_output(state)}"
        case ToolPart(tool=tool, state=ToolError(error=error)):
            return tool, error
        case SubtaskPart(description=description, prompt=prompt):
            return "subtask", f"{description} {prompt}"
        case _:
            return "part", ""


def _excerpt(text: str, words: Sequence[str]) -> str:
    line = one_line(text)
    match = _pattern(words).search(line)
    start = max(0, match.start() - BEFORE) if match else 0
    return f"{'…' if start else ''}{line[start : start + AROUND]}"


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    wanted = [re.escape(word) for word in " ".join(words).split()]
    return re.compile(rf"\b(?:{'|'.join(wanted)})\w*", re.IGNORECASE)
