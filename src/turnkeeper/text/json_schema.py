"""JSON Schema: whether a value fits a schema, and if not, where and why. Checked by ``jsonschema-rs``, offline."""

from typing import TYPE_CHECKING, NoReturn

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject

if TYPE_CHECKING:
    from jsonschema_rs import Validator

VIOLATIONS_MAX = 20


def check_schema(schema: JsonObject) -> None:
    """Refuse a schema that no answer could be checked against: Invalid says what is wrong with it."""
    try:
        _validator(schema)
    except ValueError as error:
        raise Invalid(f"the JSON schema cannot be used: {str(error).splitlines()[0]}") from error


def violations(value: object, schema: JsonObject) -> list[str]:
    """What is wrong with a value, each with its place; empty if it fits.

    A schema that cannot be used refuses nothing.
    """
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
    import jsonschema_rs  # Loaded when the first schema is checked: most sessions have none.

    return jsonschema_rs.validator_for(dict(schema), retriever=_refuse)


def _refuse(address: str) -> NoReturn:
    """Nothing is fetched: a schema may refer only to itself."""
    raise ValueError(f"the reference {address!r} leads out of the schema")


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
