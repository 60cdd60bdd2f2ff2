"""ForeignPart: an imported part of an unknown type, kept unchanged."""

from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.value import JsonObject


class ForeignPart(BasePart, tag_field="type", tag="foreign"):
    """An imported part of an unknown type. Requests leave it out; an export writes it back unchanged."""

    body: JsonObject
