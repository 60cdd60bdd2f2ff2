"""Context Epoch: the span of one Baseline System Context, and the checkpoint against which changes are told."""

from collections.abc import Mapping
from typing import Literal

from turnkeeper.model.value import Value


class ComponentText(Value):
    """One component's part of the baseline, under its stable key."""

    key: str
    text: str


class Epoch(Value):
    """The baseline in its order, stored by key and reused word for word; one hash per key last admitted."""

    number: int
    reason: Literal["start", "compaction", "model", "move"]
    provider_id: str
    model_id: str
    baseline: tuple[ComponentText, ...]
    checkpoint: Mapping[str, str]
