"""Schemas: the JSON schema of a tool's parameters, and the lenient decoding of a model's input."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from turnkeeper.model.value import JsonObject, wire_name

S = TypeVar("S", bound=msgspec.Struct)

INTEGER_MAX: Final = 2**53 - 1
"""Beyond it, programs that read JSON numbers as doubles no longer agree on them."""


_UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")


class Violations(Exception):
    """The violations of an input, one line each."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(f"- {line}" for line in lines))
        self.lines = lines


@lru_cache(maxsize=256)
def schema_of(parameters: type[msgspec.Struct]) -> JsonObject:
    """The JSON schema of a struct, without references, titles or nulls: an optional field is one that may be absent."""
    whole = msgspec.json.schema(parameters)
    definitions = whole.pop("$defs", {})
    inlined = _inlined(whole, definitions)
    assert isinstance(inlined, dict)
    return inlined


def decode(parameters: type[S], input: object, aliases: Mapping[str, str]) -> S:
    """The input as a struct. Raises Violations, with everything that is wrong with it.

    Unknown fields are ignored and near misses forgiven: ``file_path`` for ``filePath``, ``"3"`` for ``3``.
    """
    if not isinstance(input, Mapping):
        raise Violations(["the input must be a JSON object"])
    fields = _fields_of(parameters)
    known = {field.encode_name for field in fields}
    given = {str(key): value for key, value in input.items() if key in known}
    for key, value in input.items():
        meant = aliases.get(str(key), wire_name(str(key)))
        if key not in known and meant in known:
            given.setdefault(meant, value)
    violations = []
    for field in fields:
        name = field.encode_name
        if name not in given or (given[name] is None and not field.required):
            given.pop(name, None)
            if field.required:
                violations.append(f"'{name}' is missing")
            continue
        violations += _violations(name, given[name], field.type)
    if violations:
        raise Violations(violations)
    return msgspec.convert(given, parameters, strict=False)


@lru_cache(maxsize=256)
def _fields_of(parameters: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(parameters)


def _violations(name: str, value: object, kind: type) -> list[str]:
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        return [f"'{name}': {error}"]
    # No path, command or pattern can hold these, and the system's own error would not help.
    return [f"'{name}' holds a NUL or half a character"] if _is_unusable(value) else []


def _is_unusable(value: object) -> bool:
    match value:
        case str():
            return _UNUSABLE.search(value) is not None
        case list() | tuple():
            return any(map(_is_unusable, value))
        case dict():
            return any(map(_is_unusable, value.values()))
    return False


def _inlined(node: object, definitions: Mapping[str, object]) -> object:
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        return _inlined(definitions[str(reference).removeprefix("#/$defs/")], definitions)
    if "anyOf" in node:
        choices = [choice for choice in node["anyOf"] if choice != {"type": "null"}]
        if len(choices) == 1:
            node = {**{key: value for key, value in node.items() if key != "anyOf"}, **choices[0]}
    properties = node.get("properties", {})
    plain = {
        key: {name: _inlined(one, definitions) for name, one in properties.items()}
        if key == "properties"
        else _inlined(value, definitions)
        for key, value in node.items()
        if key != "title" and not (key == "default" and value is None)
    }
    # The struct's docstring is for those who read the code.
    if plain.get("type") == "object":
        plain.pop("description", None)
    if "type" not in plain and isinstance(plain.get("enum"), list):  # Each of our choices is between words.
        plain["type"] = "string"
    if plain.get("type") == "integer":
        plain = {"minimum": -INTEGER_MAX, "maximum": INTEGER_MAX} | plain
    return plain
