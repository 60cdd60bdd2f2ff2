"""Context Epoch: the span of one Baseline System Context, and the checkpoint against which changes are told."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from turnkeeper.model.value import Value

EpochReason: TypeAlias = Literal["start", "compaction", "model", "move"]


class ComponentText(Value):
    """One component's part of the baseline, under its stable key."""

    key: str
    text: str


class Epoch(Value):
    """The baseline in its order, stored by key and reused word for word; one hash per key last admitted.

    ``seq`` is the place of the event that began it: system messages before it have left the model's view.
    """

    number: int
    reason: EpochReason
    provider_id: str
    model_id: str
    directory: str = ""
    baseline: tuple[ComponentText, ...]
    checkpoint: Mapping[str, str]
    seq: int = 0


class Loaded(Value):
    """A component's value from one sample: how it reads in a baseline, and as news of the current state."""

    baseline: str
    update: str


class Absent(Value):
    """A component that was looked for and is not there. ``removal`` is what to say if it was there before."""

    removal: str = ""


class Unavailable(Value):
    """A component that cannot be loaded now. What was effective stays so, and nothing is said."""

    reason: str = ""


Sample: TypeAlias = Loaded | Absent | Unavailable


class Prefix(Value):
    """How a request extends the one before it: its pieces, their size and hash, and what the provider can reuse."""

    pieces: int
    bytes: int
    hash: str
    reused: int = 0
    cause: str | None = None
    """Why less than the whole request before it can be reused; None if all of it can."""
