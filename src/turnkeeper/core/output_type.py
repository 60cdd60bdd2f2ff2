"""Output types: the JSON schema of a Python type, and a structured answer as a value of the type."""

from typing import Final, Generic, TypeVar

import msgspec

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject

T = TypeVar("T")

WRAPPER: Final = "value"
"""The only property of the object around an answer that is no object: a structured answer is always an object."""


class OutputType(Generic[T]):
    """A type that answers are asked for: a msgspec Struct, a dataclass, a TypedDict or a built-in type."""

    def __init__(self, kind: type[T]) -> None:
        """Raises Invalid for a type that has no JSON schema."""
        self._kind = kind
        try:
            schema = _without_reference(msgspec.json.schema(kind))
        except (TypeError, ValueError) as error:
            reason = str(error).splitlines()[-1]  # The lines before are about arguments of msgspec.
            raise Invalid(
                f"{kind!r:.80} cannot be an output type: {reason}; use a msgspec Struct, a dataclass, a TypedDict or a "
                "built-in type"
            ) from error
        self._is_wrapped = schema.get("type") != "object"
        self.schema = _wrapped(schema) if self._is_wrapped else schema

    def convert(self, structured: Json) -> T:
        """A structured answer as the type. Raises ValueError if it does not fit."""
        if self._is_wrapped and isinstance(structured, dict):
            structured = structured.get(WRAPPER)
        return msgspec.convert(structured, self._kind)


def _without_reference(schema: JsonObject) -> JsonObject:
    """A schema whose top level is no reference, which providers do not accept there."""
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict) or not isinstance(reference := schema.get("$ref"), str):
        return schema
    top = definitions[reference.removeprefix("#/$defs/")]
    assert isinstance(top, dict), "msgspec refers to objects"
    is_used = f'"{reference}"' in msgspec.json.encode(definitions).decode()
    rest = definitions if is_used else {name: value for name, value in definitions.items() if value is not top}
    return {**top, "$defs": rest} if rest else top


def _wrapped(schema: JsonObject) -> JsonObject:
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    outer: JsonObject = {"type": "object", "properties": {WRAPPER: inner}, "required": [WRAPPER]}
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer
