"""TextPart: text of the user or the model."""

from turnkeeper.model.parts.base import BasePart, Span
from turnkeeper.model.value import JsonObject


class TextPart(BasePart, tag_field="type", tag="text"):
    """``synthetic`` text was written by the runtime; ``ignored`` text is shown to people and not to the model."""

    text: str
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    metadata: JsonObject | None = None
