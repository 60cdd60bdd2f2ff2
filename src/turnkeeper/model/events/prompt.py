"""Input: prompts on their way into the history."""

from typing import Literal, TypeAlias

from turnkeeper.model.events.base import EventBase
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import Part

Delivery: TypeAlias = Literal["steer", "queue"]


class PromptAdmitted(EventBase):
    """A prompt is durable in the inbox; requests do not include it yet.

    ``digest`` is the hash of the caller's prompt, by which a repeated prompt is detected.
    """

    KIND = "prompt.admitted"
    message: UserMessage
    parts: tuple[Part, ...]
    delivery: Delivery
    digest: str = ""


class PromptPromoted(EventBase):
    """An admitted prompt became part of the history."""

    KIND = "prompt.promoted"
    message_id: str


class PromptWithdrawn(EventBase):
    """An admitted prompt was withdrawn before it was promoted."""

    KIND = "prompt.withdrawn"
    message_id: str
