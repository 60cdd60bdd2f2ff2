"""Marks: parts without text that record an event at their place in a message."""

import msgspec

from turnkeeper.model.failure import ApiFailure
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.parts.base import BasePart, Mention
from turnkeeper.model.session import Tokens
from turnkeeper.model.value import Private, Value


class StepStartPart(BasePart, tag_field="type", tag="step-start"):
    """A provider turn began; ``snapshot`` is the tree of the project's files."""

    snapshot: str | None = None


class StepFinishPart(BasePart, tag_field="type", tag="step-finish"):
    """A provider turn ended, with its usage and cost."""

    reason: str
    snapshot: str | None = None
    cost: int | float
    tokens: Tokens


class SnapshotPart(BasePart, tag_field="type", tag="snapshot"):
    """The project's files were recorded as this git tree."""

    snapshot: str


class PatchPart(BasePart, tag_field="type", tag="patch"):
    """Files that a turn changed; absolute paths. ``hash`` is the tree before, and ``after`` the tree after it."""

    hash: str
    files: tuple[str, ...]
    after: Private[str | None] = None
    during: Private[tuple[str, ...] | None] = None
    """Those of the files that changed while a command ran: others may have written them."""
    unrecorded: Private[tuple[str, ...] | None] = None
    """What the turn may have changed besides, each with the reason why it is not recorded."""


class AgentPart(BasePart, tag_field="type", tag="agent"):
    """The user mentioned an agent."""

    name: str
    source: Mention | None = None


class SubtaskPart(BasePart, tag_field="type", tag="subtask"):
    """A task for a Child Session."""

    prompt: str
    description: str
    agent: str
    model: ModelChoice | None = None
    command: str | None = None


class RetryTime(Value):
    """When the retry was scheduled."""

    created: int


class RetryPart(BasePart, tag_field="type", tag="retry"):
    """An attempt failed and was tried again."""

    attempt: int
    error: ApiFailure
    time: RetryTime


class CompactionPart(BasePart, tag_field="type", tag="compaction"):
    """A Summary replaces the history before this message, except the tail from ``tail_start_id`` on."""

    auto: bool
    overflow: bool | None = None
    tail_start_id: str | None = msgspec.field(default=None, name="tail_start_id")
