"""System Context: what a model is told besides the history."""

from turnkeeper.model.context import Epoch
from turnkeeper.model.events.base import EventBase
from turnkeeper.model.message import SystemMessage


class EpochStarted(EventBase):
    """A Context Epoch began with this baseline."""

    KIND = "epoch.started"
    epoch: Epoch


class ContextAdmitted(EventBase):
    """Changed components were announced to the model, with the checkpoint that includes them."""

    KIND = "context.admitted"
    message: SystemMessage
    checkpoint: dict[str, str]


class InstructionDiscovered(EventBase):
    """A nested instruction file was found while reading files; it applies from the next boundary on."""

    KIND = "instruction.discovered"
    path: str
