"""Recall handles: short names by which a model can read any text of a session again, exactly.

A handle is derived from the hash of its text. It needs no table, and is equal in a fork, an export and an import.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, assert_never

from turnkeeper.core.history import HistoryItem
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, SubtaskPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning
from turnkeeper.model.value import Value, encode
from turnkeeper.text.attachment_url import is_textual, read_data_url

HANDLE: Final = re.compile(r"(?<![0-9A-Za-z])r[0-9a-f]{10}(?![0-9A-Za-z])")
"""Matches a handle anywhere in a text."""


class RecallText(Value):
    """A text that can be recalled. For a file that is not text, ``mime`` is set and ``text`` is its ``data:`` URL.

    ``is_whole``: the text is a message with all its texts.
    """

    label: str
    text: str
    part_id: str | None = None
    mime: str | None = None
    is_whole: bool = False

    @property
    def handle(self) -> str:
        """The recall handle of the text."""
        return handle(self.text)


def handle(text: str) -> str:
    """The handle of a text: ``r`` and the first ten hexadecimal digits of its SHA-256."""
    return f"r{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def handles_in(text: str) -> list[str]:
    """The handles in a text, each once, in order."""
    return list(dict.fromkeys(HANDLE.findall(text)))


def pieces(entry: HistoryItem) -> Iterator[RecallText]:
    """The texts of a message that can be recalled: each single one, then all together if there are several."""
    own = list(_own(entry))
    yield from own
    texts = {piece.text for piece in own}
    if (whole := recall_text(entry)) and whole not in texts:
        yield RecallText(label=f"{_role(entry)}, the whole message", text=whole, is_whole=True)


def recall_text(entry: HistoryItem) -> str:
    """A whole message as text: its only text, or all of them, each below a line with its label."""
    own = [piece for piece in _own(entry) if piece.mime is None]
    if len(own) == 1:
        return own[0].text
    return "\n\n".join(f"[{piece.label}]\n{piece.text}" for piece in own)


def whole_output(state: ToolCompleted) -> str:
    """The whole output of a tool; ``output`` may be only its beginning and end."""
    return state.full if state.full is not None else state.output


def _own(entry: HistoryItem) -> Iterator[RecallText]:
    if isinstance(entry.message, SystemMessage):
        for update in entry.message.updates:
            yield RecallText(label=f"system: {update.key}", text=update.text)
    role = _role(entry)
    for part in entry.parts:
        for piece in _of_part(part, role):
            if piece.text:
                yield piece.but(part_id=part.id)


def _of_part(part: Part, role: str) -> Iterator[RecallText]:
    match part:
        case TextPart(text=text):
            yield RecallText(label=role, text=text)
        case ReasoningPart(text=text):
            yield RecallText(label=f"{role}, reasoning", text=text)
        case FilePart():
            yield from _of_file(part)
        case SubtaskPart(prompt=prompt, agent=agent):
            yield RecallText(label=f"task for {agent}", text=prompt)
        case ToolPart():
            yield from _of_call(part)
        case _:
            pass  # Marks have no text.


def _of_call(part: ToolPart) -> Iterator[RecallText]:
    state = part.state
    if state.input:
        yield RecallText(label=f"{part.tool}, input", text=encode(state.input).decode())
    match state:
        case ToolCompleted(title=title, attachments=attachments, withheld=withheld):
            yield RecallText(label=f"{part.tool}: {title}" if title else part.tool, text=whole_output(state))
            for file in (*(attachments or ()), *(withheld or ())):
                yield from _of_file(file)
        case ToolError(error=error, metadata=metadata):
            partial = (metadata or {}).get("output")
            if isinstance(partial, str):
                yield RecallText(label=f"{part.tool}, output until it failed", text=partial)
            yield RecallText(label=f"{part.tool}, error", text=error)
        case ToolPending() | ToolRunning():
            pass
        case _:
            assert_never(state)


def _of_file(file: FilePart) -> Iterator[RecallText]:
    """A file with its content in a ``data:`` URL, as text if it is text; nothing for any other URL."""
    address = read_data_url(file.url)
    if address is None:
        return
    label = f"file: {file.filename or file.mime}"
    if not is_textual(file.mime):
        yield RecallText(label=label, text=file.url, mime=file.mime)
        return
    try:
        yield RecallText(label=label, text=address.text())
    except ValueError:  # The content is not text in the charset that the URL names.
        yield RecallText(label=label, text=file.url)


def _role(entry: HistoryItem) -> str:
    match entry.message:
        case UserMessage():
            return "user"
        case AssistantMessage(summary=summary):
            return "summary" if summary else "assistant"
        case SystemMessage():
            return "system"
        case _:
            assert_never(entry.message)
