"""Schemas: converts a tool's JSON schema to the dialect that a provider accepts."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.value import JsonObject, encode

Schema = dict[str, object]

REFERENCE_DEPTH_MAX = 6
"""How many nested references are replaced by their target."""
REFERENCES_MAX = 10_000
"""How many references are replaced in all: those of a schema that refers to itself multiply with the depth."""

_OPENAI_KEYWORDS = (
    "$ref",
    "description",
    "enum",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "$defs",
    "definitions",
    "type",
)
_NUMERIC = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_GEMINI_KEYWORDS = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "properties",
        "required",
        "items",
        "anyOf",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "minProperties",
        "maxProperties",
    }
)


def for_model(schema: JsonObject, model: ModelInfo) -> Schema:
    """The schema of a tool's input in the dialect of the model's provider: an object with properties."""
    name = model.api_id.lower()
    if model.protocol == "anthropic":
        return rooted(schema)
    if model.protocol == "gemini" or "gemini" in name:
        return rooted(gemini(inlined(rooted(schema), schema, count())))
    if "kimi" in name or "moonshot" in name or "moonshot" in model.provider_id:
        return rooted(moonshot(schema))
    if model.provider_id in ("openai", "azure") or model.protocol == "openai-responses":
        return rooted(openai(flattened(schema)))
    return rooted(flattened(schema))


def rooted(schema: JsonObject) -> Schema:
    """The schema with an object at its root, which every provider requires."""
    given = {key: value for key, value in schema.items() if key != "$schema"}
    if given.get("type") == "object" and isinstance(given.get("properties"), Mapping):
        return given
    return {**given, "type": "object", "properties": given.get("properties") or {}}


def flattened(schema: JsonObject) -> Schema:
    """The schema with one object in place of a root ``anyOf``; a property is required if every choice requires it."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list | tuple):
        return dict(schema)
    objects = [c for c in choices if isinstance(c, Mapping) and c.get("type") != "null"]
    if not objects or not all(isinstance(c.get("properties"), Mapping) for c in objects):
        return dict(schema)
    properties: Schema = {}
    for choice in objects:
        for key, value in _mapping(choice["properties"]).items():
            properties.setdefault(key, value)
    required = [key for key in properties if all(key in _names(choice.get("required")) for choice in objects)]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**rest, "type": "object", "properties": properties, **({"required": required} if required else {})}


def inlined(node: object, root: JsonObject, references: Iterator[int], depth: int = 0) -> object:
    """The schema with local references replaced by their targets; beyond the limits, by an empty object."""
    if isinstance(node, list | tuple):
        return [inlined(item, root, references, depth) for item in node]
    if not isinstance(node, Mapping):
        return node
    reference = node.get("$ref")
    if not isinstance(reference, str):
        inner = {key: value for key, value in node.items() if key not in ("$defs", "definitions")}
        return {key: inlined(value, root, references, depth) for key, value in inner.items()}
    target: object = root
    for name in reference.removeprefix("#/").split("/"):
        target = _mapping(target).get(name)
    is_beyond = depth >= REFERENCE_DEPTH_MAX or next(references) >= REFERENCES_MAX
    if is_beyond or not isinstance(target, Mapping):
        return {"type": "object", "properties": {}}
    return inlined({**target, **{k: v for k, v in node.items() if k != "$ref"}}, root, references, depth + 1)


def openai(schema: object) -> Schema:
    """OpenAI's dialect: unknown keywords are removed, and a missing type is inferred from the other keywords."""
    if not isinstance(schema, Mapping):
        return {"type": "string"}
    node: Schema = {key: schema[key] for key in _OPENAI_KEYWORDS if key in schema}
    if "const" in schema and "enum" not in node:
        node["enum"] = [schema["const"]]
    _below(node, openai)
    if isinstance(node.get("additionalProperties"), Mapping):
        node["additionalProperties"] = openai(node["additionalProperties"])
    if "type" not in node and not node.keys() & {"$ref", "anyOf", "oneOf", "allOf"}:
        node["type"] = _inferred(schema)
    if node.get("type") == "object":
        node.setdefault("properties", {})
    if node.get("type") == "array":
        node.setdefault("items", {"type": "string"})
    return node


def moonshot(schema: object) -> Schema:
    """Moonshot's dialect: a reference has no other keywords, and a tuple of items becomes its first item."""
    if not isinstance(schema, Mapping):
        return {"type": "string"}
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    node = dict(schema)
    _below(node, moonshot)
    return node


def gemini(schema: object) -> Schema:
    """Gemini's dialect: string enums, one type, only known properties required, and ``items`` in every array."""
    if not isinstance(schema, Mapping):
        return {"type": "string"}
    node: Schema = {key: value for key, value in schema.items() if key in _GEMINI_KEYWORDS}
    if "const" in schema and "enum" not in node:
        node["enum"] = [schema["const"]]
    if "oneOf" in schema and "anyOf" not in node:
        node["anyOf"] = schema["oneOf"]
    _below(node, gemini)
    _single_type(node)
    if isinstance(values := node.get("enum"), list | tuple):
        node["enum"] = [value if isinstance(value, str) else encode(value).decode() for value in values]
        node["type"] = "string"
    if node.get("type") == "object":
        _only_known_are_required(node)
    else:
        node.pop("properties", None)
        node.pop("required", None)
    if node.get("type") == "array":
        items = node.get("items")
        node["items"] = items if isinstance(items, dict) and items else {"type": "string"}
    return node


def _below(node: Schema, change: Callable[[object], Schema]) -> None:
    """Convert every schema nested in this one; a tuple of ``items`` becomes its first item."""
    for key in ("properties", "$defs", "definitions"):
        if isinstance(inner := node.get(key), Mapping):
            node[key] = {name: change(value) for name, value in inner.items()}
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(choices := node.get(key), list | tuple):
            node[key] = [change(choice) for choice in choices]
    items = node.get("items")
    if isinstance(items, list | tuple):
        items = items[0] if items else {"type": "string"}
    if items is not None:
        node["items"] = change(items)


def _inferred(schema: Mapping[str, object]) -> str:
    if schema.keys() & {"properties", "required", "additionalProperties"}:
        return "object"
    if schema.keys() & {"items", "prefixItems"}:
        return "array"
    if schema.keys() & _NUMERIC:
        return "number"
    return "string"


def _single_type(node: Schema) -> None:
    kinds = node.get("type")
    if not isinstance(kinds, list | tuple):
        return
    named = [kind for kind in kinds if kind != "null"]
    if len(named) < len(kinds):
        node["nullable"] = True
    if len(named) == 1:
        node["type"] = named[0]
    else:
        del node["type"]
        node["anyOf"] = [{"type": kind} for kind in named] or [{"type": "string"}]


def _only_known_are_required(node: Schema) -> None:
    properties = _mapping(node.get("properties"))
    required = [name for name in _names(node.get("required")) if name in properties]
    node.pop("required", None)
    if required:
        node["required"] = required


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list | tuple) else []
