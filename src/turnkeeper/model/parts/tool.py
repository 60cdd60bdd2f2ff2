"""ToolPart: one tool call and its state.

    pending ──▶ running ──▶ completed
       └───────────┴──────▶ error

A call never returns to an earlier state (``may_follow``); ``raw`` is the input as the model wrote it.
"""

from typing import TypeAlias

from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.parts.file import FilePart
from turnkeeper.model.value import Json, JsonObject, Private, Value


class RunningTime(Value):
    """When the tool began."""

    start: int


class SettledTime(Value):
    """When the tool began and ended; ``compacted`` is when its output was pruned from the model's view."""

    start: int
    end: int
    compacted: int | None = None


class ToolPending(Value, tag_field="status", tag="pending"):
    """The input is incomplete, or the call waits to run."""

    input: JsonObject
    raw: str


class ToolRunning(Value, tag_field="status", tag="running"):
    """The tool is running; ``metadata`` has its progress."""

    input: JsonObject
    raw: Private[str | None] = None
    title: str | None = None
    metadata: JsonObject | None = None
    time: RunningTime


class ToolCompleted(Value, tag_field="status", tag="completed"):
    """The tool returned. ``full`` is the whole output if ``output`` was bounded; ``output_paths`` are files with it.

    ``withheld`` are attachments that requests leave out, because they are too many or too large.
    """

    input: JsonObject
    raw: Private[str | None] = None
    output: str
    title: str
    metadata: JsonObject
    time: SettledTime
    attachments: tuple[FilePart, ...] | None = None
    structured: Private[Json] = None
    content: Private[tuple[JsonObject, ...] | None] = None
    output_paths: Private[tuple[str, ...] | None] = None
    full: Private[str | None] = None
    withheld: Private[tuple[FilePart, ...] | None] = None


class ToolError(Value, tag_field="status", tag="error"):
    """The tool failed, was refused or was interrupted (``metadata.interrupted``)."""

    input: JsonObject
    raw: Private[str | None] = None
    error: str
    metadata: JsonObject | None = None
    time: SettledTime


ToolState: TypeAlias = ToolPending | ToolRunning | ToolCompleted | ToolError


class ToolProvider(Value):
    """Whether the provider ran the tool itself, and its metadata of the call and of the result."""

    executed: bool
    metadata: JsonObject | None = None
    result_metadata: JsonObject | None = None


class ToolPart(BasePart, tag_field="type", tag="tool"):
    """One tool call."""

    call_id: str
    tool: str
    state: ToolState
    metadata: JsonObject | None = None
    provider: Private[ToolProvider | None] = None
    """Sent in the second generation of the API only."""

    @property
    def is_hosted(self) -> bool:
        """Whether the provider ran the tool itself."""
        return self.provider is not None and self.provider.executed


_RANK = {ToolPending: 0, ToolRunning: 1, ToolCompleted: 2, ToolError: 2}


def may_follow(before: ToolState, after: ToolState) -> bool:
    """Whether ``after`` may follow ``before``: a later state, or the same one; a settled call keeps its state type."""
    if _RANK[type(before)] == 2:
        return type(after) is type(before)
    return _RANK[type(after)] >= _RANK[type(before)]
