"""Quarantine: a part that a provider rejects is left out of requests, so that no message can brick a session.

A provider that points at a place in its request (``messages.3.content.1: ...``) points at a part of ours.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Final

from turnkeeper.core.handles import handle
from turnkeeper.core.history import STANDS_IN, HistoryItem
from turnkeeper.model.failure import ApiFailure, Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolProvider
from turnkeeper.model.value import Value

AHEAD: Final = 4
"""What follows a system message may decide whether it stands alone or is merged: so far one looks ahead."""
LEFT_OUT: Final = "[A part of this message is left out: the provider did not accept it]"
LEFT_OUT_TEXT: Final = (
    "[A text of {:,} characters is left out: the provider did not accept it, or it is too large for the context window."
    " recall with the handle {} gives it exactly]"
)

# messages.3.content.1.image (Anthropic), messages[3].content[1] (OpenAI), input[3].content[1] (Responses),
# contents[3].parts[1] (Gemini).
_PLACE: Final = re.compile(r"\b(?:messages|contents|input)(?:\.|\[)(\d+)\]?[\w.\[\]]*", re.IGNORECASE)
_MEDIA_WORDS: Final = re.compile(
    r"(?:\b|_)(?:image|pdf|document|media|file|audio|video|base64|mime)|inline_?data", re.IGNORECASE
)


class Pointer(Value):
    """Where a provider points: a message of its request, and what it complains of."""

    message: int
    is_media: bool
    words: str


def pointer(failure: Failure) -> Pointer | None:
    """The one place in the request that a rejection names; None if it names none, or is about something else."""
    if not isinstance(failure, ApiFailure) or failure.data.status_code not in (400, 413, 415, 422):
        return None
    words = failure.data.message
    found = _PLACE.search(words) or _PLACE.search(failure.data.response_body or "")
    if found is None:
        return None
    # Of a body only the place itself is read: it may quote anything.
    return Pointer(message=int(found[1]), is_media=bool(_MEDIA_WORDS.search(f"{words} {found[0]}")), words=words)


def sources(index: int, count: int, wire_length: Callable[[int], int]) -> range:
    """Which of our ``count`` messages became the provider's message ``index``; several, where they were merged.

    ``wire_length(n)`` tells how many messages the first n of ours become: protocols merge some and split others.
    """
    if wire_length(0) > index or wire_length(count) <= index:
        return range(0)

    def length(n: int) -> int:
        return min(wire_length(m) for m in range(n, min(count, n + AHEAD) + 1))

    first = bisect_left(range(1, count + 1), True, key=lambda n: length(n) > index)
    behind = bisect_left(range(1, count + 1), True, key=lambda n: length(n) > index + 1)
    return range(first, max(first + 1, behind))


def suspects(entry: HistoryItem, pointed: Pointer, left_out: Collection[str]) -> tuple[str, ...]:
    """The parts of a message to leave out: its media or its reasoning if the provider names those, else all that it
    shows.

    Nothing, if all of them are left out already: the fault lies elsewhere.
    """
    shown = [part for part in shown_parts(entry) if part.id not in left_out]
    is_reasoning = "reasoning" in pointed.words
    named = [
        part
        for part in shown
        if (pointed.is_media and _has_media(part)) or (is_reasoning and isinstance(part, ReasoningPart))
    ]
    return tuple(part.id for part in named or shown)


def without(entry: HistoryItem, left_out: Collection[str]) -> HistoryItem:
    """A message as a request may have it. Calls keep their place, for a call without its result is rejected too."""
    if not left_out or not any(part.id in left_out for part in entry.parts):
        return entry
    is_answer = isinstance(entry.message, AssistantMessage)
    masked = [part if part.id not in left_out else _masked(part, is_answer) for part in entry.parts]
    return entry.but(parts=tuple(part for part in masked if part is not None))


def _masked(part: Part, is_answer: bool) -> Part | None:
    match part:
        case ToolPart(provider=ToolProvider(executed=True)):
            # The provider's own records of a call and its result go together, so neither is missed.
            return _stand_in(part, LEFT_OUT)
        case ToolPart(state=ToolCompleted() as state):
            # The name and the id stay; nothing of what was rejected does.
            empty = state.but(input={}, output=LEFT_OUT, attachments=None, full=None, structured=None, content=None)
            return part.but(state=empty, metadata=None)
        case ToolPart(state=ToolError() as state):
            return part.but(state=state.but(input={}, error=LEFT_OUT, metadata=None), metadata=None)
        case ToolPart(state=state):
            return part.but(state=state.but(input={}), metadata=None)
        case TextPart(text=text) if not is_answer:
            return _stand_in(part, LEFT_OUT_TEXT.format(len(text), handle(text)))
        case FilePart() if not is_answer:
            return _stand_in(part, LEFT_OUT)
        case TextPart():
            return part.but(text=LEFT_OUT, metadata=None)
        case _:
            return None


def _stand_in(part: Part, words: str) -> TextPart:
    mark = {STANDS_IN: True}
    return TextPart(id=part.id, session_id=part.session_id, message_id=part.message_id, text=words, metadata=mark)


def shown_parts(entry: HistoryItem) -> list[Part]:
    """The parts of a message that a request has."""
    return [part for part in entry.parts if _is_shown(part)]


def _is_shown(part: Part) -> bool:
    match part:
        case TextPart(text=text, ignored=ignored):
            return bool(text.strip()) and not ignored
        case ReasoningPart() | FilePart() | ToolPart():
            return True
        case _:
            return False


def _has_media(part: Part) -> bool:
    match part:
        case FilePart():
            return True
        case ToolPart(state=ToolCompleted(attachments=attachments)):
            return bool(attachments)
        case _:
            return False


def telling(entries: Sequence[HistoryItem], message_id: str, count: int, words: str) -> str:
    """What a person is told of a quarantine."""
    position = next((n for n, entry in enumerate(reversed(entries)) if entry.message.id == message_id), 0)
    where = "your newest message" if position == 0 else f"a message {position} before the newest"
    parts = "one part" if count == 1 else f"{count} parts"
    return f"The provider rejected {parts} of {where}, which is left out from now on and kept here: {words}"
