"""Shapes that events and messages of the second generation share: prompts, models, usage, errors, tool output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from turnkeeper.core.lowering import DELEGATED
from turnkeeper.model.event import Delivery
from turnkeeper.model.failure import Failure, OutputLengthFailure
from turnkeeper.model.message import AssistantMessage, SystemMessage
from turnkeeper.model.parts import AgentPart, CompactionPart, FilePart, Part, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Mention
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning
from turnkeeper.model.session import SessionModel, Tokens
from turnkeeper.model.value import JsonObject, Value

NUMBERS_PER_ENTRY: Final = 10_000
"""An entry of the log gives several events: the second has the number ``seq * 10_000 + 1`` (record 39)."""


SHELL: Final = "bash"
"""The tool under which a shell command of the user is recorded."""


class Location(Value):
    """The directory of a session or an event."""

    directory: str


class PromptSource(Value):
    """The range of a prompt's text that stands for an attachment."""

    start: int
    end: int
    text: str


class FileAttachment(Value):
    """A file that was attached to a prompt, or that a tool returned."""

    uri: str
    mime: str
    name: str | None = None
    description: str | None = None
    source: PromptSource | None = None


class AgentAttachment(Value):
    """An agent that a prompt mentions."""

    name: str
    source: PromptSource | None = None


class PromptText(Value):
    """A prompt as the second generation shows it."""

    text: str
    files: tuple[FileAttachment, ...] | None = None
    agents: tuple[AgentAttachment, ...] | None = None


class AdmittedPrompt(Value):
    """The receipt of an admitted prompt."""

    admitted_seq: int
    id: str
    session_id: str
    prompt: PromptText
    delivery: Delivery
    time_created: int
    promoted_seq: int | None = None


class UnknownError(Value, tag_field="type", tag="unknown"):
    """An error. The second generation has only this kind."""

    message: str


class TokenUsage(Value, omit_defaults=False):
    """Tokens by kind, without their sum."""

    input: int
    output: int
    reasoning: int
    cache: object


def number(seq: int, nth: int = 0) -> int:
    """The number of the nth event of an entry."""
    return seq * NUMBERS_PER_ENTRY + nth


def model_of(message: AssistantMessage) -> SessionModel:
    """The model of an answer."""
    return SessionModel(id=message.model_id, provider_id=message.provider_id, variant=message.variant)


def usage(tokens: Tokens) -> TokenUsage:
    """Tokens as the second generation counts them."""
    return TokenUsage(input=tokens.input, output=tokens.output, reasoning=tokens.reasoning, cache=tokens.cache)


def prompt_of(parts: Sequence[Part]) -> PromptText:
    """The text and attachments of a prompt, without the parts that the runtime added."""
    texts = [part.text for part in parts if isinstance(part, TextPart) and not part.synthetic]
    files = tuple(file_of(part) for part in parts if isinstance(part, FilePart))
    agents = tuple(
        AgentAttachment(name=part.name, source=_source(part.source)) for part in parts if isinstance(part, AgentPart)
    )
    return PromptText(text="\n".join(texts), files=files or None, agents=agents or None)


def file_of(part: FilePart) -> FileAttachment:
    """An attached file."""
    mention = part.source.text if part.source is not None else None
    return FileAttachment(uri=part.url, mime=part.mime, name=part.filename, source=_source(mention))


def error_of(failure: Failure) -> UnknownError:
    """A failure as an error of the second generation."""
    if isinstance(failure, OutputLengthFailure):
        return UnknownError(message="the answer hit its limit before anything useful was said")
    return UnknownError(message=failure.data.message)


def text_of(message: SystemMessage) -> str:
    """The text of a Mid-Conversation System Message."""
    return "\n\n".join(update.text for update in message.updates)


def is_synthetic(parts: Sequence[Part]) -> bool:
    """Whether the runtime wrote all parts of a user message."""
    return bool(parts) and all(isinstance(part, TextPart) and part.synthetic for part in parts)


def is_introduction(parts: Sequence[Part]) -> bool:
    """Whether a user message only introduces a shell command, which is shown as one message."""
    return (
        len(parts) == 1 and isinstance(parts[0], TextPart) and bool(parts[0].synthetic) and parts[0].text == DELEGATED
    )


def is_shell(parts: Iterable[Part], part: Part | None = None) -> bool:
    """Whether these are the parts of a shell command of the user: a call without a step around it."""
    every = [*parts, *([part] if part is not None else ())]
    calls = [one for one in every if isinstance(one, ToolPart)]
    return len({one.id for one in calls}) == 1 and calls[0].tool == SHELL and not any(map(_is_step, every))


def compaction_of(parts: Iterable[Part]) -> CompactionPart | None:
    """The marker of a requested compaction."""
    return next((part for part in parts if isinstance(part, CompactionPart)), None)


def said(parts: Iterable[Part]) -> str:
    """The text of an answer."""
    return "\n\n".join(part.text for part in parts if isinstance(part, TextPart) and part.text)


def shell_output(state: ToolPending | ToolRunning | ToolCompleted | ToolError) -> str:
    """The output of a shell command so far, and the error that ended it."""
    if isinstance(state, ToolCompleted):
        return state.output
    printed = str((getattr(state, "metadata", None) or {}).get("output", ""))
    error = getattr(state, "error", "")
    return f"{printed.rstrip()}\n{error}" if printed.strip() and error else printed or error


def content_of(state: ToolCompleted) -> list[Any]:
    """The output of a tool as text and files. ``Any``: JSON as the tool or an import stored it."""
    if state.content is not None:
        return list(state.content)
    return [{"type": "text", "text": state.output}, *map(_file_content, state.attachments or ())]


def provider_metadata(metadata: Mapping[str, object] | None) -> dict[str, object]:
    """Metadata that is grouped by provider; clients support no other form."""
    return {name: item for name, item in (metadata or {}).items() if isinstance(item, dict)}


def structured_of(state: ToolRunning | ToolCompleted | ToolError) -> JsonObject:
    """The structured output of a tool."""
    structured = getattr(state, "structured", None)
    return structured if isinstance(structured, dict) else state.metadata or {}


def _file_content(file: FilePart) -> JsonObject:
    name = {"name": file.filename} if file.filename is not None else {}
    return {"type": "file", "uri": file.url, "mime": file.mime, **name}


def _source(mention: Mention | None) -> PromptSource | None:
    return PromptSource(start=mention.start, end=mention.end, text=mention.value) if mention is not None else None


def _is_step(part: Part) -> bool:
    return isinstance(part, StepStartPart | TextPart)
