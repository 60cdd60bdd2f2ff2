"""ReasoningPart: the model's reasoning, with the provider's signatures in ``metadata``."""

from turnkeeper.model.parts.base import BasePart, Span
from turnkeeper.model.value import JsonObject


class ReasoningPart(BasePart, tag_field="type", tag="reasoning"):
    """Reasoning of the model."""

    text: str
    metadata: JsonObject | None = None
    time: Span
