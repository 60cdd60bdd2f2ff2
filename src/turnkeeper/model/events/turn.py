"""Turns: their beginning and end, what they used, and whether the session is at work."""

from typing import Literal

from turnkeeper.model.context import Prefix
from turnkeeper.model.events.base import EventBase
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.session import Tokens
from turnkeeper.model.status import Owner, Status


class TurnStarted(EventBase):
    """A request is about to be sent; its answer belongs to this message."""

    KIND = "turn.started"
    message: AssistantMessage
    prefix: Prefix | None = None


class TurnEnded(EventBase):
    """The turn ended; the message is final."""

    KIND = "turn.ended"
    message: AssistantMessage


class UsageRecorded(EventBase):
    """One row of the ledger: the usage and cost of one attempt, also of a failed one."""

    KIND = "usage.recorded"
    purpose: Literal["turn", "title", "compaction", "summary", "child"]
    provider_id: str
    model_id: str
    message_id: str | None = None
    attempt: int = 1
    tokens: Tokens
    cost: int | float


class StatusChanged(EventBase):
    """The session became idle or busy, or waits to retry. ``owner`` is the process that runs it, if any."""

    KIND = "status.changed"
    status: Status
    owner: Owner | None = None
