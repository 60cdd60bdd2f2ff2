"""ForeignPart: a part of a type we do not know, imported and kept word for word."""

from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.value import JsonObject


class ForeignPart(BasePart, tag_field="type", tag="foreign"):
    """Never shown to a model; written back as it came on export."""

    body: JsonObject
