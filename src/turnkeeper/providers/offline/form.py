"""Makes a minimal object that fits a JSON schema: the offline model's structured answer."""

from turnkeeper.model.value import Json, JsonObject


def filled(schema: JsonObject, text: str) -> JsonObject:
    """An object that fits the schema, with the text as every string."""
    formed = _example(schema, text)
    return formed if isinstance(formed, dict) else {}


def _example(schema: Json, text: str) -> Json:
    if not isinstance(schema, dict):
        return text
    if "const" in schema:
        return schema["const"]
    choices = next((schema[key] for key in ("enum", "anyOf", "oneOf") if isinstance(schema.get(key), list)), None)
    if choices:
        return choices[0] if "enum" in schema else _example(choices[0], text)
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "string":
            return text
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "null":
            return None
        case "array":
            return [_example(schema.get("items"), text)] * (1 if schema.get("minItems") else 0)
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, dict):
        return {}
    return {
        name: _example(properties.get(name), text) for name in (required if isinstance(required, list) else properties)
    }
