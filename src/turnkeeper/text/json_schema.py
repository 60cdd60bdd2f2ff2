"""JSON Schema: validates values with ``jsonschema-rs``, without network access."""

from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject

if TYPE_CHECKING:
    from jsonschema_rs import Validator

VIOLATIONS_MAX = 20
SUBSCHEMAS_MAX = 100
"""Maximum number of subschemas checked to decide whether a schema admits an object."""


def check_schema(schema: JsonObject) -> None:
    """Raise Invalid for a schema that cannot be used for structured answers.

    An answer is the input of a tool, which is a JSON object, so the schema must admit objects.
    """
    try:
        _validator(schema)
    except ValueError as error:
        raise Invalid(f"the JSON schema cannot be used: {str(error).splitlines()[0]}") from error
    if not _takes_objects(schema, schema, set()):
        raise Invalid("the JSON schema cannot be used: an answer is an object, and it admits none; wrap it in one")


def violations(value: object, schema: JsonObject) -> list[str]:
    """The violations of a value, each with its JSON path; none if the schema itself is invalid."""
    try:
        validator = _validator(schema)
    except ValueError:
        return []
    found = []
    for error in validator.iter_errors(value):
        found.append(f"{_place(error.instance_path)}: {error.message}")
        if len(found) == VIOLATIONS_MAX:
            break
    return found


def _validator(schema: JsonObject) -> "Validator":
    import jsonschema_rs  # Imported here: most sessions check no schema.

    return jsonschema_rs.validator_for(dict(schema), retriever=_refuse)


def _refuse(address: str) -> NoReturn:
    """Refuse a reference to another document, instead of fetching it."""
    raise ValueError(f"the reference {address!r} leads out of the schema")


def _takes_objects(schema: Json, root: JsonObject, seen: set[int]) -> bool:
    """Whether the schema admits objects, judged by types, constants and choices and not by properties."""
    if not isinstance(schema, dict) or id(schema) in seen or len(seen) == SUBSCHEMAS_MAX:
        return schema is not False
    seen.add(id(schema))
    kinds = schema.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        return False
    if not any(isinstance(value, dict) for value in _list(schema.get("enum")) or [schema.get("const", {})]):
        return False
    if not all(_takes_objects(one, root, seen) for one in (_referred(schema, root), *_list(schema.get("allOf")))):
        return False
    choices = [_list(schema.get(name)) for name in ("anyOf", "oneOf")]
    return all(any(_takes_objects(one, root, seen) for one in some) for some in choices if some)


def _referred(schema: JsonObject, root: JsonObject) -> Json:
    """The target of a local reference; the schema that admits everything (True) if there is none."""
    reference, found = schema.get("$ref"), root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return True
    for step in unquote(reference)[2:].split("/"):
        inner = found.get(step.replace("~1", "/").replace("~0", "~"))
        if not isinstance(inner, dict):
            return True
        found = inner
    return found


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
