"""Stream events: the answer of a provider, piece by piece, in one format for all providers.

Order of one answer: ``start``, ``start-step``, then blocks and calls, then one ``finish-step`` and one ``finish``. A
broken answer ends with one ``error``. Every block is closed before ``finish-step``; deltas are not empty. Blocks may
interleave; ``id`` identifies them.
"""

from typing import TypeAlias

from turnkeeper.model.failure import Failure
from turnkeeper.model.value import Json, JsonObject, Value


class Usage(Value):
    """Tokens as a provider counts them: ``input`` includes cache reads and writes, ``output`` includes reasoning."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int | None = None


class Start(Value, tag_field="type", tag="start"):
    """The provider accepted the request and begins to answer."""

    request_id: str | None = None


class StartStep(Value, tag_field="type", tag="start-step"):
    """The answer begins."""


class TextStart(Value, tag_field="type", tag="text-start"):
    """A block of text opens."""

    id: str
    metadata: JsonObject | None = None


class TextDelta(Value, tag_field="type", tag="text-delta"):
    """More text."""

    id: str
    text: str


class TextEnd(Value, tag_field="type", tag="text-end"):
    """A block of text is complete."""

    id: str
    metadata: JsonObject | None = None


class ReasoningStart(Value, tag_field="type", tag="reasoning-start"):
    """A block of reasoning opens."""

    id: str
    metadata: JsonObject | None = None


class ReasoningDelta(Value, tag_field="type", tag="reasoning-delta"):
    """More reasoning."""

    id: str
    text: str


class ReasoningEnd(Value, tag_field="type", tag="reasoning-end"):
    """A block of reasoning is complete; ``metadata`` has its signature or its encrypted form."""

    id: str
    metadata: JsonObject | None = None


class ToolInputStart(Value, tag_field="type", tag="tool-input-start"):
    """The model begins to write a call. ``executed``: the provider will run it itself."""

    id: str
    name: str
    executed: bool = False


class ToolInputDelta(Value, tag_field="type", tag="tool-input-delta"):
    """More of the call's input, as raw JSON text."""

    id: str
    text: str


class ToolInputEnd(Value, tag_field="type", tag="tool-input-end"):
    """The call's input is complete."""

    id: str


class ToolCall(Value, tag_field="type", tag="tool-call"):
    """A complete call. ``raw`` is the input as the model wrote it; ``input`` is the parsed input."""

    id: str
    name: str
    input: Json
    raw: str = ""
    executed: bool = False
    metadata: JsonObject | None = None


class ToolResult(Value, tag_field="type", tag="tool-result"):
    """The result of a hosted tool."""

    id: str
    name: str
    output: Json
    metadata: JsonObject | None = None


class ToolFailed(Value, tag_field="type", tag="tool-error"):
    """A hosted tool failed, or the provider could not parse a call."""

    id: str
    name: str
    error: str
    metadata: JsonObject | None = None


class UsageCounted(Value, tag_field="type", tag="usage"):
    """The usage so far. ``finish-step`` has the final usage."""

    usage: Usage


class File(Value, tag_field="type", tag="file"):
    """A file that the model made; ``url`` is a ``data:`` or ``http(s):`` URL."""

    mime: str
    url: str


class FinishStep(Value, tag_field="type", tag="finish-step"):
    """The answer ended: ``stop``, ``length``, ``tool-calls``, ``content-filter``, ``error`` or ``unknown``.

    ``message`` is the provider's explanation. ``is_paused``: the provider continues the answer on the next request.
    """

    reason: str
    message: str | None = None
    is_paused: bool = False
    usage: Usage | None = None
    metadata: JsonObject | None = None


class StreamError(Value, tag_field="type", tag="error"):
    """The answer broke off; no event follows. ``usage`` is the usage so far."""

    failure: Failure
    usage: Usage | None = None


class Finish(Value, tag_field="type", tag="finish"):
    """The stream ended."""


StreamEvent: TypeAlias = (
    Start
    | StartStep
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputEnd
    | ToolCall
    | ToolResult
    | ToolFailed
    | UsageCounted
    | File
    | FinishStep
    | StreamError
    | Finish
)
