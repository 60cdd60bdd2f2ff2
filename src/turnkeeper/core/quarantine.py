"""Quarantine: a part that a provider rejects is left out of requests, so that no message makes a session unusable.

A provider that points at a place in its request (``messages.3.content.1: ...``) points at a part of ours. One that
rejects a file without a place (``Could not process image``) means the newest, because the older ones were accepted.
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
"""Messages to look ahead: the messages after a system message may decide whether it is merged."""
LEFT_OUT: Final = "[A part of this message is left out: the provider did not accept it]"
LEFT_OUT_TEXT: Final = (
    "[A text of {:,} characters is left out: the provider did not accept it, or it is too large for the context window."
    " recall with the handle {} gives it exactly]"
)

# messages.3.content.1.image (Anthropic), messages[3].content[1] (OpenAI), input[3].content[1] (Responses),
# contents[3].parts[1] (Gemini).
_PLACE: Final = re.compile(r"\b(?:messages|contents|input)(?:\.|\[)(\d{1,9})(?!\d)\]?[\w.\[\]]*", re.IGNORECASE)
_MEDIA_WORDS: Final = re.compile(
    r"(?:\b|_)(?:image|pdf|document|media|file|audio|video|base64|mime)|inline_?data", re.IGNORECASE
)


_UNPLACED_MEDIA: Final = re.compile(r"\b(?:image|pdf|mime type)s?\b", re.IGNORECASE)
_REJECTED: Final = frozenset({400, 413, 415, 422})


class Pointer(Value):
    """The place in a request that a provider rejects: a message index, and the provider's error message."""

    message: int
    is_media: bool
    words: str


def pointer(failure: Failure) -> Pointer | None:
    """The place in the request that a rejection names; None if it names none."""
    if not isinstance(failure, ApiFailure) or failure.data.status_code not in _REJECTED:
        return None
    words = failure.data.message
    found = _PLACE.search(words) or _PLACE.search(failure.data.response_body or "")
    if found is None:
        return None
    # Only the place itself is taken from a body, which may quote any text.
    return Pointer(message=int(found[1]), is_media=bool(_MEDIA_WORDS.search(f"{words} {found[0]}")), words=words)


def rejected_media(failure: Failure) -> str | None:
    """The words of a rejection of a file without its place, such as "Could not process image"; else None."""
    if not isinstance(failure, ApiFailure) or failure.data.status_code not in _REJECTED or pointer(failure) is not None:
        return None
    return failure.data.message if _UNPLACED_MEDIA.search(failure.data.message) else None


def media_of(entry: HistoryItem, left_out: Collection[str]) -> tuple[str, ...]:
    """The parts of a message that send files, but for those that are left out already."""
    is_answer = isinstance(entry.message, AssistantMessage)
    return tuple(part.id for part in entry.parts if part.id not in left_out and _sends_file(part, is_answer))


def _sends_file(part: Part, is_answer: bool) -> bool:
    match part:
        case FilePart(mime=mime):
            return not is_answer and mime not in ("text/plain", "application/x-directory")
        case ToolPart(state=ToolCompleted(time=time, attachments=attachments)):
            return bool(attachments) and time.compacted is None
        case _:
            return False


def sources(index: int, count: int, wire_length: Callable[[int], int]) -> range:
    """Which of our ``count`` messages became the provider's message ``index``; several if they were merged.

    ``wire_length(n)`` is the number of wire messages of our first n messages: protocols merge some and split others.
    """
    if wire_length(0) > index or wire_length(count) <= index:
        return range(0)

    def length(n: int) -> int:
        return min(wire_length(m) for m in range(n, min(count, n + AHEAD) + 1))

    first = bisect_left(range(1, count + 1), True, key=lambda n: length(n) > index)
    behind = bisect_left(range(1, count + 1), True, key=lambda n: length(n) > index + 1)
    return range(first, max(first + 1, behind))


def suspects(entry: HistoryItem, pointed: Pointer, left_out: Collection[str]) -> tuple[str, ...]:
    """The parts of a message to leave out: its media or reasoning if the provider names those, else all parts.

    Empty if all of them are left out already.
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
    """A message without its quarantined parts. Calls stay, emptied: a call without its result is rejected too."""
    if not left_out or not any(part.id in left_out for part in entry.parts):
        return entry
    is_answer = isinstance(entry.message, AssistantMessage)
    masked = [part if part.id not in left_out else _masked(part, is_answer) for part in entry.parts]
    return entry.but(parts=tuple(part for part in masked if part is not None))


def _masked(part: Part, is_answer: bool) -> Part | None:
    match part:
        case ToolPart(provider=ToolProvider(executed=True)):
            # Call and result of a hosted tool are one part, so both are replaced.
            return _stand_in(part, LEFT_OUT)
        case ToolPart(state=ToolCompleted() as state):
            # Only the name and the id stay.
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
    """The parts of a message that requests include."""
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
    """The message about a quarantine for users."""
    position = next((n for n, entry in enumerate(reversed(entries)) if entry.message.id == message_id), 0)
    where = "your newest message" if position == 0 else f"a message {position} before the newest"
    parts = "one part" if count == 1 else f"{count} parts"
    return f"The provider rejected {parts} of {where}, which is left out from now on and kept here: {words}"
