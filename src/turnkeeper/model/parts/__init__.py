"""The twelve part types, and ForeignPart for unknown types. A new type is a file here and a line in ``Part``."""

from typing import TypeAlias

from turnkeeper.model.parts.file import FilePart
from turnkeeper.model.parts.foreign import ForeignPart
from turnkeeper.model.parts.marks import (
    AgentPart,
    CompactionPart,
    PatchPart,
    RetryPart,
    SnapshotPart,
    StepFinishPart,
    StepStartPart,
    SubtaskPart,
)
from turnkeeper.model.parts.reasoning import ReasoningPart
from turnkeeper.model.parts.text import TextPart
from turnkeeper.model.parts.tool import ToolPart

Part: TypeAlias = (
    TextPart
    | ReasoningPart
    | ToolPart
    | FilePart
    | SnapshotPart
    | PatchPart
    | AgentPart
    | CompactionPart
    | SubtaskPart
    | RetryPart
    | StepStartPart
    | StepFinishPart
    | ForeignPart
)

__all__ = [
    "AgentPart",
    "CompactionPart",
    "FilePart",
    "ForeignPart",
    "Part",
    "PatchPart",
    "ReasoningPart",
    "RetryPart",
    "SnapshotPart",
    "StepFinishPart",
    "StepStartPart",
    "SubtaskPart",
    "TextPart",
    "ToolPart",
]
