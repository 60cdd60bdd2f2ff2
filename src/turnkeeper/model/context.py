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
    ``initial`` is the checkpoint as it was then: with the messages admitted since, it says what the model was told.
    """

    number: int
    reason: EpochReason
    provider_id: str
    model_id: str
    directory: str = ""
    baseline: tuple[ComponentText, ...]
    checkpoint: Mapping[str, str]
    seq: int = 0
    initial: Mapping[str, str] | None = None


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


class Mark(Value):
    """A place in a request: how many bytes lie before it, and their hash."""

    bytes: int
    hash: str


class Prefix(Value):
    """How a request extends the one before it: its pieces, their size and hash, and what the provider can reuse.

    Words that are meant for one request only stand at its end. ``passing`` counts their bytes; they are in no other
    field, so the next request is held against what was there to stay.
    """

    pieces: int
    bytes: int
    hash: str
    reused: int = 0
    """How many bytes of the request before it the provider can reuse."""
    cause: str | None = None
    """Why less than the whole request before it can be reused; None if all of it can."""
    note: str | None = None
    """Why the provider may reuse less than it could: what it does with its cache is its own affair."""
    before: int = 0
    """The size of the request before it, passing words included; 0 if there was none."""
    passing: int = 0
    epoch: int = 0
    at: int = 0
    model: str = ""
    choice: str = ""
    tools: Mark | None = None
    """Behind the tools, which come first of all."""
    system: Mark | None = None
    """Behind the baseline."""
