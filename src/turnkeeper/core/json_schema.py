"""JSON Schema: whether a value fits, and if not, where and why. The keywords that callers really use.

Understood: type, enum, const, properties, required, additionalProperties, patternProperties, items, prefixItems,
minItems, maxItems, uniqueItems, contains, minProperties, maxProperties, minLength, maxLength, pattern, minimum,
maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, anyOf, oneOf, allOf, not, if/then/else, $ref into the same
document. Other keywords are notes to the reader, as the standard has it.
"""

import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from turnkeeper.model.value import JsonObject

VIOLATIONS_MAX = 20
DEPTH_MAX = 100


def violations(value: object, schema: JsonObject) -> list[str]:
    """What is wrong with a value, each with its place; empty if it fits."""
    found = []
    for violation in _Checker(schema).check(value, schema, "$", 0):
        found.append(violation)
        if len(found) == VIOLATIONS_MAX:
            break
    return found


_TYPES: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: _is_integer(value),
}


def _is_integer(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


class _Checker:
    """Checks against one document, in which references are looked up."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def check(self, value: object, schema: object, place: str, depth: int) -> Iterator[str]:
        if schema is False:
            yield f"{place}: nothing is allowed here"
        if not isinstance(schema, dict):
            return
        if depth > DEPTH_MAX:
            yield f"{place}: the schema refers to itself without end"
            return
        if isinstance(reference := schema.get("$ref"), str):
            yield from self.check(value, self._resolve(reference), place, depth + 1)
        yield from self._kind(value, schema, place)
        yield from self._combined(value, schema, place, depth)
        if isinstance(value, dict):
            yield from self._object(value, schema, place, depth)
        elif isinstance(value, list | tuple):
            yield from self._array(list(value), schema, place, depth)
        elif isinstance(value, str):
            yield from _string(value, schema, place)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number(value, schema, place)

    def _resolve(self, reference: str) -> object:
        node: object = self._root
        for step in reference.removeprefix("#").split("/"):
            if step:
                name = step.replace("~1", "/").replace("~0", "~")
                node = node.get(name) if isinstance(node, dict) else None
        return node

    def _kind(self, value: object, schema: dict[str, object], place: str) -> Iterator[str]:
        kinds = schema.get("type")
        names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        if names and not any(name not in _TYPES or _TYPES[name](value) for name in map(str, names)):
            yield f"{place}: must be {' or '.join(map(str, names))}, not {_kind_of(value)}"
        allowed = schema.get("enum")
        if isinstance(allowed, list) and not any(_same(value, one) for one in allowed):
            yield f"{place}: must be one of {allowed!r}"
        if "const" in schema and not _same(value, schema["const"]):
            yield f"{place}: must be {schema['const']!r}"

    def _combined(self, value: object, schema: dict[str, object], place: str, depth: int) -> Iterator[str]:
        for part in _list(schema.get("allOf")):
            yield from self.check(value, part, place, depth + 1)
        if (some := _list(schema.get("anyOf"))) and not any(self._fits(value, one, depth) for one in some):
            yield f"{place}: fits none of the {len(some)} shapes allowed"
        if some := _list(schema.get("oneOf")):
            count = sum(self._fits(value, one, depth) for one in some)
            if count != 1:
                yield f"{place}: must fit exactly one of {len(some)} shapes, and fits {count}"
        if "not" in schema and self._fits(value, schema["not"], depth):
            yield f"{place}: has a shape that is not allowed"
        if "if" in schema:
            branch = "then" if self._fits(value, schema["if"], depth) else "else"
            yield from self.check(value, schema.get(branch, True), place, depth + 1)

    def _fits(self, value: object, schema: object, depth: int) -> bool:
        return next(self.check(value, schema, "$", depth + 1), None) is None

    def _object(self, value: dict[str, object], schema: dict[str, object], place: str, depth: int) -> Iterator[str]:
        known = schema.get("properties")
        properties = known if isinstance(known, dict) else {}
        patterns = schema.get("patternProperties")
        shapes = patterns if isinstance(patterns, dict) else {}
        for name in _list(schema.get("required")):
            if name not in value:
                yield f"{place}: {name!r} is missing"
        for name, item in value.items():
            inner = f"{place}.{name}"
            if name in properties:
                yield from self.check(item, properties[name], inner, depth + 1)
            matched = [shape for pattern, shape in shapes.items() if _matches(pattern, name)]
            for shape in matched:
                yield from self.check(item, shape, inner, depth + 1)
            if name not in properties and not matched and "additionalProperties" in schema:
                if schema["additionalProperties"] is False:
                    yield f"{place}: {name!r} is not allowed"
                else:
                    yield from self.check(item, schema["additionalProperties"], inner, depth + 1)
        yield from _size(len(value), schema, place, "Properties", "properties")

    def _array(self, value: list[object], schema: dict[str, object], place: str, depth: int) -> Iterator[str]:
        first = _list(schema.get("prefixItems"))
        for index, item in enumerate(value):
            shape = first[index] if index < len(first) else schema.get("items", True)
            yield from self.check(item, shape, f"{place}[{index}]", depth + 1)
        yield from _size(len(value), schema, place, "Items", "items")
        if schema.get("uniqueItems") is True and any(
            _same(one, other) for index, one in enumerate(value) for other in value[:index]
        ):
            yield f"{place}: items must differ from each other"
        if "contains" in schema and not any(self._fits(item, schema["contains"], depth) for item in value):
            yield f"{place}: no item has the shape that one must have"


def _string(value: str, schema: dict[str, object], place: str) -> Iterator[str]:
    yield from _size(len(value), schema, place, "Length", "characters")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, value):
        yield f"{place}: does not match {pattern!r}"


def _number(value: int | float, schema: dict[str, object], place: str) -> Iterator[str]:
    bounds: tuple[tuple[str, Callable[[float], bool], str], ...] = (
        ("minimum", lambda bound: value < bound, "at least"),
        ("maximum", lambda bound: value > bound, "at most"),
        ("exclusiveMinimum", lambda bound: value <= bound, "more than"),
        ("exclusiveMaximum", lambda bound: value >= bound, "less than"),
    )
    for name, is_broken, words in bounds:
        bound = schema.get(name)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and is_broken(bound):
            yield f"{place}: must be {words} {bound}"
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0 and not _is_multiple(value, step):
        yield f"{place}: must be a multiple of {step}"


def _size(count: int, schema: dict[str, object], place: str, suffix: str, what: str) -> Iterator[str]:
    least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if isinstance(least, int) and count < least:
        yield f"{place}: must have at least {least} {what}"
    if isinstance(most, int) and count > most:
        yield f"{place}: must have at most {most} {what}"


def _is_multiple(value: int | float, step: int | float) -> bool:
    # As written, in fractions: in floats 0.3 is no multiple of 0.1, and large numbers overflow.
    return value in (math.inf, -math.inf) or Fraction(str(value)) % Fraction(str(step)) == 0


def _matches(pattern: str, text: str) -> bool:
    """Whether a text holds the pattern. One in another dialect than ours is not held against the text."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _same(one: object, other: object) -> bool:
    """Equal as JSON: true is not 1, nor is it inside lists and objects."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _kind_of(value: object) -> str:
    return next((name for name, is_kind in _TYPES.items() if is_kind(value)), type(value).__name__)
